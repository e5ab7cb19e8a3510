import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { addressOf, type SolanaAddress } from '../../chains/solana/addresses.ts'
import { decodeBase58, encodeBase58 } from '../../chains/solana/base58.ts'
import { encodeOffchainMessage, mayBeTransaction } from '../../chains/solana/challenge.ts'
import { decodeMessage } from '../../chains/solana/message.ts'
import { wrongShape } from '../../lib/secret-shape.ts'
import { shareNextCallBy } from '../../lib/shared-call.ts'
import { KeyError, type SolanaKeys } from '../ports.ts'
import { type FileLimits, type KeyFiles, readKeyFiles } from './key-files.ts'

const limits: FileLimits = { 'keypair.json': 4096, privateKey: 1024 }

/**
 * Solana keys in mounted Secrets: `<dir>/<keyName>/keypair.json` (64 numbers, as solana-keygen writes it, or their base58) or `<dir>/<keyName>/privateKey` (the same 64
 * bytes in base58, as wallets export them); or the same as `<dir>/<keyName>.keypair.json` and so on. The first 32 bytes are the seed, the last 32 the address, which must be the seed's. The files are
 * read for each use, so that a rotated Secret counts at once; nothing is kept.
 */
export function createSolanaKeys({ dir }: { readonly dir: string }): SolanaKeys {
  // What is asked for at the same time is read once, and never before it was asked for.
  const readFiles = shareNextCallBy((keyName: string) => readKeyFiles(dir, keyName, limits))
  const keyOf = async (keyName: string, signal: AbortSignal) => {
    signal.throwIfAborted()
    const key = readKey(await readFiles(keyName, signal))
    signal.throwIfAborted()
    return key
  }
  const signWith = async (keyName: string, expected: SolanaAddress, bytes: Uint8Array, signal: AbortSignal): Promise<Uint8Array> => {
    const { address, key } = await keyOf(keyName, signal)
    if (address !== expected) {
      throw new KeyError(
        'address-mismatch',
        `the key "${keyName}" is that of ${address}, not of ${expected}: mount the right key or correct the signer's address`,
      )
    }
    return new Uint8Array(sign(null, bytes, key))
  }

  return {
    address: async (keyName, signal) => (await keyOf(keyName, signal)).address,

    signMessage: async (keyName, expected, message, signal) => {
      if (!decodeMessage(message).signers.includes(expected))
        throw new RangeError(`the transaction does not need a signature of ${expected}`)
      return signWith(keyName, expected, message, signal)
    },

    signOffchainMessage: async (keyName, expected, text, signal) => {
      const bytes = encodeOffchainMessage(text)
      // The envelope makes this impossible; a signature that moved money must not hang on one line elsewhere.
      if (mayBeTransaction(bytes)) throw new RangeError('the off-chain message can be read as a transaction')
      return encodeBase58(await signWith(keyName, expected, bytes, signal))
    },
  }
}

/** PKCS #8 of ed25519 (RFC 8410) without its 32 bytes. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

function readKey({ place, pathOf, files }: KeyFiles): { readonly address: SolanaAddress; readonly key: KeyObject } {
  const keypair = files.get('keypair.json')
  const plain = files.get('privateKey')
  if (keypair !== undefined && plain !== undefined)
    throw new KeyError('malformed', `${place} holds both keypair.json and privateKey: choose one and remove the other`)
  if (keypair !== undefined) return toKey(parseKeypair(keypair, pathOf('keypair.json')), pathOf('keypair.json'))
  if (plain !== undefined) return toKey(parseBase58(plain, pathOf('privateKey')), pathOf('privateKey'))
  throw new KeyError('missing', `${place} holds no key: it needs keypair.json as solana-keygen writes it, or privateKey in base58`)
}

function parseKeypair(content: Buffer, shown: string): Uint8Array {
  // Base58 has no bracket: what wallets export, under the name that people know.
  const bytes = decodeBase58(content.toString('latin1').trim())
  if (bytes?.length === 64) return bytes
  let value: unknown
  try {
    value = JSON.parse(content.toString('utf8'))
  } catch {
    // JSON.parse's own message quotes the content.
    throw new KeyError(
      'malformed',
      `${shown} must hold the 64 numbers that solana-keygen writes, as JSON, or the same 64 bytes in base58${wrongShape(content)}`,
    )
  }
  if (!Array.isArray(value) || value.length !== 64 || !value.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 255))
    throw new KeyError('malformed', `${shown} must hold an array of 64 numbers from 0 to 255, as solana-keygen writes it`)
  return Uint8Array.from(value as readonly number[])
}

function parseBase58(content: Buffer, shown: string): Uint8Array {
  const bytes = decodeBase58(content.toString('latin1').trim())
  if (bytes?.length !== 64)
    throw new KeyError('malformed', `${shown} must hold a private key of 64 bytes in base58, and nothing else${wrongShape(content)}`)
  return bytes
}

function toKey(bytes: Uint8Array, shown: string): { readonly address: SolanaAddress; readonly key: KeyObject } {
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, bytes.subarray(0, 32)]), format: 'der', type: 'pkcs8' })
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
  if (!publicKey.equals(bytes.subarray(32)))
    throw new KeyError('malformed', `${shown} holds two halves that do not belong together: it is damaged, or not a Solana key`)
  return { address: addressOf(publicKey), key }
}
