import { inspect } from 'node:util'
import { MockAgent } from 'undici'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { gwei, lamports } from '../lib/amounts.ts'
import type { Clock } from '../lib/clock.ts'
import { Secret } from '../lib/secret.ts'
import { createStakingClient, StakingApiError } from './client.ts'
import { makeProblem, type ProblemCode, problems } from './problems.ts'

const baseUrl = 'https://staking.test/base'
const apiKey = 'sk_test_do-not-show-me'
const canary = 'canary-9f8e7d'
const stakeId = '0123456789abcdef0123456789abcdef'
const pubkey = `0x${'ab'.repeat(48)}` as const
const address = '0x00000000219ab540356cBB839Cbe05303d7705Fa' as const
const never = new AbortController().signal

const request = {
  requestId: stakeId,
  pubkey,
  amountGwei: '1000000000',
  status: 'submitted',
  unsignedTransaction: { chainId: 1, from: address, to: address, data: '0x', valueWei: '2' },
  fee: { feeWei: '1', quotedAtBlock: 7 },
  transaction: {},
  consensus: { status: 'pending' },
  createdAt: '2026-01-02T03:04:05Z',
}
const stake = {
  stakeId,
  network: 'hoodi',
  amountEth: 33,
  withdrawalAddress: address,
  credentialsType: '0x02',
  depositData: {
    pubkey,
    withdrawalCredentials: `0x${'02'.repeat(32)}`,
    amountGwei: '33000000001',
    signature: `0x${'00'.repeat(96)}`,
    depositMessageRoot: `0x${'00'.repeat(32)}`,
    depositDataRoot: `0x${'00'.repeat(32)}`,
    forkVersion: '0x10000910',
    networkName: 'hoodi',
    depositContractAddress: address,
    chainId: 560048,
  },
  unsignedTransaction: { chainId: 560048, to: address, data: '0x22895118', valueWei: '33000000001000000000' },
  transaction: { status: 'awaiting_submission' },
  validator: { pubkey, status: 'unknown' },
  createdAt: '2026-01-02T03:04:05Z',
}

let mock: MockAgent
let now: number
const clock: Clock = {
  now: () => new Date(now),
  monotonicMs: () => now,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms)
      signal.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(signal.reason)
      })
    }),
}
const client = (options: { apiKey?: () => Secret; timeoutMs?: number; maxBodyBytes?: number } = {}) =>
  createStakingClient({ baseUrl, apiKey: () => new Secret(apiKey), dispatcher: mock, clock, ...options })

beforeEach(() => {
  now = Date.parse('2026-01-02T03:04:05Z')
  mock = new MockAgent()
  mock.disableNetConnect()
})
afterEach(() => mock.close())

type Reply = { status: number; body: unknown; headers?: Record<string, string> }
const json = { 'content-type': 'application/json; charset=utf-8' }
const problemJson = { 'content-type': 'application/problem+json' }
const reply = (path: string, method: string, { status, body, headers = json }: Reply) =>
  mock
    .get('https://staking.test')
    .intercept({ path: `/base${path}`, method })
    .reply(status, typeof body === 'string' ? body : JSON.stringify(body), { headers })

const create = (api = client(), signal = never) =>
  api.createEthereumStake(
    {
      body: { network: 'hoodi', amountEth: gwei(33_000_000_001n), withdrawalAddress: address, credentialsType: '0x02' },
      idempotencyKey: 'key/1',
    },
    signal,
  )
const get = (api = client()) => api.getEthereumStake({ params: { stakeId } }, never)

async function failure(promise: Promise<unknown>): Promise<StakingApiError> {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  expect(error).toBeInstanceOf(StakingApiError)
  const shown = `${inspect(error, { depth: 9 })}${JSON.stringify(error)}`
  for (const hidden of [canary, apiKey, 'staking.test']) expect(shown).not.toContain(hidden)
  return error as StakingApiError
}

