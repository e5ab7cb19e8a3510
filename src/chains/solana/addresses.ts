import { PublicKey } from '@solana/web3.js'
import type { SolanaAddress } from '../../lib/chain-types.ts'
import { decodeBase58, encodeBase58 } from './base58.ts'

export type { Blockhash, Signature as SolanaSignature, SolanaAddress } from '../../lib/chain-types.ts'

export class AddressError extends Error {
  override readonly name = 'AddressError'
}

export const isAddress = (text: string): boolean => decodeBase58(text)?.length === 32
export const isSignature = (text: string): boolean => decodeBase58(text)?.length === 64

/** The 32 bytes of an address or blockhash. @throws AddressError */
export function addressBytes(text: string, what = 'a Solana address'): Uint8Array {
  const bytes = decodeBase58(text)
  if (bytes?.length !== 32) throw new AddressError(`"${text.slice(0, 50)}" is not ${what}: base58 of 32 bytes`)
  return bytes
}

/** The 64 bytes of a signature. @throws AddressError */
export function signatureBytes(text: string): Uint8Array {
  const bytes = decodeBase58(text)
  if (bytes?.length !== 64) throw new AddressError('the text is not a Solana signature: base58 of 64 bytes')
  return bytes
}

export const addressOf = (bytes: Uint8Array): SolanaAddress => encodeBase58(bytes)
export const publicKey = (text: SolanaAddress): PublicKey => new PublicKey(addressBytes(text))

/**
 * Whether a key can exist that signs for the address. Derived addresses (a stake account's, a program's) are off the curve; a point of small order is on it,
 * and counts as off.
 */
export const isOnCurve = (text: SolanaAddress): boolean => isAddress(text) && PublicKey.isOnCurve(addressBytes(text)) && !isSmallOrder(text)

/**
 * The encodings of ed25519's points of small order, without the sign bit, in hex: 1111…1 (the System program, y = 0) is one. No secret key has such a
 * public key, and the runtime's strict verification refuses every signature by one. Source: RFC 7748's and ed25519-dalek's EIGHT_TORSION, and the
 * encodings that are not reduced (libsodium, ge25519_has_small_order).
 */
const smallOrder: ReadonlySet<string> = new Set([
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
])

/** Whether an address is a point of small order, for which nobody can sign. */
export function isSmallOrder(text: SolanaAddress): boolean {
  const bytes = Buffer.from(addressBytes(text))
  bytes[31] = (bytes[31] ?? 0) & 0x7f
  return smallOrder.has(bytes.toString('hex'))
}
