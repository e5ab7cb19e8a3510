import { createPrivateKey, sign } from 'node:crypto'
import { encodeBase58 } from '../../chains/solana/base58.ts'
import { encodeOffchainMessage } from '../../chains/solana/challenge.ts'
import { decodeMessage } from '../../chains/solana/message.ts'
import { testAddress } from '../../chains/solana/testing.ts'
import { KeyError, type KeyErrorCode, type SolanaKeys } from '../ports.ts'

/** PKCS #8 of ed25519 (RFC 8410) without its 32 bytes. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const keyOf = (number: number) =>
  createPrivateKey({ key: Buffer.concat([pkcs8Prefix, Buffer.alloc(32, number)]), format: 'der', type: 'pkcs8' })

/** Mounted Solana keys in memory, those of `testKey`, by folder. It remembers all that was signed. */
export function createFakeSolanaKeys(given: ReadonlyMap<string, number>) {
  const mounted = new Map(given)
  const signed: { readonly keyName: string; readonly what: 'message' | 'challenge'; readonly bytes: Uint8Array }[] = []
  const broken = new Map<string, KeyErrorCode>()
  const numberOf = (keyName: string): number => {
    const number = mounted.get(keyName)
    const code = broken.get(keyName) ?? (number === undefined ? 'missing' : undefined)
    if (code !== undefined || number === undefined) throw new KeyError(code ?? 'missing', `keys/${keyName}: ${code}`)
    return number
  }
  const signWith = (keyName: string, expected: string, what: 'message' | 'challenge', bytes: Uint8Array): Uint8Array => {
    const number = numberOf(keyName)
    if (testAddress(number) !== expected) throw new KeyError('address-mismatch', `keys/${keyName}: another address`)
    signed.push({ keyName, what, bytes })
    return new Uint8Array(sign(null, bytes, keyOf(number)))
  }
  const keys: SolanaKeys = {
    address: async (keyName) => testAddress(numberOf(keyName)),
    async signMessage(keyName, expected, message) {
      if (!decodeMessage(message).signers.includes(expected)) throw new RangeError(`the transaction needs no signature of ${expected}`)
      return signWith(keyName, expected, 'message', message)
    },
    signOffchainMessage: async (keyName, expected, text) =>
      encodeBase58(signWith(keyName, expected, 'challenge', encodeOffchainMessage(text))),
  }
  return {
    keys,
    signed,
    /** Mounts another key, by its number, in this folder. */
    mount: (keyName: string, number: number) => mounted.set(keyName, number),
    break: (keyName: string, code: KeyErrorCode) => broken.set(keyName, code),
    mend: (keyName: string) => broken.delete(keyName),
  }
}
