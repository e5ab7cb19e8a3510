import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { Message, VersionedMessage } from '@solana/web3.js'
import { addressBytes, type Blockhash, type SolanaAddress, type SolanaSignature, signatureBytes } from './addresses.ts'
import { decodeBase58, encodeBase58 } from './base58.ts'
import { maxTransactionBytes } from './programs.ts'
import { createReader, LayoutError } from './reader.ts'

export interface DecodedInstruction {
  readonly program: SolanaAddress
  readonly accounts: readonly SolanaAddress[]
  readonly data: Uint8Array
}

/** A legacy message: what every signer signs. */
export interface DecodedMessage {
  readonly feePayer: SolanaAddress
  /** The fee payer first. */
  readonly signers: readonly SolanaAddress[]
  /** All accounts, in order; the signers first. */
  readonly accounts: readonly SolanaAddress[]
  readonly writable: ReadonlySet<SolanaAddress>
  readonly recentBlockhash: Blockhash
  readonly instructions: readonly DecodedInstruction[]
}

/** Bytes that are no legacy message, or not the only encoding of one. */
export class MessageError extends Error {
  override readonly name = 'MessageError'
  /** `versioned`: it is a message, of a newer version, which may load accounts by lookup tables. */
  readonly code: 'malformed' | 'versioned' | 'lookup-table'
  constructor(code: MessageError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Decodes a legacy message. Only the canonical encoding is accepted (no trailing bytes, no overlong lengths), since what is verified must be
 * all that is signed; every index must name an account, and no account may stand twice.
 * @throws MessageError
 */
export function decodeMessage(bytes: Uint8Array): DecodedMessage {
  if (bytes.length > maxTransactionBytes) throw new MessageError('malformed', 'the message is longer than a transaction may be')
  if (((bytes[0] ?? 0) & 0x80) !== 0) throw versioned(bytes)
  let message: Message
  try {
    message = Message.from(bytes)
    if (!Buffer.from(message.serialize()).equals(bytes)) throw new Error('another encoding')
  } catch {
    throw new MessageError('malformed', 'the bytes are not the canonical encoding of a message')
  }
  const accounts = message.accountKeys.map((key) => key.toBase58())
  const { numRequiredSignatures, numReadonlySignedAccounts, numReadonlyUnsignedAccounts } = message.header
  const feePayer = accounts[0]
  if (
    feePayer === undefined ||
    numRequiredSignatures === 0 ||
    numReadonlySignedAccounts >= numRequiredSignatures ||
    numRequiredSignatures + numReadonlyUnsignedAccounts > accounts.length
  )
    throw new MessageError('malformed', 'the header of the message contradicts its accounts')
  if (new Set(accounts).size !== accounts.length) throw new MessageError('malformed', 'the message names an account twice')
  const at = (index: number): SolanaAddress => {
    const account = accounts[index]
    if (account === undefined) throw new MessageError('malformed', 'an instruction names an account that the message does not hold')
    return account
  }
  return {
    feePayer,
    signers: accounts.slice(0, numRequiredSignatures),
    accounts,
    writable: new Set(accounts.filter((_, index) => message.isAccountWritable(index))),
    recentBlockhash: message.recentBlockhash,
    instructions: message.instructions.map(({ programIdIndex, accounts: indexes, data }) => ({
      program: at(programIdIndex),
      accounts: indexes.map(at),
      data: decodeData(data),
    })),
  }
}

/** web3.js gives instruction data as base58; as many characters as a whole packet may need. */
const decodeData = (text: string): Uint8Array => decodeBase58(text, 2 * maxTransactionBytes) ?? new Uint8Array()

function versioned(bytes: Uint8Array): MessageError {
  try {
    const message = VersionedMessage.deserialize(bytes)
    if (message.addressTableLookups.length > 0) return new MessageError('lookup-table', 'the message loads accounts from a lookup table')
    return new MessageError('versioned', `the message has version ${message.version}, not the legacy form`)
  } catch {
    return new MessageError('malformed', 'the bytes are not a message')
  }
}

/** A transaction's two parts. Empty signatures are 64 zero bytes. @throws LayoutError */
export function splitTransaction(bytes: Uint8Array): { readonly signatures: readonly Uint8Array[]; readonly message: Uint8Array } {
  const what = 'the transaction'
  if (bytes.length > maxTransactionBytes) throw new LayoutError(`${what} is longer than ${maxTransactionBytes} bytes`)
  const reader = createReader(bytes, what)
  const count = reader.u8()
  // More than 127 signatures don't fit, so that the length is one byte.
  if (count === 0 || count > 12) throw new LayoutError(`${what} has no signatures, or more than fit`)
  const signatures = Array.from({ length: count }, () => reader.bytes(64))
  return { signatures, message: reader.bytes(reader.remaining()) }
}

/**
 * A transaction of a message and the signatures of its signers, in the message's order; those that lack are 64 zero bytes.
 * @throws LayoutError when it does not fit into a packet.
 */
export function joinTransaction(message: Uint8Array, signatures: ReadonlyMap<SolanaAddress, Uint8Array> = new Map()): Uint8Array {
  const { signers } = decodeMessage(message)
  const parts = signers.map((signer) => signatures.get(signer) ?? new Uint8Array(64))
  const bytes = Buffer.concat([Uint8Array.of(signers.length), ...parts, message])
  if (bytes.length > maxTransactionBytes) throw new LayoutError(`the transaction is longer than ${maxTransactionBytes} bytes`)
  return bytes
}

/** The name of a transaction: its fee payer's signature. @throws LayoutError when that is empty. */
export function transactionSignature(transaction: Uint8Array): SolanaSignature {
  const [first] = splitTransaction(transaction).signatures
  if (first === undefined || first.every((byte) => byte === 0)) throw new LayoutError('the transaction is not signed by its fee payer')
  return encodeBase58(first)
}

/** Whether a signature is this signer's of these bytes (ed25519). False for whatever is malformed. */
export function verifySignature(signer: SolanaAddress, bytes: Uint8Array, signature: SolanaSignature | Uint8Array): boolean {
  try {
    const raw = typeof signature === 'string' ? signatureBytes(signature) : signature
    return raw.length === 64 && verify(null, bytes, ed25519Key(signer), raw)
  } catch {
    return false
  }
}

/** SubjectPublicKeyInfo of ed25519 (RFC 8410) without its 32 bytes. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')
const ed25519Key = (signer: SolanaAddress): KeyObject =>
  createPublicKey({ key: Buffer.concat([spkiPrefix, addressBytes(signer)]), format: 'der', type: 'spki' })

/** For status and logs, where the message itself is too long. */
export const messageDigest = (message: Uint8Array): string => createHash('sha256').update(message).digest('hex')
