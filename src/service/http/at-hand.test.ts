import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { routes } from '../../contract/routes.ts'
import { createLogger } from '../../lib/log.ts'
import { addressCheck } from '../addresses.ts'
import type { Caller } from '../api-keys.ts'
import { answerAtHand } from './at-hand.ts'

const id = 'a'.repeat(32)
const path = `/v1/ethereum/stakes/${id}`
const key = `sop_${'k'.repeat(43)}`
const body = '{"stakeId":"ä"}'
const tag = '"tag"'

/** What goes the whole way. */
const wholeWay = vi.fn()
const server = createServer((incoming, response) => {
  wholeWay()
  incoming.resume()
  response.writeHead(418).end('the whole way')
})
const stopping = new AbortController()
const plain: Caller = { keyId: 'key_1', account: 'acme', scopes: ['read'], mayComeFrom: addressCheck(undefined) }
let caller: Caller | undefined
let isFull: boolean
/** An account that has all its places. */
let full: string | undefined
let tokens: number
const used = vi.fn()
const requestDuration = vi.fn()
const entered = vi.fn()
const lines: string[] = []

beforeAll(async () => {
  const written = { status: 200, body, tag }
  answerAtHand(
    { server } as unknown as FastifyInstance,
    [
      {
        route: routes.getEthereumStake,
        find: (account, one) => (account === 'acme' && one === id ? { written, network: 'devnet' } : undefined),
      },
    ],
    {
      apiKeys: { recall: (text) => (text === key ? caller : undefined) },
      limiter: {
        spendAtHand: () => (tokens === 0 ? undefined : { allowed: true, limit: 9, remaining: --tokens, resetMs: 1_500 }),
      },
      audit: { used, reads: false },
      admission: { isFull: () => isFull, isFullFor: (account) => account === full, enter: entered, assign: () => undefined },
      metrics: { requestDuration },
      log: createLogger({ program: 'service', level: 'info', destination: { write: (line) => lines.push(line) } }),
      stopping: stopping.signal,
      hasProxies: false,
    },
  )
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
})
afterAll(() => server.close())
beforeEach(() => {
  vi.clearAllMocks()
  caller = plain
  isFull = false
  full = undefined
  tokens = 5
  lines.length = 0
})

interface Asked {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string
}
const ask = ({ headers = {}, body: sent, ...more }: Asked = {}) =>
  new Promise<{ status: number | undefined; headers: Readonly<Record<string, unknown>>; text: string }>((done, fail) => {
    const given = { authorization: `Bearer ${key}`, ...headers }
    const { port } = server.address() as AddressInfo
    const asking = request({ port, path, headers: given, agent: false, ...more }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => done({ status: response.statusCode, headers: response.headers, text }))
    })
    asking.on('error', fail).end(sent)
  })

test('a plain GET of what is at hand is answered at once, with all that an answer has', async () => {
  const answer = await ask({ headers: { 'x-request-id': 'mine' } })
  expect(answer).toMatchObject({
    status: 200,
    text: body,
    headers: {
      ...{ 'x-request-id': 'mine', 'cache-control': 'no-store', etag: tag, 'content-type': 'application/json; charset=utf-8' },
      ...{ 'content-length': '16', 'ratelimit-limit': '9', 'ratelimit-remaining': '4', 'ratelimit-reset': '2' },
    },
  })
  expect(wholeWay).not.toHaveBeenCalled()
  expect(used).toHaveBeenCalledWith('key_1')
  expect(entered).toHaveBeenCalledTimes(1)
  // Both are told once it has ended, which is after the client has it.
  await vi.waitFor(
    () => {
      expect(requestDuration).toHaveBeenCalledWith('GET', '/v1/ethereum/stakes/:stakeId', 200, expect.any(Number))
      expect(JSON.parse(lines[0] ?? '')).toMatchObject({
        requestId: 'mine',
        method: 'GET',
        path,
        status: 200,
        account: 'acme',
        keyId: 'key_1',
      })
    },
    { timeout: 20_000 },
  )
})

test.each([tag, `W/${tag}`, `"other", ${tag}`, '*'])('who has it already (%s) is told so, without a body', async (known) => {
  const answer = await ask({ headers: { 'if-none-match': known } })
  expect(answer).toMatchObject({ status: 304, text: '', headers: { etag: tag } })
  expect(answer.headers['content-type']).toBeUndefined()
  expect((await ask({ headers: { 'if-none-match': '"another"' } })).status).toBe(200)
})

test('a key that is bound to addresses or networks is served where it fits', async () => {
  caller = { ...plain, networks: ['devnet'], operations: ['getEthereumStake'], mayComeFrom: addressCheck(['127.0.0.0/8', '::1']) }
  expect((await ask()).status).toBe(200)
})

const goes = (what: string, asked: Asked, prepare: () => void = () => {}) => ({ what, asked, prepare })
test.each([
  goes('another method', { method: 'HEAD' }),
  goes('a body', { headers: { 'content-length': '1' }, body: '1' }),
  goes('a query', { path: `${path}?wait=1s` }),
  goes('a resource that is not at hand', { path: path.replaceAll('a'.repeat(32), 'b'.repeat(32)) }),
  goes('an id that is longer', { path: `${path}0` }),
  goes('another path of that length', { path: `/v1/solana/stakes/${'a'.repeat(35)}` }),
  goes('a wish to wait', { headers: { prefer: 'wait=10' } }),
  goes('no key', { headers: { authorization: '' } }),
  goes('two keys', { headers: { authorization: [`Bearer ${key}`, `Bearer ${key}`] } }),
  goes('a key that is not remembered', { headers: { authorization: `Bearer ${key}x` } }),
  goes('a key without the scope', {}, () => {
    caller = { ...plain, scopes: ['write'] }
  }),
  goes('a key for other operations', {}, () => {
    caller = { ...plain, operations: ['listNetworks'] }
  }),
  goes('a key for other networks', {}, () => {
    caller = { ...plain, networks: [] }
  }),
  goes('a key for other addresses', {}, () => {
    caller = { ...plain, mayComeFrom: addressCheck(['203.0.113.0/24']) }
  }),
  goes('a key of another account', {}, () => {
    caller = { ...plain, account: 'other' }
  }),
  goes('no place', {}, () => {
    isFull = true
  }),
  goes('an account that has all its places', {}, () => {
    full = plain.account
  }),
  goes('no request left that is known of', {}, () => {
    tokens = 0
  }),
])('$what goes the whole way, and nothing is spent', async ({ asked, prepare }) => {
  prepare()
  const before = tokens
  expect((await ask(asked)).status).toBe(418)
  expect(wholeWay).toHaveBeenCalledTimes(1)
  expect(entered).not.toHaveBeenCalled()
  expect(tokens).toBe(before)
})

test('an instance that ends closes connections, which the whole way does', async () => {
  stopping.abort()
  expect((await ask()).status).toBe(418)
})
