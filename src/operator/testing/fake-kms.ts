import { createECDH, createPrivateKey, createPublicKey } from 'node:crypto'
import { keccak256, numberToHex } from 'viem'
import type { Hex } from '../../chains/ethereum/chain.ts'
import { CURVE_ORDER } from '../../chains/ethereum/signature.ts'
import { createAwsKms } from '../keys/remote/aws-kms.ts'
import { createGate } from '../keys/remote/gate.ts'
import type { RemoteHttp } from '../keys/remote/remote-http.ts'
import { remoteEthereumKey } from '../keys/remote/remote-keys.ts'
import { type Clock, type EthereumKeys, KeyError } from '../ports.ts'

/** r and s as KMS gives them: DER (RFC 3279). */
export function toDer(r: bigint, s: bigint): Uint8Array {
  const integer = (value: bigint): number[] => {
    const bytes = [...Buffer.from(value.toString(16).padStart(value.toString(16).length + (value.toString(16).length % 2), '0'), 'hex')]
    const signed = (bytes[0] ?? 0) >= 0x80 ? [0, ...bytes] : bytes
    return [0x02, signed.length, ...signed]
  }
  const body = [...integer(r), ...integer(s)]
  return Uint8Array.from([0x30, body.length, ...body])
}

/** The public key of a private one, in DER (SubjectPublicKeyInfo). */
export function spkiOf(key: Hex): Uint8Array {
  const sec1 = Buffer.concat([
    Buffer.from('302e0201010420', 'hex'),
    Buffer.from(key.slice(2), 'hex'),
    Buffer.from('a00706052b8104000a', 'hex'),
  ])
  return createPublicKey(createPrivateKey({ key: sec1, format: 'der', type: 'sec1' })).export({ format: 'der', type: 'spki' })
}

/** An ECDSA signature with a random number of one's choice (SEC 1, section 4.1.3): libraries choose their own, and always the same. */
function signWith(key: Hex, digest: Hex, k: bigint): { readonly r: bigint; readonly s: bigint } {
  const point = createECDH('secp256k1')
  point.setPrivateKey(k.toString(16).padStart(64, '0'), 'hex')
  const r = BigInt(`0x${point.getPublicKey('hex', 'compressed').slice(2)}`) % CURVE_ORDER
  return { r, s: (inverse(k) * (BigInt(digest) + r * BigInt(key))) % CURVE_ORDER }
}
/** By Fermat: the order is prime. */
function inverse(value: bigint): bigint {
  let [result, base, exponent] = [1n, value % CURVE_ORDER, CURVE_ORDER - 2n]
  for (; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * base) % CURVE_ORDER
    base = (base * base) % CURVE_ORDER
  }
  return result
}

/** AWS KMS in memory, which signs as the real one does: with another random number each time, and with a high `s` every other time. */
export function createFakeKms(key: Hex) {
  let count = 0
  const state = {
    /** Nobody answers. */
    isGone: false,
    /** What is signed in place of what was asked for. */
    digest: (asked: Hex): Hex => asked,
    /** By whom it is signed. */
    key,
    /** The status and the error of every answer, in place of one. */
    error: undefined as { readonly status: number; readonly type: string } | undefined,
    /** Waited for before an answer to Sign. */
    before: async (): Promise<void> => {},
    /** Bytes in place of the signature. */
    der: (bytes: Uint8Array): Uint8Array => bytes,
  }
  const asked: string[] = []

  function signature(digest: Hex): Uint8Array {
    count += 1
    const { r, s } = signWith(state.key, state.digest(digest), BigInt(keccak256(numberToHex(count, { size: 32 }))) % CURVE_ORDER)
    const low = s > CURVE_ORDER >> 1n ? CURVE_ORDER - s : s
    return state.der(toDer(r, count % 2 === 0 ? low : CURVE_ORDER - low))
  }

  const http: RemoteHttp = {
    async send({ headers, body = '{}' }) {
      const action = new Headers(headers).get('x-amz-target')?.split('.').at(-1) ?? ''
      asked.push(action)
      const request = JSON.parse(body) as { readonly Message?: string }
      if (action === 'Sign') await state.before()
      if (state.isGone) throw new KeyError('unavailable', 'The remote signer kms cannot be reached (ECONNREFUSED). It is asked again.')
      const answer = (status: number, value: object) => ({ status, text: JSON.stringify(value), retryAfterMs: undefined })
      if (state.error !== undefined) return answer(state.error.status, { __type: state.error.type, message: 'secret words' })
      if (action === 'GetPublicKey') return answer(200, { PublicKey: Buffer.from(spkiOf(state.key)).toString('base64') })
      const digest = `0x${Buffer.from(request.Message ?? '', 'base64').toString('hex')}` as const
      return answer(200, { Signature: Buffer.from(signature(digest)).toString('base64') })
    },
    close: async () => {},
  }

  /** The keys of an operator that has just started: what it knew of the signer is gone. */
  function open(
    clock: Clock,
    { timeoutMs = 5_000, sleep = () => new Promise<void>(() => {}) }: Partial<{ timeoutMs: number; sleep: Clock['sleep'] }> = {},
  ): EthereumKeys {
    // Only a test that means it lets a time-out come: time in memory passes by whoever sleeps.
    const waiting: Clock = { ...clock, sleep }
    const credentials = { get: async () => ({ accessKeyId: 'AKID', secretAccessKey: 'secret', sessionToken: undefined }), forget: () => {} }
    const signer = createAwsKms({
      name: 'kms',
      url: new URL('http://127.0.0.1:1'),
      region: 'eu-central-1',
      keyId: 'alias/hot',
      http,
      credentials,
      clock: waiting,
    })
    const { ethereum } = remoteEthereumKey(signer, {
      name: 'kms',
      clock: waiting,
      gate: createGate({ name: 'kms', clock: waiting, timeoutMs }),
    })
    if (ethereum === undefined) throw new Error('it is of Ethereum')
    return {
      address: (_keyName, signal) => ethereum.address(signal),
      signTransaction: (_keyName, expected, transaction, signal) => ethereum.signTransaction(expected, transaction, signal),
      probe: (_keyName, signal) => ethereum.probe(signal),
    }
  }
  return { state, asked, open }
}
