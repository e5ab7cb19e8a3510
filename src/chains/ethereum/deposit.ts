import { PublicKey, SecretKey, Signature, verify } from '@chainsafe/blst'
import { ByteVectorType, ContainerType, UintBigintType } from '@chainsafe/ssz'
import { bytesToHex, hexToBytes } from 'viem'
import type { Gwei } from '../../lib/amounts.ts'
import type { Address, Hex, Pubkey } from './chain.ts'

export * from './deposit-abi.ts'

/** The prefix of the withdrawal credentials. `0x01`: execution address, 32 ETH. `0x02`: compounding, up to 2048 ETH (EIP-7251). */
export type CredentialsType = '0x01' | '0x02'

/** What a validator's key signs. */
export interface DepositMessage {
  readonly pubkey: Pubkey
  readonly withdrawalCredentials: Hex
  readonly amountGwei: Gwei
}
/** What the deposit contract takes. */
export interface DepositData extends DepositMessage {
  readonly signature: Hex
}
export interface SignedDeposit extends DepositData {
  readonly depositMessageRoot: Hex
  readonly depositDataRoot: Hex
}

const bytes4 = new ByteVectorType(4)
const bytes32 = new ByteVectorType(32)
const uint64 = new UintBigintType(8)
const messageFields = { pubkey: new ByteVectorType(48), withdrawalCredentials: bytes32, amount: uint64 }
// consensus-specs, phase0/beacon-chain.md: Containers.
const DepositMessageSsz = new ContainerType(messageFields)
const DepositDataSsz = new ContainerType({ ...messageFields, signature: new ByteVectorType(96) })
const ForkDataSsz = new ContainerType({ currentVersion: bytes4, genesisValidatorsRoot: bytes32 })
const SigningDataSsz = new ContainerType({ objectRoot: bytes32, domain: bytes32 })

/** consensus-specs, phase0/beacon-chain.md: DOMAIN_DEPOSIT. */
const domainDeposit = Uint8Array.of(3, 0, 0, 0)

/** The prefix, eleven zero bytes, the address (consensus-specs, ETH1_ADDRESS_WITHDRAWAL_PREFIX and COMPOUNDING_WITHDRAWAL_PREFIX). */
export const withdrawalCredentials = (type: CredentialsType, address: Address): Hex => {
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) throw new TypeError('a withdrawal address has 20 bytes')
  return `${type}${'00'.repeat(11)}${address.slice(2).toLowerCase()}`
}

/**
 * The domain of deposits: the network's *genesis* fork version and a zero validators root, so that deposits stay valid over forks and
 * before genesis (consensus-specs, phase0/beacon-chain.md: compute_domain, process_deposit).
 */
export const computeDepositDomain = (genesisForkVersion: Hex): Hex => bytesToHex(depositDomain(genesisForkVersion))

function depositDomain(genesisForkVersion: Hex): Uint8Array {
  const forkDataRoot = ForkDataSsz.hashTreeRoot({
    currentVersion: hexToBytes(genesisForkVersion),
    genesisValidatorsRoot: new Uint8Array(32),
  })
  const domain = new Uint8Array(32)
  domain.set(domainDeposit)
  domain.set(forkDataRoot.subarray(0, 28), 4)
  return domain
}

const messageRoot = (message: DepositMessage): Uint8Array =>
  DepositMessageSsz.hashTreeRoot({
    pubkey: hexToBytes(message.pubkey),
    withdrawalCredentials: hexToBytes(message.withdrawalCredentials),
    amount: message.amountGwei,
  })

/** hash_tree_root(DepositMessage). Throws on fields of the wrong length. */
export const depositMessageRoot = (message: DepositMessage): Hex => bytesToHex(messageRoot(message))

/** hash_tree_root(DepositData): the contract recomputes it and refuses another. Throws on fields of the wrong length. */
export const depositDataRoot = (data: DepositData): Hex =>
  bytesToHex(
    DepositDataSsz.hashTreeRoot({
      pubkey: hexToBytes(data.pubkey),
      withdrawalCredentials: hexToBytes(data.withdrawalCredentials),
      amount: data.amountGwei,
      signature: hexToBytes(data.signature),
    }),
  )

const signingRoot = (message: DepositMessage, genesisForkVersion: Hex): Uint8Array =>
  SigningDataSsz.hashTreeRoot({ objectRoot: messageRoot(message), domain: depositDomain(genesisForkVersion) })

/** The 32 bytes that the validator's key signs (compute_signing_root). */
export const depositSigningRoot = (message: DepositMessage, genesisForkVersion: Hex): Hex =>
  bytesToHex(signingRoot(message, genesisForkVersion))

/**
 * Signs a deposit with a validator's key (32 bytes). BLS signatures are deterministic: the same deposit has the same signature.
 * Throws when the key is none.
 */
export function signDepositMessage(
  secretKey: Uint8Array,
  deposit: { readonly withdrawalCredentials: Hex; readonly amountGwei: Gwei; readonly genesisForkVersion: Hex },
): SignedDeposit {
  const key = SecretKey.fromBytes(secretKey)
  const message = {
    pubkey: bytesToHex(key.toPublicKey().toBytes()),
    withdrawalCredentials: deposit.withdrawalCredentials,
    amountGwei: deposit.amountGwei,
  }
  const data = { ...message, signature: bytesToHex(key.sign(signingRoot(message, deposit.genesisForkVersion)).toBytes()) }
  return { ...data, depositMessageRoot: depositMessageRoot(message), depositDataRoot: depositDataRoot(data) }
}

/** A compressed point of G1 in the right subgroup and not at infinity (BLS KeyValidate). */
export function isValidPubkey(pubkey: Pubkey): boolean {
  try {
    const bytes = hexToBytes(pubkey)
    if (bytes.length !== 48) return false
    PublicKey.fromBytes(bytes, true)
    return true
  } catch {
    return false
  }
}

/**
 * Whether the deposit's signature is the pubkey's own under the network's deposit domain. The contract does not check this: the consensus
 * layer drops a deposit with a wrong one, and the money is lost. Never throws: malformed is false.
 */
export function verifyDepositSignature(data: DepositData, genesisForkVersion: Hex): boolean {
  try {
    const signature = hexToBytes(data.signature)
    if (signature.length !== 96 || !isValidPubkey(data.pubkey)) return false
    const key = PublicKey.fromBytes(hexToBytes(data.pubkey), true)
    return verify(signingRoot(data, genesisForkVersion), key, Signature.fromBytes(signature, true), true, true)
  } catch {
    return false
  }
}