describe('a call', () => {
  test('sends the exact amount, the API key and the Idempotency-Key, and reads amounts exactly', async () => {
    let sent: { body?: unknown; headers?: unknown } = {}
    mock
      .get('https://staking.test')
      .intercept({ path: '/base/v1/ethereum/stakes', method: 'POST' })
      .reply((options) => {
        sent = options as never
        return {
          statusCode: 201,
          data: JSON.stringify(stake).replace('"amountEth":33', '"amountEth":33.000000001'),
          responseOptions: { headers: { ...json, 'x-request-id': 'r-1', 'idempotency-replayed': 'true' } },
        }
      })
    const answer = await create()
    expect(sent.body).toBe(`{"network":"hoodi","amountEth":33.000000001,"withdrawalAddress":"${address}","credentialsType":"0x02"}`)
    expect(sent.headers).toMatchObject({
      authorization: `Bearer ${apiKey}`,
      'idempotency-key': 'key/1',
      'content-type': 'application/json',
    })
    expect(answer).toMatchObject({
      status: 201,
      replayed: true,
      requestId: 'r-1',
      body: { amountEth: 33_000_000_001n, depositData: { amountGwei: 33_000_000_001n } },
    })
  })

  test('tells by how much the service’s clock is ahead, by the Date of its last answer', async () => {
    const api = client()
    expect(api.clockAheadMs()).toBeUndefined()
    const path = `/v1/ethereum/stakes/${stakeId}`
    reply(path, 'GET', { status: 200, body: stake, headers: { ...json, date: new Date(now - 360_000).toUTCString() } })
    await get(api)
    expect(api.clockAheadMs()).toBe(-359_500)
    reply(path, 'GET', { status: 404, body: {}, headers: { ...json, date: new Date(now + 360_000).toUTCString() } })
    await failure(get(api))
    expect(api.clockAheadMs()).toBe(360_500)
  })

  test('a body that needs no field is sent as {}', async () => {
    const bodies: unknown[] = []
    mock
      .get('https://staking.test')
      .intercept({ path: `/base/v1/ethereum/validators/${pubkey}/exit-requests`, method: 'POST' })
      .reply((options) => {
        bodies.push(options.body)
        const { amountGwei: _, ...exit } = request
        return { statusCode: 201, data: JSON.stringify(exit), responseOptions: { headers: json } }
      })
    await client().createExitRequest({ params: { pubkey }, idempotencyKey: 'k' }, never)
    expect(bodies).toEqual(['{}'])
  })

  test('a query is written from its schema', async () => {
    reply('/v1/ethereum/stakes?limit=20&externalReference=EthereumStake%2Fa%2Fb', 'GET', {
      status: 200,
      body: { items: [], nextCursor: 'c' },
    })
    const answer = await client().listEthereumStakes({ query: { limit: 20, externalReference: 'EthereumStake/a/b' } }, never)
    expect(answer.body).toEqual({ items: [], nextCursor: 'c' })
  })

  test('202 carries its wait', async () => {
    reply(`/v1/ethereum/validators/${pubkey}/withdrawal-requests/${stakeId}/submission`, 'PUT', {
      status: 202,
      body: request,
      headers: { ...json, 'retry-after': '7' },
    })
    const answer = await client().submitWithdrawalRequest(
      { params: { pubkey, requestId: stakeId }, body: { transactionHash: `0x${'11'.repeat(32)}` as const } },
      never,
    )
    expect(answer).toMatchObject({ status: 202, retryAfterMs: 7000, body: { amountGwei: 1_000_000_000n } })
  })

  test('unknown fields of the answer are dropped', async () => {
    reply(`/v1/ethereum/stakes/${stakeId}`, 'GET', { status: 200, body: { ...stake, extra: canary } })
    expect((await get()).body).not.toHaveProperty('extra')
  })
})

describe('every problem of the contract becomes a typed error', () => {
  const unknownOutcome: ProblemCode[] = ['internal-error', 'service-unavailable', 'idempotency-key-in-progress']
  test.each(Object.keys(problems) as ProblemCode[])('%s', async (code) => {
    const body = makeProblem(code, {
      detail: canary,
      existingId: stakeId,
      errors: [{ pointer: '/body', code: 'some-rule', detail: canary }],
    })
    reply('/v1/ethereum/stakes', 'POST', {
      status: body.status,
      body,
      headers: { ...problemJson, 'retry-after': '3', 'x-request-id': 'r-2' },
    })
    expect(await failure(create())).toMatchObject({
      kind: 'problem',
      code,
      status: body.status,
      retryAfterMs: 3000,
      requestId: 'r-2',
      existingId: stakeId,
      rules: ['some-rule'],
      outcomeUnknown: unknownOutcome.includes(code),
    })
  })
})

