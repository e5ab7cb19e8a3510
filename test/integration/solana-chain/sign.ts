import { createPrivateKey, sign as signEd25519 } from 'node:crypto'

/** PKCS #8 of ed25519 (RFC 8410) without its 32 bytes. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

/** An ed25519 signature by a key of 64 bytes, seed first. */
export function sign(secretKey: Uint8Array, bytes: Uint8Array): Uint8Array {
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, secretKey.subarray(0, 32)]), format: 'der', type: 'pkcs8' })
  return new Uint8Array(signEd25519(null, bytes, key))
}
