import { type Hex as AnyHex, bytesToHex, numberToHex, recoverAddress } from 'viem'
import type { Address, Hash, Hex } from './chain.ts'

/** The order of secp256k1 (SEC 2, section 2.4.1). */
export const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const HALF_ORDER = CURVE_ORDER >> 1n

/** A signature as a transaction carries it. `s` is in the lower half of the order (EIP-2): of the two that are valid, nodes take that one only. */
export interface EthereumSignature {
  readonly r: bigint
  readonly s: bigint
  readonly yParity: 0 | 1
}

/** Bytes that are no signature, or none of this key. */
export class SignatureError extends Error {
  override readonly name = 'SignatureError'
}

/** r and s of an ECDSA signature in DER (RFC 3279, section 2.2.3), as it must be: no byte too many anywhere. @throws SignatureError */
export function parseDer(der: Uint8Array): { readonly r: bigint; readonly s: bigint } {
  if (der.length < 8 || der[0] !== 0x30 || der[1] !== der.length - 2) throw new SignatureError('is no sequence in DER of its own length')
  const { value: r, end } = readInteger(der, 2)
  const { value: s, end: all } = readInteger(der, end)
  if (all !== der.length) throw new SignatureError('has bytes after its two numbers')
  return { r, s }
}

function readInteger(der: Uint8Array, at: number): { readonly value: bigint; readonly end: number } {
  const length = der[at + 1]
  const first = der[at + 2]
  const second = der[at + 3]
  if (der[at] !== 0x02 || length === undefined || length === 0 || length > 33)
    throw new SignatureError('has something else than two numbers')
  const end = at + 2 + length
  if (end > der.length || first === undefined) throw new SignatureError('ends in the midst of a number')
  if (first >= 0x80) throw new SignatureError('has a negative number')
  if (first === 0 && length > 1 && (second ?? 0) < 0x80) throw new SignatureError('has a number with a zero too many')
  return { value: BigInt(bytesToHex(der.subarray(at + 2, end))), end }
}

const isScalar = (value: bigint): boolean => value > 0n && value < CURVE_ORDER

/**
 * The signature that a transaction needs, of r and s as a key service gives them: `s` is brought into the lower half, and of the recovery ids that one is
 * found which gives the signer's address. @throws SignatureError where neither does: another key has signed, or other bytes were
 */
export async function signatureBy(
  signer: Address,
  digest: Hash,
  { r, s }: { readonly r: bigint; readonly s: bigint },
): Promise<EthereumSignature> {
  if (!isScalar(r) || !isScalar(s)) throw new SignatureError('has a number that is not on the curve')
  const low = s > HALF_ORDER ? CURVE_ORDER - s : s
  for (const yParity of [0, 1] as const) {
    const signature = { r, s: low, yParity }
    if ((await signerOf(digest, signature))?.toLowerCase() === signer.toLowerCase()) return signature
  }
  throw new SignatureError(`is not of the key of ${signer}, or not over what was to be signed`)
}

/** Whose key made a signature over a digest; undefined for one that is of nobody, or whose `s` is high. */
export async function signerOf(digest: Hash, { r, s, yParity }: EthereumSignature): Promise<Address | undefined> {
  if (!isScalar(r) || !isScalar(s) || s > HALF_ORDER) return undefined
  try {
    return (await recoverAddress({ hash: digest, signature: { r: word(r), s: word(s), yParity } })) as Address
  } catch {
    return undefined
  }
}

export const word = (value: bigint): AnyHex => numberToHex(value, { size: 32 })

/** 65 bytes: r, s, and 0 or 1. */
export const formatSignature = ({ r, s, yParity }: EthereumSignature): Hex => `${word(r)}${word(s).slice(2)}0${yParity}` as Hex

/** @returns undefined for what `formatSignature` does not write */
export function parseSignature(text: string): EthereumSignature | undefined {
  const match = /^0x([0-9a-f]{64})([0-9a-f]{64})0([01])$/i.exec(text)
  return match === null ? undefined : { r: BigInt(`0x${match[1]}`), s: BigInt(`0x${match[2]}`), yParity: match[3] === '1' ? 1 : 0 }
}
