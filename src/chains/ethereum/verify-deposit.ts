import { formatEth, type Gwei, gweiToWei, type Wei } from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import type { Address, Hex, Pubkey } from './chain.ts'
import {
  type CredentialsType,
  depositDataRoot,
  depositMessageRoot,
  encodeDepositCalldata,
  isValidPubkey,
  verifyDepositSignature,
  withdrawalCredentials,
} from './deposit.ts'
import { unspendable } from './unspendable.ts'

export type DepositMismatchCode =
  /** Not a BLS public key: money sent to it is lost. */
  | 'invalid-pubkey'
  /** The money would go back to another address, or under other rules. */
  | 'wrong-credentials'
  /** The address that is asked for is one that nobody can spend from. */
  | 'unspendable-address'
  | 'wrong-amount'
  /** The consensus layer would drop the deposit, and the money would be lost. */
  | 'invalid-signature'
  | 'wrong-message-root'
  /** The contract would refuse the deposit. */
  | 'wrong-data-root'
  | 'wrong-fork-version'
  | 'wrong-contract'
  | 'wrong-chain'
  /** The transaction's data is not exactly the call that this deposit data makes. */
  | 'wrong-calldata'
  /** The transaction's value is not exactly the amount. */
  | 'wrong-value'

/** One rule that an answer of the staking service breaks. The message says what was expected and quotes nothing of the answer. */
export interface DepositMismatch {
  readonly code: DepositMismatchCode
  readonly message: string
}

/** What the resource's own spec and the network's constants say: the only authority. */
export interface ExpectedDeposit {
  readonly withdrawalAddress: Address
  readonly credentialsType: CredentialsType
  readonly amountGwei: Gwei
  readonly network: { readonly chainId: number; readonly depositContractAddress: Address; readonly genesisForkVersion: Hex }
}

/** The service's deposit data. */
export interface ClaimedDeposit {
  readonly pubkey: Pubkey
  readonly withdrawalCredentials: Hex
  readonly amountGwei: Gwei
  readonly signature: Hex
  readonly depositMessageRoot: Hex
  readonly depositDataRoot: Hex
  readonly forkVersion: Hex
  readonly depositContractAddress: Address
  readonly chainId: number
}

/** The service's unsigned transaction. */
export interface ClaimedTransaction {
  readonly chainId: number
  readonly to: Address
  readonly data: Hex
  readonly valueWei: Wei
}

/**
 * Compares the service's answer with what was asked for, rule by rule, all of them. An empty list means: signing this transaction deposits
 * exactly the amount, on this network, for a validator whose money can only return to the withdrawal address.
 * Whether someone has deposited for the public key before is the chain's to say (`depositsFor`), not this function's.
 * `isSigned`: verifies the BLS signature; one that remembers what it has found right saves milliseconds.
 */
export function verifyDeposit(
  given: {
    readonly expected: ExpectedDeposit
    readonly depositData: ClaimedDeposit
    readonly unsignedTransaction: ClaimedTransaction
  },
  isSigned: typeof verifyDepositSignature = verifyDepositSignature,
): readonly DepositMismatch[] {
  const { expected, depositData, unsignedTransaction } = given
  const { network } = expected
  const signature = isSigned(depositData, network.genesisForkVersion)
  const credentials = withdrawalCredentials(expected.credentialsType, expected.withdrawalAddress)
  const lost = unspendable(expected.withdrawalAddress, network)
  const chain = (id: number) => id === network.chainId
  const contract = (address: Address) => sameHex(address, network.depositContractAddress)

  const rules: readonly { readonly code: DepositMismatchCode; readonly holds: () => boolean; readonly message: string }[] = [
    {
      code: 'invalid-pubkey',
      // What it has signed it could only sign as a key.
      holds: () => signature || isValidPubkey(depositData.pubkey),
      message: 'the public key is not a valid BLS12-381 public key',
    },
    {
      code: 'wrong-credentials',
      holds: () => sameHex(depositData.withdrawalCredentials, credentials),
      message: `the withdrawal credentials are not ${credentials}, which spec.withdrawalAddress and spec.credentialsType make`,
    },
    {
      code: 'unspendable-address',
      holds: () => lost === undefined,
      message: `spec.withdrawalAddress ${expected.withdrawalAddress} would lose the stake: ${lost}`,
    },
    {
      code: 'wrong-amount',
      holds: () => depositData.amountGwei === expected.amountGwei,
      message: `the amount of the deposit data is not ${formatEth(expected.amountGwei)} ETH`,
    },
    {
      code: 'invalid-signature',
      holds: () => signature,
      message: "the deposit's BLS signature is not valid for this network, public key, credentials and amount",
    },
    {
      code: 'wrong-message-root',
      holds: () => sameHex(depositData.depositMessageRoot, depositMessageRoot(depositData)),
      message: 'the deposit message root is not that of the deposit data',
    },
    {
      code: 'wrong-data-root',
      holds: () => sameHex(depositData.depositDataRoot, depositDataRoot(depositData)),
      message: 'the deposit data root is not that of the deposit data',
    },
    {
      code: 'wrong-fork-version',
      holds: () => sameHex(depositData.forkVersion, network.genesisForkVersion),
      message: `the fork version is not ${network.genesisForkVersion}, the network's genesis fork version`,
    },
    {
      code: 'wrong-contract',
      holds: () => contract(depositData.depositContractAddress),
      message: `the deposit data names another deposit contract than ${network.depositContractAddress}`,
    },
    {
      code: 'wrong-contract',
      holds: () => contract(unsignedTransaction.to),
      message: `the transaction does not go to the deposit contract ${network.depositContractAddress}`,
    },
    { code: 'wrong-chain', holds: () => chain(depositData.chainId), message: `the deposit data is not for chain id ${network.chainId}` },
    {
      code: 'wrong-chain',
      holds: () => chain(unsignedTransaction.chainId),
      message: `the transaction is not for chain id ${network.chainId}`,
    },
    {
      code: 'wrong-calldata',
      holds: () =>
        sameHex(unsignedTransaction.data, encodeDepositCalldata({ ...depositData, depositDataRoot: depositDataRoot(depositData) })),
      message: "the transaction's data is not the call of deposit() that the deposit data makes, byte for byte",
    },
    {
      code: 'wrong-value',
      holds: () => unsignedTransaction.valueWei === gweiToWei(expected.amountGwei),
      message: `the transaction's value is not ${formatEth(expected.amountGwei)} ETH`,
    },
  ]
  return rules.filter(({ holds }) => !safely(holds)).map(({ code, message }) => ({ code, message }))
}

/** More than are in flight at once; when it is full, it begins anew. */
const MOST_REMEMBERED = 4_096

/** `verifyDepositSignature` that remembers which signatures it has found right, by all that they are of: each is checked several times on its way. */
export function rememberingSignatures(verify: typeof verifyDepositSignature = verifyDepositSignature): typeof verifyDepositSignature {
  const right = new Set<string>()
  return (data, genesisForkVersion) => {
    const { pubkey, withdrawalCredentials: credentials, amountGwei, signature } = data
    const key = [pubkey, credentials, amountGwei, signature, genesisForkVersion].join().toLowerCase()
    if (right.has(key)) return true
    const holds = verify(data, genesisForkVersion)
    if (holds) {
      if (right.size >= MOST_REMEMBERED) right.clear()
      right.add(key)
    }
    return holds
  }
}

/** What can't be computed from malformed data does not hold. */
function safely(holds: () => boolean): boolean {
  try {
    return holds()
  } catch {
    return false
  }
}
