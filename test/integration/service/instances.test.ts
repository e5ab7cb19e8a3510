import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { Secret } from '../../../src/lib/secret.ts'
import { createApiKeys } from '../../../src/service/api-keys.ts'
import type { DatabaseConfig, Store } from '../../../src/service/store/database.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { callService, networkConfig, type Response, startService, type TestService, withdrawalAddress } from './harness.ts'

/** Four instances on one PostgreSQL behind a round-robin, started at the same moment on an empty database. */
let postgres: Postgres
let instances: readonly TestService[]
let key: string
const database = (): DatabaseConfig => ({ kind: 'postgres', url: new Secret(url), poolSize: 5 })
let url: string
const leaseMs = 3_000

beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase('instances')
  instances = await Promise.all(Array.from({ length: 4 }, () => startService(database(), { leaseMs })))
  key = (await instances[0]?.key()) ?? ''
})
afterAll(async () => {
  await Promise.all(instances?.map((one) => one.close()) ?? [])
  await postgres?.stop()
})

const body = { network: 'devnet', amountEth: 32, withdrawalAddress }
const post = (count: number, idempotencyKey: string, change: object = {}): Promise<Response> =>
  callService(instances[count % instances.length]?.url ?? '', 'POST', '/v1/ethereum/stakes', {
    key,
    idempotencyKey,
    body: { ...body, ...change },
  })
/** As clients do: who is told that too much waits comes again. On a slow machine, a burst finds no connection of the database in time. */
async function patiently(count: number, idempotencyKey: string, change: object = {}): Promise<Response> {
  let answer = await post(count, idempotencyKey, change)
  for (let again = 0; again < 20 && answer.status === 503; again++) {
    await new Promise((done) => setTimeout(done, Number(answer.headers.get('retry-after')) * 1_000))
    answer = await post(count, idempotencyKey, change)
  }
  return answer
}
const newKey = () => randomBytes(8).toString('hex')

test('50 requests with one Idempotency-Key make one stake', async () => {
  const idempotencyKey = newKey()
  const answers = await Promise.all(Array.from({ length: 50 }, (_, count) => patiently(count, idempotencyKey)))
  const created = answers.filter(({ status }) => status === 201)
  expect(new Set(created.map(({ text }) => text)).size).toBe(1)
  expect(created.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1)
  for (const one of answers.filter(({ status }) => status !== 201)) expect(one.body.code).toBe('idempotency-key-in-progress')
})

test('60 requests with 60 keys make 60 stakes with 60 validator keys', async () => {
  const answers = await Promise.all(Array.from({ length: 60 }, (_, count) => patiently(count, newKey())))
  expect(new Set(answers.map((one) => one.body.depositData.pubkey)).size).toBe(60)
  const { rows } = { rows: await instances[0]?.store.db.selectFrom('ethereum_stakes').select('key_index').execute() }
  expect(new Set(rows?.map((row) => row.key_index)).size).toBe(rows?.length)
})

test('one external reference is given once, whichever instance is asked', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, (_, count) => patiently(count, newKey(), { externalReference: 'ref' })))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
  expect(answers.filter((one) => one.body.code === 'reference-exists')).toHaveLength(19)
})

test('of hashes that are reported at once for different transactions one wins, and the others are refused', async () => {
  const { stakeId } = (await post(0, newKey())).body
  const hashes = Array.from({ length: 10 }, () => `0x${randomBytes(32).toString('hex')}`)
  const answers = await Promise.all(
    hashes.map((transactionHash, count) =>
      callService(instances[count % instances.length]?.url ?? '', 'PUT', `/v1/ethereum/stakes/${stakeId}/submission`, {
        key,
        body: { transactionHash },
      }),
    ),
  )
  const accepted = hashes.filter((_, count) => answers[count]?.status === 200)
  const rows = await instances[0]?.store.db.selectFrom('ethereum_stake_hashes').select('hash').where('stake_id', '=', stakeId).execute()
  expect(accepted).toHaveLength(1)
  expect(rows?.map(({ hash }) => hash)).toEqual(accepted)
})

test('an instance that was frozen past its lease does not make a second stake', async () => {
  const idempotencyKey = newKey()
  const [frozen] = instances
  if (frozen === undefined) throw new Error('no instance')
  const { promise, resolve } = Promise.withResolvers<void>()
  frozen.chain.hold = promise
  const calls = frozen.chain.calls
  const late = post(0, idempotencyKey)
  while (frozen.chain.calls === calls) await new Promise((done) => setTimeout(done, 5))
  expect((await post(1, idempotencyKey)).body.code).toBe('idempotency-key-in-progress')
  await new Promise((done) => setTimeout(done, leaseMs + 200))
  const taken = await post(1, idempotencyKey)
  expect(taken.status).toBe(201)
  resolve()
  frozen.chain.hold = Promise.resolve()
  expect((await late).body.code).toBe('idempotency-key-in-progress')
  expect((await post(0, idempotencyKey)).text).toBe(taken.text)
})

test('an API key has one limit over all instances', async () => {
  const limit = { max: 25, windowMs: 600_000, maxUnauthenticated: 100 }
  const limited = await Promise.all(Array.from({ length: 4 }, () => startService(database(), { rateLimit: limit })))
  try {
    const limitedKey = await limited[0]?.key()
    const ask = (count: number) => callService(limited[count % 4]?.url ?? '', 'GET', '/v1/networks', { key: limitedKey })
    const statuses: number[] = []
    for (let round = 0; round < 5; round++) {
      statuses.push(...(await Promise.all(Array.from({ length: 8 }, (_, count) => ask(count)))).map(({ status }) => status))
    }
    expect(statuses.filter((status) => status === 200)).toHaveLength(25)
    expect(statuses.filter((status) => status === 429)).toHaveLength(15)
    // Another key has its own.
    const other = await limited[0]?.key()
    expect((await callService(limited[1]?.url ?? '', 'GET', '/v1/networks', { key: other })).status).toBe(200)
  } finally {
    await Promise.all(limited.map((one) => one.close()))
  }
})

