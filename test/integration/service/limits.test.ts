import { afterAll, beforeAll, expect, test } from 'vitest'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { callService, type Response, startService, type TestService } from './harness.ts'

let service: TestService
let key: string
beforeAll(async () => {
  service = await startService(await memoryDatabase(), { rateLimit: { max: 3, windowMs: 6_000, maxUnauthenticated: 2 } })
  key = await service.key()
})
afterAll(() => service?.close())

test('an API key has its limit, is told where it stands, and goes on when it may', async () => {
  const ask = (apiKey: string) => callService(service.url, 'GET', '/v1/networks', { key: apiKey })
  const answers: Response[] = []
  for (let count = 0; count < 4; count++) answers.push(await ask(key))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
  expect(answers.map(({ headers }) => headers.get('ratelimit-remaining'))).toEqual(['2', '1', '0', '0'])
  expect(answers[0]?.headers.get('ratelimit-limit')).toBe('3')
  expect(answers[3]?.body.code).toBe('rate-limited')
  expect((await ask(await service.key())).status).toBe(200)
  await new Promise((done) => setTimeout(done, Number(answers[3]?.headers.get('retry-after')) * 1000 + 100))
  expect((await ask(key)).status).toBe(200)
})

test('guessing keys is limited by address', async () => {
  const statuses: number[] = []
  for (let count = 0; count < 3; count++)
    statuses.push((await callService(service.url, 'GET', '/v1/networks', { key: `sop_${count}` })).status)
  expect(statuses).toEqual([401, 401, 429])
})

test.each([
  { trustProxy: ['127.0.0.0/8'], expected: [401, 401, 401, 429] },
  { trustProxy: [], expected: [401, 401, 429, 429] },
])('with the proxies $trustProxy, guesses are counted by the address that those tell', async ({ trustProxy, expected }) => {
  const proxied = await startService(await memoryDatabase(), { rateLimit: { max: 3, windowMs: 60_000, maxUnauthenticated: 2 }, trustProxy })
  try {
    const statuses: number[] = []
    for (const address of ['203.0.113.1', '203.0.113.1', '203.0.113.2', '203.0.113.1']) {
      const headers = { 'x-forwarded-for': address }
      statuses.push((await callService(proxied.url, 'GET', '/v1/networks', { key: 'sop_x', headers })).status)
    }
    expect(statuses).toEqual(expected)
  } finally {
    await proxied.close()
  }
})

test('an account that has all its requests held keeps no other one out, and is served again afterwards', async () => {
  const httpLimits = { maxInFlight: 10, maxInFlightPerAccount: 5, maxWaiting: 10, maxWaitingPerKey: 10 }
  const shared = await startService(service.store, { httpLimits })
  try {
    const [greedy, modest] = [await shared.key({ account: 'greedy' }), await shared.key({ account: 'modest' })]
    const path = `/v1/ethereum/stakes/${(await shared.stake(greedy)).body.stakeId}`
    const tag = (await shared.call('GET', path, { key: greedy })).headers.get('etag') ?? ''
    // Who waits for a change is not being served, and takes none of its account's places.
    const left = new AbortController()
    const waiting = Array.from({ length: 6 }, () =>
      fetch(`${shared.url}${path}?wait=60s`, {
        headers: { authorization: `Bearer ${greedy}`, 'if-none-match': tag },
        signal: left.signal,
      }).catch(() => undefined),
    )
    await expect.poll(() => shared.service.app.waiting.count(), { timeout: 20_000 }).toBeGreaterThanOrEqual(5)
    const { promise, resolve } = Promise.withResolvers<void>()
    shared.chain.hold = promise
    const before = shared.chain.calls
    const held = Array.from({ length: 5 }, () => shared.stake(greedy))
    await expect.poll(() => shared.chain.calls - before, { timeout: 20_000 }).toBe(5)
    for (let count = 0; count < 10; count++) {
      const more = await shared.call('GET', path, { key: greedy })
      expect(more).toMatchObject({ status: 503, body: { code: 'service-unavailable' } })
      expect(more.headers.get('retry-after')).toBe('1')
    }
    expect((await shared.call('GET', '/v1/ethereum/stakes', { key: modest })).status).toBe(200)
    resolve()
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual([201, 201, 201, 201, 201])
    left.abort()
    await Promise.all(waiting)
    // Nothing of it is held any more: as many as may be are served at once again.
    const again = await Promise.all(Array.from({ length: 5 }, () => shared.stake(greedy)))
    expect(again.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201])
  } finally {
    await shared.close()
  }
})

test('what the platform asks is not limited', async () => {
  for (let count = 0; count < 10; count++) expect((await callService(service.url, 'GET', '/healthz')).status).toBe(200)
})
