import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { type EthereumNetworkConfig, ethereumNetworkConfig } from '../../../src/chains/ethereum/networks.ts'
import { parseJson } from '../../../src/contract/json.ts'
import { problem, problemMediaType, problems } from '../../../src/contract/problems.ts'
import { type Route, routes, type Scope } from '../../../src/contract/routes.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/log.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { createApiKeys } from '../../../src/service/api-keys.ts'
import type { EthereumNetworks } from '../../../src/service/ethereum/networks.ts'
import { createValidatorKeys, parseSeed } from '../../../src/service/seed.ts'
import { createService, type Service, type ServiceDeps } from '../../../src/service/service.ts'
import { type DatabaseConfig, openStore, type Store } from '../../../src/service/store/database.ts'
import { openKeyIndices } from '../../../src/service/store/key-index.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { createFakeChain, type FakeChain } from './fake-chain.ts'

export const seedHex = randomBytes(32).toString('hex')
export const withdrawalAddress = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'

export const networkConfig = (name = 'devnet', more: object = {}): EthereumNetworkConfig =>
  ethereumNetworkConfig.parse({
    name,
    chain: 'Ethereum',
    rpcUrls: ['http://127.0.0.1:1'],
    chainId: 31337,
    depositContractAddress: '0x00000000219ab540356cBB839Cbe05303d7705Fa',
    genesisForkVersion: '0x10000910',
    pollIntervalMs: 50,
    ...more,
  })

export interface Response {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read into bodies of many shapes, which were validated against the contract
  readonly body: any
}
export interface Ask {
  readonly key?: string | undefined
  readonly idempotencyKey?: string | undefined
  readonly body?: unknown
  /** Sent as it is. */
  readonly text?: string
  readonly headers?: Readonly<Record<string, string>>
  /** How long the client waits for the answer, in ms. Default: 30 s. */
  readonly timeoutMs?: number
}

export interface TestService {
  readonly url: string
  readonly service: Service
  readonly store: Store
  readonly chain: FakeChain
  readonly networks: EthereumNetworks
  /** All that was logged. */
  logs(): string
  /** A new API key. */
  key(given?: { account?: string; scopes?: readonly Scope[]; expiresAt?: Date }): Promise<string>
  /** Calls, and checks the answer against the contract. */
  call(method: string, path: string, ask?: Ask): Promise<Response>
  /** Creates a stake as the API key's account, with a fresh Idempotency-Key. */
  stake(key: string, more?: object): Promise<Response>
  close(): Promise<void>
}

export async function startService(
  database: DatabaseConfig | Store,
  more: Partial<ServiceDeps> & { seed?: string; networks?: EthereumNetworks; keyIndexFloor?: bigint } = {},
): Promise<TestService> {
  const store = 'db' in database ? database : await openStore(database)
  const lines: string[] = []
  const log = createLogger({ program: 'service', level: 'debug', destination: { write: (line) => lines.push(line) } })
  const chain = createFakeChain('devnet')
  const networks: EthereumNetworks = more.networks ?? new Map([['devnet', { config: networkConfig(), chain }]])
  const keys = createValidatorKeys(parseSeed(more.seed ?? seedHex, 'the seed'))
  const indices = await openKeyIndices({ store, seedFingerprint: keys.fingerprint, floor: more.keyIndexFloor ?? 0n })
  const service = await createService({
    clock: systemClock,
    log,
    keys,
    indices,
    version: '0.0.0',
    rateLimit: { max: 1_000_000, windowMs: 60_000, maxUnauthenticated: 1_000_000 },
    trackerIntervalMs: 50,
    stopping: new AbortController().signal,
    ...more,
    store,
    networks,
  })
  const url = await service.app.listen({ host: '127.0.0.1', port: 0 })
  const apiKeys = createApiKeys({ store, clock: systemClock })
  const call = (method: string, path: string, ask?: Ask) => callService(url, method, path, ask)
  return {
    url,
    service,
    store,
    chain,
    networks,
    logs: () => lines.join(''),
    key: async ({ account = 'acme', scopes = ['read', 'write'] as const, expiresAt } = {}) =>
      (await apiKeys.create({ account, label: 'test', scopes, ...(expiresAt === undefined ? {} : { expiresAt }) })).key.reveal(),
    call,
    stake: (key, body = {}) =>
      call('POST', '/v1/ethereum/stakes', {
        key,
        idempotencyKey: randomBytes(8).toString('hex'),
        body: { network: 'devnet', amountEth: 32, withdrawalAddress, ...body },
      }),
    close: async () => {
      await service.app.close()
      if (store !== database) await store.close()
    },
  }
}

export async function callService(url: string, method: string, path: string, ask: Ask = {}): Promise<Response> {
  const body = ask.text ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body))
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(ask.key === undefined ? {} : { authorization: `Bearer ${ask.key}` }),
      ...(ask.idempotencyKey === undefined ? {} : { 'idempotency-key': ask.idempotencyKey }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...ask.headers,
    },
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(ask.timeoutMs ?? 30_000),
  })
  const text = await response.text()
  conforms(method, path, response, text)
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined,
  }
}

/** Every answer is one that the contract allows: the schema of its route and status, or a problem. @throws Error, ZodError */
function conforms(method: string, path: string, response: globalThis.Response, text: string): void {
  if (response.headers.get('x-request-id') === null) throw new Error(`${method} ${path} answered without X-Request-Id`)
  if (response.status >= 400 && !path.startsWith('/readyz')) {
    if (response.headers.get('content-type')?.startsWith(problemMediaType) !== true)
      throw new Error(`${method} ${path} answered ${response.status} without a problem: ${text}`)
    const { code, status } = problem.parse(JSON.parse(text))
    if (status !== response.status || problems[code].status !== status) throw new Error(`${code} was answered with ${response.status}`)
    if ('retryAfter' in problems[code] && !/^[1-9][0-9]*$/.test(response.headers.get('retry-after') ?? ''))
      throw new Error(`${code} needs Retry-After`)
    if (/\bat .*:\d+:\d+/.test(text)) throw new Error(`a stack trace in an answer: ${text}`)
    return
  }
  const plain = path.split('?', 1)[0] ?? ''
  const route = Object.values<Route>(routes).find(
    (one) => one.method === method && new RegExp(`^${one.path.replaceAll(/\{[a-zA-Z]+\}/g, '[^/]+')}$`).test(plain),
  )
  if (route === undefined) return
  if (response.status === 304 && method === 'GET' && text === '') return
  const schema = route.responses[response.status]
  if (schema === undefined) throw new Error(`${method} ${path} answered ${response.status}, which its route doesn't have`)
  z.decode(schema, parseJson(text) as never)
}

/** Both databases, for `describe.each` and `test.each`: the embedded one in memory, and a PostgreSQL that starts when it is first opened. */
export function databases(name: string) {
  let postgres: Postgres | undefined
  return {
    both: [
      { database: 'PGlite', open: memoryDatabase },
      {
        database: 'PostgreSQL',
        open: async (): Promise<DatabaseConfig> => {
          postgres ??= await startPostgres()
          return { kind: 'postgres', url: new Secret(await postgres.createDatabase(name)), poolSize: 5 }
        },
      },
    ],
    stop: () => postgres?.stop(),
  }
}