test('a revoked key is refused by every instance as soon as its revocation has returned', async () => {
  const apiKeys = createApiKeys({ store: instances[0]?.store as Store, clock: systemClock })
  for (let round = 0; round < 10; round++) {
    const { info, key: text } = await apiKeys.create({ account: 'acme', label: 'r', scopes: ['read'] })
    const askAll = () => Promise.all(instances.map(({ url }) => callService(url, 'GET', '/v1/networks', { key: text.reveal() })))
    expect((await askAll()).map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await apiKeys.revoke(info.keyId)).toBe(true)
    expect((await askAll()).map(({ status }) => status)).toEqual([401, 401, 401, 401])
  }
})

test('each reported hash is followed by one instance, and by another within 30 s when that one is gone', async () => {
  const ending = new AbortController()
  const trackers = instances.map((one) => ({ one, gone: new AbortController() }))
  // The time in which an instance that took a stake is expected to have looked at it; by default shorter than the half of 30 s.
  expect(networkConfig('devnet', { pollIntervalMs: undefined }).pollIntervalMs).toBeLessThanOrEqual(15_000)
  const pollIntervalMs = 4_000
  for (const { networks } of instances) {
    for (const { config } of networks.values()) Object.assign(config, { pollIntervalMs })
  }
  const { stakeId } = (await post(0, newKey())).body
  const transactionHash = `0x${randomBytes(32).toString('hex')}` as const
  const reported = await callService(instances[0]?.url ?? '', 'PUT', `/v1/ethereum/stakes/${stakeId}/submission`, {
    key,
    body: { transactionHash },
  })
  expect(reported.status).toBe(200)
  const looks: { readonly index: number; readonly at: number }[] = []
  const hold = Promise.withResolvers<never>()
  hold.promise.catch(() => undefined)
  trackers.forEach(({ one }, index) => {
    const trace = one.chain.trace
    one.chain.trace = (hashes, signal) => {
      if (!hashes.includes(transactionHash)) return trace(hashes, signal)
      looks.push({ index, at: performance.now() })
      // Whoever takes it first never comes back.
      return looks.length === 1 ? hold.promise : trace(hashes, signal)
    }
  })
  const tracking = trackers.map(({ one, gone }) => one.service.tracker.run(AbortSignal.any([gone.signal, ending.signal])))
  try {
    await expect.poll(() => looks.length, { timeout: 60_000 }).toBeGreaterThanOrEqual(1)
    const first = looks[0] ?? expect.fail()
    trackers[first.index]?.gone.abort()
    await expect.poll(() => looks.length, { timeout: 60_000 }).toBeGreaterThan(1)
    const second = looks[1] ?? expect.fail()
    expect(second.index).not.toBe(first.index)
    expect(second.at - first.at).toBeLessThan(30_000)
    // The others had looked past it while it was held.
    expect(second.at - first.at).toBeGreaterThan(pollIntervalMs / 2)
  } finally {
    hold.reject(new Error('gone'))
    ending.abort()
    await Promise.all(tracking)
  }
})

test('another seed is refused on the same database', async () => {
  await expect(startService(database(), { seed: randomBytes(32).toString('hex') })).rejects.toThrow(/another seed/)
})

test('the service survives a crash of its database', async () => {
  await postgres.kill()
  const down = await post(0, newKey())
  expect(down).toMatchObject({ status: 503, body: { code: 'service-unavailable' } })
  expect((await fetch(`${instances[0]?.url}/readyz`)).status).toBe(503)
  await postgres.restart()
  // Each has connections of its own, and learns by itself that the database is back.
  for (const count of instances.keys())
    await expect.poll(async () => (await post(count, newKey())).status, { timeout: 60_000, interval: 100 }).toBe(201)
  expect(instances.map((one) => one.logs()).join('')).not.toContain(new URL(url).password)
})

test('what one instance has answered to a change, every other one shows, however warm its own answer is', async () => {
  const [changer, ...others] = instances
  const path = async () => `/v1/ethereum/stakes/${(await post(0, newKey())).body.stakeId}`
  const state = async (of: TestService, at: string) => (await callService(of.url, 'GET', at, { key })).body.transaction.status
  for (let round = 0; round < 10; round++) {
    const at = await path()
    let changed = false
    const polls = others.map(async (other) => {
      const seen: string[] = []
      while (!changed) seen.push(await state(other, at))
      return seen
    })
    // All of them have an answer at hand.
    for (const other of others) await state(other, at)
    try {
      const answer =
        round % 2 === 0
          ? await callService(changer?.url ?? '', 'DELETE', at, { key })
          : await callService(changer?.url ?? '', 'PUT', `${at}/submission`, {
              key,
              body: { transactionHash: `0x${randomBytes(32).toString('hex')}` },
            })
      expect(answer.status).toBe(200)
      const now = answer.body.transaction.status
      expect(await Promise.all(others.map((other) => state(other, at)))).toEqual(others.map(() => now))
    } finally {
      changed = true
      await Promise.allSettled(polls)
    }
  }
})