describe('bad answers become typed errors', () => {
  const html = `<html>${canary}</html>`
  const bad: (Reply & { given: string; kind: string; code?: ProblemCode; unknown: boolean })[] = [
    { given: 'HTML with 201', status: 201, body: html, headers: { 'content-type': 'text/html' }, kind: 'invalid-response', unknown: true },
    { given: 'HTML that says it is JSON', status: 201, body: html, kind: 'invalid-response', unknown: true },
    { given: 'JSON without a content type', status: 201, body: stake, headers: {}, kind: 'invalid-response', unknown: true },
    { given: 'half of the JSON', status: 201, body: JSON.stringify(stake).slice(0, -9), kind: 'invalid-response', unknown: true },
    { given: 'an empty body', status: 201, body: '', kind: 'invalid-response', unknown: true },
    { given: 'another shape', status: 201, body: { stakeId: canary }, kind: 'invalid-response', unknown: true },
    { given: 'null', status: 201, body: 'null', kind: 'invalid-response', unknown: true },
    { given: 'another shape with another success status', status: 200, body: { stakeId: canary }, kind: 'invalid-response', unknown: true },
    {
      given: "a proxy's 401",
      status: 401,
      body: html,
      headers: { 'content-type': 'text/html' },
      kind: 'problem',
      code: 'unauthenticated',
      unknown: false,
    },
    { given: 'a foreign 403', status: 403, body: { error: canary }, kind: 'problem', code: 'forbidden', unknown: false },
    { given: 'no content', status: 204, body: '', kind: 'invalid-response', unknown: true },
    {
      given: 'a redirect',
      status: 307,
      body: '',
      headers: { location: 'https://elsewhere.test/' },
      kind: 'invalid-response',
      unknown: true,
    },
    { given: "a proxy's 404", status: 404, body: html, headers: { 'content-type': 'text/html' }, kind: 'invalid-response', unknown: false },
    { given: "a proxy's 502", status: 502, body: html, headers: { 'content-type': 'text/html' }, kind: 'invalid-response', unknown: true },
    { given: "a proxy's 503", status: 503, body: html, headers: { 'content-type': 'text/html' }, kind: 'problem', unknown: true },
    { given: "a proxy's 429", status: 429, body: html, headers: { 'content-type': 'text/html' }, kind: 'problem', unknown: false },
    {
      given: 'a problem with a code of nobody',
      status: 400,
      body: { status: 400, code: canary },
      headers: problemJson,
      kind: 'problem',
      unknown: false,
    },
    {
      given: 'a problem whose code contradicts its status',
      status: 500,
      body: { code: 'not-found' },
      headers: problemJson,
      kind: 'problem',
      unknown: true,
    },
    { given: 'a problem that is none', status: 400, body: [canary], headers: problemJson, kind: 'invalid-response', unknown: false },
    {
      given: 'a problem full of odd text',
      status: 409,
      body: { code: 'reference-exists', existingId: canary, errors: [{ pointer: canary, code: `${canary}\n`, detail: canary }] },
      headers: { ...problemJson, 'x-request-id': `${canary} ${canary}` },
      kind: 'problem',
      code: 'reference-exists',
      unknown: false,
    },
  ]
  test.each(bad)('$given', async ({ kind, code, unknown, ...answer }) => {
    reply('/v1/ethereum/stakes', 'POST', answer)
    const error = await failure(create())
    expect(error).toMatchObject({ kind, code, status: answer.status, outcomeUnknown: unknown })
  })

  test.each([
    { given: 'another success status', answer: { status: 200, body: stake } },
    { given: 'an amount with an exponent', answer: { status: 201, body: JSON.stringify(stake).replace(':33,', ':3.3e1,') } },
  ])('$given is a success where the body fits', async ({ answer }) => {
    reply('/v1/ethereum/stakes', 'POST', answer)
    expect((await create()).body).toMatchObject({ stakeId, amountEth: 33_000_000_000n })
  })

  test('a wrong shape is named by its paths', async () => {
    reply('/v1/ethereum/stakes', 'POST', {
      status: 201,
      body: { ...stake, depositData: { ...stake.depositData, pubkey: canary, signature: undefined } },
    })
    expect((await failure(create())).message).toBe(
      'createEthereumStake: the answer (201) is not what the contract says at /depositData/pubkey, /depositData/signature',
    )
  })

  test('an answer that is too large is cut off', async () => {
    reply('/v1/ethereum/stakes', 'POST', { status: 201, body: 'x'.repeat(2000) })
    expect(await failure(create(client({ maxBodyBytes: 1000 })))).toMatchObject({ kind: 'invalid-response', outcomeUnknown: true })
  })

  test('a read has no effect, and so never an unknown outcome', async () => {
    reply(`/v1/ethereum/stakes/${stakeId}`, 'GET', { status: 500, body: makeProblem('internal-error'), headers: problemJson })
    expect(await failure(get())).toMatchObject({ outcomeUnknown: false })
  })
})

