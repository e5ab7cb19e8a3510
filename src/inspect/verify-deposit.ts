import type { Address, ChainReceipt, ChainTransaction, DepositLog, EthereumChain, Hash, Hex, Pubkey } from '../chains/ethereum/chain.ts'
import {
  type CredentialsType,
  type DepositData,
  decodeDepositCalldata,
  decodeDepositLog,
  depositDataRoot,
  depositMessageRoot,
  isValidPubkey,
  verifyDepositSignature,
  withdrawalCredentials,
} from '../chains/ethereum/deposit.ts'
import type { EthereumNetworkConstants } from '../chains/ethereum/networks.ts'
import { unspendable } from '../chains/ethereum/unspendable.ts'
import { formatEth, type Gwei, gwei, gweiToWei } from '../lib/amounts.ts'
import { sameHex } from '../lib/hex.ts'
import type { DepositClaim } from './deposit-claims.ts'
import { sameAs, type Verdict, verdict } from './verdict.ts'
import { verifyClaimedStake } from './verify-claimed-stake.ts'

/** What whoever verifies expects, where they say so. */
export interface Expectation {
  readonly withdrawalAddress?: Address | undefined
  readonly amountGwei?: Gwei | undefined
  readonly credentialsType?: CredentialsType | undefined
  readonly pubkey?: Pubkey | undefined
}

type Network = EthereumNetworkConstants & { readonly name: string }

/** Where the money of credentials can return to: 0x01 and 0x02 are followed by eleven zero bytes and an address. Undefined for others. */
export function payee(credentials: Hex): { readonly type: CredentialsType; readonly address: Address } | undefined {
  const match = /^0x(01|02)(?:00){11}([0-9a-f]{40})$/i.exec(credentials)
  return match === null ? undefined : { type: match[1] === '01' ? '0x01' : '0x02', address: `0x${match[2] ?? ''}` as Address }
}

/** Everything that can be known of a deposit from its data alone, by the consensus specification's own rules. */
export function verifyDepositData(claim: DepositClaim, network: Network, expected: Expectation): readonly Verdict[] {
  const { pubkey, amountGwei, forkVersion, chainId, depositContractAddress: contract } = claim
  return [
    verifyPubkey(pubkey, expected),
    ...verifyPayee(claim.withdrawalCredentials, network, expected),
    verifyAmount(amountGwei, expected),
    verdict(
      'signature',
      verifyDepositSignature(claim, network.genesisForkVersion),
      `of the public key over credentials and amount, for ${network.name} (fork version ${network.genesisForkVersion})`,
    ),
    ...sameAs('deposit message root', claim.depositMessageRoot, depositMessageRoot(claim)),
    ...sameAs('deposit data root', claim.depositDataRoot, depositDataRoot(claim)),
    ...sameAs('fork version', forkVersion, network.genesisForkVersion),
    ...sameAs('deposit contract', contract, network.depositContractAddress),
    ...sameAs('chain id', chainId, network.chainId),
    ...verifyClaimedStake(claim, network),
  ]
}

function verifyPubkey(pubkey: Pubkey, expected: Expectation): Verdict {
  if (expected.pubkey !== undefined && !sameHex(pubkey, expected.pubkey))
    return verdict('public key', false, `${pubkey}, and it should be ${expected.pubkey}`)
  return verdict('public key', isValidPubkey(pubkey), pubkey)
}

function verifyPayee(credentials: Hex, network: Network, expected: Expectation): readonly Verdict[] {
  const paid = payee(credentials)
  if (paid === undefined)
    return [verdict('withdrawal credentials', false, `${credentials} is neither 0x01 nor 0x02 with eleven zero bytes and an address`)]
  const lost = unspendable(paid.address, network)
  const { withdrawalAddress, credentialsType } = expected
  const right = withdrawalAddress === undefined ? undefined : withdrawalCredentials(credentialsType ?? paid.type, withdrawalAddress)
  return [
    verdict(
      'withdrawal credentials',
      (right === undefined || sameHex(credentials, right)) && (credentialsType === undefined || credentialsType === paid.type),
      right === undefined || sameHex(credentials, right)
        ? `${paid.type}: the money can return to ${paid.address} alone`
        : `the money would return to ${paid.address} (${paid.type}), and it should be ${withdrawalAddress} (${credentialsType ?? paid.type})`,
    ),
    ...(lost === undefined ? [] : [verdict('withdrawal address', false, `${paid.address} would lose the stake: ${lost}`)]),
  ]
}

