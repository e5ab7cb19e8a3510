import { PublicKey } from '@solana/web3.js'
import { decodeBase58, encodeBase58 } from './base58.ts'

/** Base58 of 32 bytes. */
export type SolanaAddress = string
/** Base58 of 64 bytes. */
export type SolanaSignature = string
/** Base58 of 32 bytes. */
export type Blockhash = string

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

/** Whether a key can exist that signs for the address. Derived addresses (a stake account's, a program's) are off the curve. */
export const isOnCurve = (text: SolanaAddress): boolean => isAddress(text) && PublicKey.isOnCurve(addressBytes(text))
