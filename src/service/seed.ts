import { createHash, createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { deriveKeyFromMnemonic } from '@chainsafe/bls-keygen'
import { SecretKey } from '@chainsafe/blst'
import type { Pubkey } from '../chains/ethereum/chain.ts'

/** A seed file that can't be used. The message names the file and the mend, never its content. */
export class SeedError extends Error {
  override readonly name = 'SeedError'
}

/** The validators' BLS keys. The seed itself stays in here. */
export interface ValidatorKeys {
  /** Tells seeds apart without telling anything of them. */
  readonly fingerprint: string
  /** The signing key m/12381/3600/index/0/0 (EIP-2334). @throws RangeError */
  derive(index: bigint): ValidatorKey
  /** HMAC-SHA-256 of a text, under a key that only the seed gives. */
  mac(text: string): Buffer
}

export interface ValidatorKey {
  readonly publicKey: Pubkey
  /** 32 bytes. */
  readonly secretKey: Uint8Array
}

/** EIP-2333 takes indices below 2^32. */
const maxIndex = (1n << 32n) - 1n

export const keyPath = (index: bigint): string => `m/12381/3600/${index}/0/0`

/**
 * Reads a seed: 32 to 64 bytes in hex (used as they are), or a BIP-39 mnemonic of 24 English words (without a passphrase, as the
 * Ethereum staking deposit tools use it, so that these can restore the keys as well). Either has at least 256 bits of entropy.
 * @throws SeedError
 */
export async function readSeedFile(path: string): Promise<ValidatorKeys> {
  let text: string
  try {
    text = (await readFile(path, 'utf8')).trim()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw new SeedError(`the seed file ${path} cannot be read (${code}): mount the Secret, and check seedFile in the configuration`)
  }
  return createValidatorKeys(parseSeed(text, path))
}

/**
 * The master key of a seed.
 * @param from What the text was read from, for the message.
 * @throws SeedError
 */
export function parseSeed(text: string, from: string): SecretKey {
  const hex = /^(?:0x)?([0-9a-fA-F]+)$/.exec(text)?.[1]
  if (hex !== undefined) {
    if (hex.length % 2 !== 0 || hex.length < 64 || hex.length > 128) {
      throw new SeedError(`${from} holds hex of the wrong length: a seed is 32 to 64 bytes`)
    }
    const bytes = Buffer.from(hex, 'hex')
    if (new Set(bytes).size < 8) throw new SeedError(`${from} is not random: make a seed with "openssl rand -hex 32"`)
    return SecretKey.deriveMasterEip2333(bytes)
  }
  const words = text.toLowerCase().split(/\s+/)
  const wrong = new SeedError(`${from} is neither 32 to 64 bytes in hex nor a BIP-39 mnemonic of 24 English words with a valid checksum`)
  if (words.length !== 24) throw wrong
  try {
    return SecretKey.fromBytes(deriveKeyFromMnemonic(words.join(' ')))
  } catch {
    throw wrong
  }
}

/** Derivation is native (blst), and the parent m/12381/3600 is derived once: a key costs three steps. */
export function createValidatorKeys(master: SecretKey): ValidatorKeys {
  const macKey = createHmac('sha256', master.toBytes()).update('staking-operator mac').digest()
  const parent = master.deriveChildEip2333(12381).deriveChildEip2333(3600)
  return {
    fingerprint: createHash('sha256').update(master.toPublicKey().toBytes()).digest('hex'),
    mac: (text) => createHmac('sha256', macKey).update(text).digest(),
    derive: (index) => {
      if (index < 0n || index > maxIndex) throw new RangeError(`the key index ${index} is out of range`)
      const key = parent.deriveChildEip2333(Number(index)).deriveChildEip2333(0).deriveChildEip2333(0)
      return { publicKey: `0x${Buffer.from(key.toPublicKey().toBytes()).toString('hex')}` as const, secretKey: key.toBytes() }
    },
  }
}