const LEAST = gwei(1_000_000_000n)
/** The consensus layer counts in 64 bits: what is more would be signed, and hashed, as another amount. */
const MOST = gwei(2n ** 64n - 1n)
function verifyAmount(amount: Gwei, { amountGwei: expected }: Expectation): Verdict {
  if (expected !== undefined && amount !== expected)
    return verdict('amount', false, `${formatEth(amount)} ETH, and it should be ${formatEth(expected)} ETH`)
  if (amount < LEAST) return verdict('amount', false, `${formatEth(amount)} ETH: the contract takes no less than 1 ETH`)
  if (amount > MOST) return verdict('amount', false, `${formatEth(amount)} ETH: no deposit can be of so much`)
  const alone = amount < gwei(32_000_000_000n) ? ': a validator is not active under 32 ETH' : ''
  return verdict('amount', true, `${formatEth(amount)} ETH${alone}`)
}

/** What a transaction deposits, read from its own calldata and value. @throws DepositEncodingError */
export function depositOf({
  data,
  valueWei,
}: Pick<ChainTransaction, 'data' | 'valueWei'>): DepositData & { readonly depositDataRoot: Hex } {
  const call = decodeDepositCalldata(data)
  return { ...call, amountGwei: gwei(valueWei / 1_000_000_000n) }
}

/** Of a mined transaction: that it is the deposit, that it is in the chain for good, and that the contract logged just that. */
export function verifyLanding(
  given: {
    readonly hash: Hash
    readonly transaction: ChainTransaction
    readonly receipt: ChainReceipt | undefined
    readonly isFinal: 'agreed' | 'disagreed' | 'unknown'
    readonly final: bigint
  },
  network: Network,
): readonly Verdict[] {
  const { transaction, receipt, isFinal, final } = given
  const toContract = transaction.to !== undefined && sameHex(transaction.to, network.depositContractAddress)
  const deposit = safely(() => depositOf(transaction))
  const verdicts: Verdict[] = [
    verdict(
      'to',
      toContract,
      toContract
        ? 'it calls the deposit contract'
        : `it goes to ${transaction.to ?? 'no address'}, and the deposit contract is ${network.depositContractAddress}`,
    ),
    verdict(
      'calldata',
      deposit !== undefined,
      deposit === undefined ? 'it is not one call of deposit() in its canonical encoding' : 'one call of deposit(), byte for byte',
    ),
  ]
  if (deposit !== undefined)
    verdicts.push(
      verdict('value', transaction.valueWei === gweiToWei(deposit.amountGwei), `${formatEth(deposit.amountGwei)} ETH`),
      verdict('data root of the call', sameHex(deposit.depositDataRoot, depositDataRoot(deposit)), deposit.depositDataRoot),
    )
  if (receipt === undefined)
    return [
      ...verdicts,
      verdict('mined', 'unknown', `no node of ${network.name} that answers shows it in a block yet: verify it again once it is mined`),
    ]
  verdicts.push(
    verdict(
      'success',
      receipt.success,
      receipt.success ? `in block ${receipt.blockNumber}` : `it was reverted in block ${receipt.blockNumber}`,
    ),
    verdict(
      'final',
      isFinal === 'unknown' ? 'unknown' : isFinal === 'agreed',
      isFinal === 'agreed'
        ? 'every node has it in the same block, with the same outcome, and that block as final'
        : isFinal === 'disagreed'
          ? 'the nodes disagree about its block, or about what it did there'
          : `not every node shows it in block ${receipt.blockNumber} and has that as final yet (final is ${final})`,
    ),
  )
  if (deposit !== undefined) verdicts.push(verifyLog(receipt, deposit, network))
  return verdicts
}

function verifyLog(receipt: ChainReceipt, deposit: DepositData, network: Network): Verdict {
  const logged = receipt.logs
    .filter(({ address }) => sameHex(address, network.depositContractAddress))
    .map((log) => safely(() => decodeDepositLog(log)))
    .find(
      (log) =>
        log !== undefined &&
        sameHex(log.pubkey, deposit.pubkey) &&
        sameHex(log.withdrawalCredentials, deposit.withdrawalCredentials) &&
        sameHex(log.signature, deposit.signature) &&
        log.amountGwei === deposit.amountGwei,
    )
  return verdict(
    'event',
    logged !== undefined,
    logged === undefined ? 'the contract logged no such deposit' : `deposit number ${logged.index} of the contract`,
  )
}

