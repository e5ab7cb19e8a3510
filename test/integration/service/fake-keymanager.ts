import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decrypt } from '@chainsafe/bls-keystore'
import { SecretKey } from '@chainsafe/blst'

export interface FakeKeymanager {
  readonly url: string
  readonly token: string
  /** By public key. */
  readonly keys: Map<string, { feeRecipient?: string; gasLimit?: string }>
  readonly remote: Set<string>
  /** What was given as slashing protection, import by import. */
  readonly protections: unknown[]
  /** Requests, `METHOD path`. */
  readonly calls: string[]
  /** Takes no keystore, and says why. */
  refusal: string | undefined
  /** It has no remote keys: 404. */
  knowsRemoteKeys: boolean
  /** It says that it imported a key, and doesn't hold it. */
  forgets: boolean
  /** Of an import it answers for all but the last. */
  shortAnswers: boolean
  /** It says that it has taken a fee recipient, and goes on with another. */
  ownFeeRecipient: string | undefined
  /** Some take gas limits only where they use a builder. */
  takesGasLimits: boolean
  close(): Promise<void>
}

/** A fake of a validator client's Keymanager API, built from its specification (ethereum/keymanager-APIs, v1): it opens the keystores that it is given. */
export async function startFakeKeymanager(): Promise<FakeKeymanager> {
  const token = 'api-token-0x1234567890'
  const fake = {
    keys: new Map<string, { feeRecipient?: string; gasLimit?: string }>(),
    remote: new Set<string>(),
    protections: [] as unknown[],
    calls: [] as string[],
    refusal: undefined as string | undefined,
    knowsRemoteKeys: true,
    forgets: false,
    shortAnswers: false,
    ownFeeRecipient: undefined as string | undefined,
    takesGasLimits: true,
  }

  async function open(text: string, password: string): Promise<{ status: string; message: string }> {
    if (fake.refusal !== undefined) return { status: 'error', message: fake.refusal }
    const keystore = JSON.parse(text)
    const secret = SecretKey.fromBytes(await decrypt(keystore, password))
    const pubkey = `0x${Buffer.from(secret.toPublicKey().toBytes()).toString('hex')}`
    if (keystore.pubkey !== pubkey.slice(2)) return { status: 'error', message: 'the keystore is of another key' }
    if (fake.keys.has(pubkey)) return { status: 'duplicate', message: '' }
    if (!fake.forgets) fake.keys.set(pubkey, {})
    return { status: 'imported', message: '' }
  }

  async function handle(request: IncomingMessage): Promise<{ status: number; body: object }> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const path = request.url ?? ''
    fake.calls.push(`${request.method} ${path}`)
    if (request.headers.authorization === undefined) return { status: 401, body: { message: 'no token' } }
    if (request.headers.authorization !== `Bearer ${token}`) return { status: 403, body: { message: 'wrong token' } }
    const given = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString())
    switch (`${request.method} ${path}`) {
      case 'GET /eth/v1/keystores':
        return {
          status: 200,
          body: { data: [...fake.keys.keys()].map((key) => ({ validating_pubkey: key, derivation_path: '', readonly: false })) },
        }
      case 'GET /eth/v1/remotekeys':
        if (!fake.knowsRemoteKeys) return { status: 404, body: { message: 'not found' } }
        return {
          status: 200,
          body: { data: [...fake.remote].map((pubkey) => ({ pubkey, url: 'https://signer.example', readonly: false })) },
        }
      case 'POST /eth/v1/keystores': {
        fake.protections.push(given.slashing_protection === undefined ? undefined : JSON.parse(given.slashing_protection))
        const data = []
        for (const [count, keystore] of given.keystores.entries()) data.push(await open(keystore, given.passwords[count]))
        return { status: 200, body: { data: fake.shortAnswers ? data.slice(0, -1) : data } }
      }
    }
    const [, key = '', what] = /^\/eth\/v1\/validator\/(0x[0-9a-f]{96})\/(feerecipient|gas_limit)$/.exec(path) ?? []
    const kept = fake.keys.get(key)
    if (request.method === 'GET' && what === 'feerecipient' && kept !== undefined)
      return { status: 200, body: { data: { pubkey: key, ethaddress: fake.ownFeeRecipient ?? kept.feeRecipient ?? '0x' } } }
    if (request.method !== 'POST' || kept === undefined) return { status: 404, body: { message: 'not found' } }
    if (what === 'gas_limit' && !fake.takesGasLimits) return { status: 500, body: { message: 'only with a builder' } }
    if (what === 'feerecipient') kept.feeRecipient = given.ethaddress
    else kept.gasLimit = given.gas_limit
    return { status: 202, body: {} }
  }

  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    handle(request).then(
      ({ status, body }) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
      () => response.writeHead(500).end('{}'),
    )
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return Object.assign(fake, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    close: () =>
      new Promise<void>((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  })
}