describe('when no answer comes', () => {
  test.each([
    { code: 'ECONNREFUSED', unknown: false },
    { code: 'ENOTFOUND', unknown: false },
    { code: 'ECONNRESET', unknown: true },
    { code: 'UND_ERR_SOCKET', unknown: true },
  ])('$code: may it have been done? $unknown', async ({ code, unknown }) => {
    mock
      .get('https://staking.test')
      .intercept({ path: '/base/v1/ethereum/stakes', method: 'POST' })
      .replyWithError(Object.assign(new Error(`${code} ${canary}`), { code }))
    expect(await failure(create())).toMatchObject({ kind: 'network', outcomeUnknown: unknown })
  })

  test('in time, it is a time-out', async () => {
    reply('/v1/ethereum/stakes', 'POST', { status: 201, body: stake }).delay(5000)
    expect(await failure(create(client({ timeoutMs: 20 })))).toMatchObject({ kind: 'timeout', outcomeUnknown: true })
  })

  test('before the caller aborts, the reason of the abort is thrown', async () => {
    reply('/v1/ethereum/stakes', 'POST', { status: 201, body: stake }).delay(5000)
    const controller = new AbortController()
    const reason = new Error('lease lost')
    setTimeout(() => controller.abort(reason), 10)
    await expect(create(client(), controller.signal)).rejects.toBe(reason)
    await expect(create(client(), AbortSignal.abort(reason))).rejects.toBe(reason)
  })
})

describe('Retry-After holds back all calls of this client', () => {
  const overload = (status: number, body: unknown, retryAfter: string) =>
    reply(`/v1/ethereum/stakes/${stakeId}`, 'GET', { status, body, headers: { ...problemJson, 'retry-after': retryAfter } })

  test('after 429, until it is over', async () => {
    overload(429, makeProblem('rate-limited'), '30')
    const api = client()
    await failure(get(api))
    now += 29_000
    // Nothing is intercepted any more: a call that went out would fail otherwise.
    expect(await failure(create(api))).toMatchObject({ kind: 'problem', code: 'rate-limited', retryAfterMs: 1000, outcomeUnknown: false })
    expect(api.heldBackMs()).toBe(1000)
    now += 1000
    reply('/v1/ethereum/stakes', 'POST', { status: 201, body: stake })
    expect((await create(api)).status).toBe(201)
    expect(api.heldBackMs()).toBe(0)
  })

  test("after a proxy's 503 with a date", async () => {
    overload(503, 'busy', 'Fri, 02 Jan 2026 03:04:15 GMT')
    const api = client()
    await failure(get(api))
    expect(await failure(create(api))).toMatchObject({ retryAfterMs: 10_000 })
  })

  test('an unreachable chain holds back the calls of this chain only', async () => {
    overload(503, makeProblem('chain-unavailable'), '30')
    const api = client()
    await failure(get(api))
    expect(await failure(get(api))).toMatchObject({ code: 'chain-unavailable', retryAfterMs: 30_000, outcomeUnknown: false })
    reply('/v1/networks', 'GET', { status: 200, body: { networks: [] } })
    expect((await api.listNetworks({}, never)).body).toEqual({ networks: [] })
  })

  test('a beacon chain that is away holds back what is asked of validators, and no deposit', async () => {
    const pubkey = `0x${'ab'.repeat(48)}` as const
    reply(`/v1/ethereum/validators/${pubkey}/withdrawal-capacity`, 'GET', {
      status: 503,
      body: makeProblem('chain-unavailable'),
      headers: { ...problemJson, 'retry-after': '30' },
    })
    const api = client()
    const look = () => failure(api.getWithdrawalCapacity({ params: { pubkey } }, never))
    expect(await look()).toMatchObject({ code: 'chain-unavailable', status: 503 })
    expect(await look()).toMatchObject({ code: 'chain-unavailable', status: undefined, retryAfterMs: 30_000 })
    expect(api.heldBackMs()).toBe(30_000)
    reply(`/v1/ethereum/stakes/${stakeId}`, 'GET', { status: 200, body: stake })
    expect((await get(api)).status).toBe(200)
  })

  test('a transaction that is not visible yet holds back nothing', async () => {
    overload(503, makeProblem('transaction-not-visible'), '30')
    const api = client()
    expect(await failure(get(api))).toMatchObject({ code: 'transaction-not-visible', retryAfterMs: 30_000 })
    reply(`/v1/ethereum/stakes/${stakeId}`, 'GET', { status: 200, body: stake })
    expect((await get(api)).status).toBe(200)
  })

  test('a new API key starts afresh', async () => {
    overload(429, makeProblem('rate-limited'), '30')
    let key = apiKey
    const api = client({ apiKey: () => new Secret(key) })
    await failure(get(api))
    key = `${apiKey}-2`
    reply(`/v1/ethereum/stakes/${stakeId}`, 'GET', { status: 200, body: stake })
    expect((await get(api)).status).toBe(200)
  })
})