/** Whoever deposits first for a key says where its money goes; later ones only add to it. */
export function verifyFirst(deposits: readonly DepositLog[], hash: Hash): Verdict {
  const [first] = deposits
  if (first === undefined) return verdict('first deposit', 'unknown', 'the contract has none for this key yet')
  return sameHex(first.transactionHash, hash)
    ? verdict('first deposit', true, 'it is the first one for its public key: its credentials are the validator’s')
    : verdict(
        'first deposit',
        false,
        `transaction ${first.transactionHash} came first, with credentials ${first.withdrawalCredentials}: this deposit only adds to that validator`,
      )
}

/**
 * Of a deposit that may not be paid yet, by all deposits for its key: whether it is the first one, or would be.
 * @param deposits in their order
 */
export function verifyNoneBefore(claim: DepositClaim, deposits: readonly DepositLog[]): Verdict {
  const [first] = deposits
  if (first === undefined) return verdict('first deposit', true, 'the contract has none for its public key yet')
  const isThis =
    sameHex(first.withdrawalCredentials, claim.withdrawalCredentials) &&
    sameHex(first.signature, claim.signature) &&
    first.amountGwei === claim.amountGwei
  return isThis
    ? verdict(
        'first deposit',
        true,
        `it was paid by transaction ${first.transactionHash}, as the first one for its public key: paid once more, it only adds to that validator`,
      )
    : verdict(
        'first deposit',
        false,
        `transaction ${first.transactionHash} came first, with credentials ${first.withdrawalCredentials}: this deposit would only add to that validator`,
      )
}

/** Whoever pays a list pays each entry: the second one for a key is no stake of its own. */
export function verifyOnceInList(claim: DepositClaim, all: readonly DepositClaim[]): readonly Verdict[] {
  const places = all.flatMap(({ pubkey }, index) => (sameHex(pubkey, claim.pubkey) ? [index] : []))
  return places.length < 2
    ? []
    : [
        verdict(
          'one deposit for a key',
          false,
          `entries ${places.join(', ')} of the file are for the same public key: what is paid after the first only adds to that validator`,
        ),
      ]
}

/** Looks a transaction up and verifies it whole. @throws ChainError */
export async function verifyTransaction(
  chain: Pick<EthereumChain, 'transaction' | 'receipt' | 'finalEverywhere' | 'head' | 'depositsFor'>,
  {
    hash,
    network,
    expected,
    withHistory,
  }: { readonly hash: Hash; readonly network: Network; readonly expected: Expectation; readonly withHistory: boolean },
  signal: AbortSignal,
): Promise<readonly Verdict[]> {
  const transaction = await chain.transaction(hash, signal)
  // That it is not there proves nothing: it may not have been sent, or not have come to these nodes.
  if (transaction === undefined)
    return [
      verdict(
        'transaction',
        'unknown',
        `no node of ${network.name} that answers knows ${hash} yet: compare hash and network with where it was sent, and verify it again later`,
      ),
    ]
  const receipt = await chain.receipt(hash, signal)
  const { final } = await chain.head(signal)
  const isFinal =
    receipt === undefined
      ? 'unknown'
      : // ▸ One node gave the receipt: that it is in that block, and what it did there, every node must show.
        await chain.finalEverywhere({ number: receipt.blockNumber, hash: receipt.blockHash, holds: { hash, receipt } }, signal)
  const landing = verifyLanding({ hash, transaction, receipt, isFinal, final }, network)
  const deposit = safely(() => depositOf(transaction))
  if (deposit === undefined) return landing
  const claim: DepositClaim = {
    ...deposit,
    depositMessageRoot: undefined,
    depositDataRoot: undefined,
    forkVersion: undefined,
    depositContractAddress: undefined,
    chainId: undefined,
  }
  return [
    ...verifyDepositData(claim, network, expected),
    ...landing,
    withHistory
      ? verifyFirst(await chain.depositsFor(deposit.pubkey, signal), hash)
      : {
          ...verdict('first deposit', 'unknown', 'earlier deposits for the key were not looked for: --history reads all of the contract'),
          notAsked: true,
        },
  ]
}

function safely<T>(compute: () => T): T | undefined {
  try {
    return compute()
  } catch {
    return undefined
  }
}