describe('what is not valid is not sent', () => {
  test.each([
    { given: 'no Idempotency-Key', key: undefined, code: 'idempotency-key-missing' },
    { given: 'an empty Idempotency-Key', key: '', code: 'idempotency-key-invalid' },
    { given: 'a long Idempotency-Key', key: 'k'.repeat(256), code: 'idempotency-key-invalid' },
    { given: 'a header smuggled in the Idempotency-Key', key: 'a\r\nx: y', code: 'idempotency-key-invalid' },
  ])('$given', async ({ key, code }) => {
    const body = {
      network: 'solana-testnet',
      amountLamports: lamports(5n),
      stakeAuthority: '1'.repeat(32),
      withdrawAuthority: '1'.repeat(32),
    }
    expect(await failure(client().createSolanaStake({ body, idempotencyKey: key as string }, never))).toMatchObject({
      kind: 'problem',
      code,
      outcomeUnknown: false,
    })
  })

  test('a path that is none', async () => {
    expect(await failure(client().getEthereumStake({ params: { stakeId: '../../admin' } }, never))).toMatchObject({
      code: 'invalid-request',
      message: expect.stringContaining('/params/stakeId'),
    })
  })

  test.each(['', 'two words', 'new\nline', 'ключ'])('the API key "%s"', async (key) => {
    const error = await client({ apiKey: () => new Secret(key) })
      .listNetworks({}, never)
      .catch((caught: unknown) => caught)
    expect(error).toMatchObject({ kind: 'problem', code: 'unauthenticated' })
  })

  test('an error of the key provider is passed on', async () => {
    const broken = new Error('no such file')
    await expect(
      client({
        apiKey: () => {
          throw broken
        },
      }).listNetworks({}, never),
    ).rejects.toBe(broken)
  })

  test.each(['ftp://a.test', 'nonsense', 'https://user:pw@a.test', 'https://a.test/?key=1'])(
    'the base URL %s is refused without quoting it',
    (url) => {
      expect(() => createStakingClient({ baseUrl: url, apiKey: () => new Secret('k'), clock, dispatcher: mock })).toThrow(
        /^the base URL of the staking service must/,
      )
    },
  )
})

describe('waiting for a change', () => {
  const path = `/base/v1/ethereum/stakes/${stakeId}`
  const read = (headers: Record<string, string>) => {
    let sent: Record<string, string> = {}
    mock
      .get('https://staking.test')
      .intercept({ path, method: 'GET' })
      .reply((given) => {
        sent = given.headers as Record<string, string>
        return {
          statusCode: headers.status === '304' ? 304 : 200,
          data: JSON.stringify(stake),
          responseOptions: { headers: { ...json, ...headers } },
        }
      })
    return () => sent
  }

  test('a state is named by the tag of a service that knows of waits', async () => {
    const sent = read({ etag: '"a"', 'preference-applied': 'wait=0' })
    expect((await client().getEthereumStake({ params: { stakeId } }, never)).state).toBe('"a"')
    expect(sent().prefer).toBe('wait=0')
  })

  test.each([
    { service: 'one that knows tags only', headers: { etag: '"a"' } },
    { service: 'one that knows waits only', headers: { 'preference-applied': 'wait=0' } },
    { service: 'one whose tag is none', headers: { etag: 'a b', 'preference-applied': 'wait=0' } },
  ])('of $service no state is named', async ({ headers }) => {
    read(headers)
    expect((await client().getEthereumStake({ params: { stakeId } }, never)).state).toBeUndefined()
  })

  test.each([
    { headers: { etag: '"b"', 'preference-applied': 'wait=30' }, outcome: 'changed' },
    { headers: { status: '304', 'preference-applied': 'wait=30' }, outcome: 'unchanged' },
    { headers: { status: '304' }, outcome: 'refused' },
  ])('an answer with $headers says that it is $outcome', async ({ headers, outcome }) => {
    const sent = read(headers)
    const given = { state: '"a"', waitMs: 30_000 }
    expect(await client().untilChanged('getEthereumStake', { params: { stakeId } }, given, never)).toBe(outcome)
    expect(sent()).toMatchObject({ 'if-none-match': '"a"', prefer: 'wait=30' })
  })
})
