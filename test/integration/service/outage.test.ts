import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../../../src/lib/secret.ts'
import { runService } from '../../../src/service/run.ts'
import type { DatabaseConfig } from '../../../src/service/store/database.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { signalTree } from '../../cluster/signal-tree.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { type Ask, callService, type Response, startService, type TestService, withdrawalAddress } from './harness.ts'
import { serviceFiles } from './processes.ts'
import { countStalls } from './stalls.ts'

/** A database that is stopped, frozen, or asked too much. What was asked meanwhile is asked again by its client, with the same Idempotency-Key. */
let postgres: Postgres
let anvil: Anvil
beforeAll(async () => {
  ;[postgres, anvil] = await Promise.all([startPostgres(), startAnvil()])
})
afterAll(async () => {
  await Promise.all([postgres?.stop(), anvil?.stop()])
})

const server = async (): Promise<DatabaseConfig> => {
  const url = await postgres.createDatabase(`outage_${randomBytes(4).toString('hex')}`)
  return { kind: 'postgres', url: new Secret(url), poolSize: 5 }
}
const embedded = memoryDatabase
const stalls = countStalls()
const body = { network: 'devnet', amountEth: 32, withdrawalAddress }
const post = (service: TestService, key: string, idempotencyKey: string, more: Ask = {}): Promise<Response> =>
  callService(service.url, 'POST', '/v1/ethereum/stakes', { key, idempotencyKey, body, ...more })
const unavailable = { status: 503, body: { code: 'service-unavailable' } }

/** Asks again as a client does, until it is served: not before Retry-After, and not all in the same moment. */
async function insist(ask: () => Promise<Response>, timeoutMs = 60_000): Promise<Response> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const answer = await ask()
    const busy = answer.status === 503 || answer.body?.code === 'idempotency-key-in-progress'
    if (!busy || Date.now() > deadline) return answer
    const retryAfter = answer.headers.get('retry-after')
    expect(retryAfter).toMatch(/^[1-9]\d*$/)
    await new Promise((done) => setTimeout(done, Number(retryAfter) * 1_000 * (1 + Math.random())))
  }
}

describe('PostgreSQL', () => {
  const outages = [
    { what: 'stopped', begin: () => postgres.kill(), end: () => postgres.restart() },
    {
      what: 'frozen',
      begin: async () => signalTree(postgres.pid(), 'SIGSTOP'),
      end: async () => signalTree(postgres.pid(), 'SIGCONT'),
    },
  ]
  test.each(outages)(
    'is $what: 503 with Retry-After within five seconds, nothing is lost, and it goes on by itself',
    async ({ begin, end }) => {
      const service = await startService(await server(), { leaseMs: 3_000 })
      try {
        const key = await service.key()
        const before = await post(service, key, 'before')
        // Some are anywhere between their first and last step.
        const { promise, resolve } = Promise.withResolvers<void>()
        service.chain.hold = promise
        const calls = service.chain.calls
        const midway = Array.from({ length: 4 }, (_, count) => post(service, key, `midway/${count}`))
        while (service.chain.calls < calls + 4) await new Promise((done) => setTimeout(done, 5))
        await begin()
        const begun = performance.now() - stalls()
        resolve()
        service.chain.hold = Promise.resolve()
        const asked = [
          ...midway,
          ...Array.from({ length: 20 }, (_, count) => post(service, key, `during/${count}`)),
          callService(service.url, 'GET', `/v1/ethereum/stakes/${before.body.stakeId}`, { key }),
        ]
        for (const answer of await Promise.all(asked)) {
          expect(answer).toMatchObject(unavailable)
          expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
        }
        expect(performance.now() - stalls() - begun).toBeLessThan(5_500)
        expect((await fetch(`${service.url}/readyz`)).status).toBe(503)
        expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
        await end()
        const keys = [
          ...Array.from({ length: 4 }, (_, count) => `midway/${count}`),
          ...Array.from({ length: 20 }, (_, count) => `during/${count}`),
        ]
        const made = await Promise.all(keys.map((one) => insist(() => post(service, key, one))))
        expect(made.map(({ status }) => status)).toEqual(keys.map(() => 201))
        expect((await post(service, key, 'before')).text).toBe(before.text)
        const rows = await service.store.db.selectFrom('ethereum_stakes').select('pubkey').execute()
        expect(rows).toHaveLength(keys.length + 1)
        expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
        expect(service.logs()).not.toContain('a request failed for a reason that was not expected')
      } finally {
        await end()
        await service.close()
      }
    },
  )

  test('is frozen when the chain fails a request: that is told in time, though its key can not be given back now', async () => {
    const service = await startService(await server(), { leaseMs: 3_000 })
    try {
      const key = await service.key()
      await post(service, key, 'before')
      const { promise, resolve } = Promise.withResolvers<void>()
      service.chain.hold = promise
      const calls = service.chain.calls
      const midway = post(service, key, 'midway')
      while (service.chain.calls === calls) await new Promise((done) => setTimeout(done, 5))
      signalTree(postgres.pid(), 'SIGSTOP')
      const begun = performance.now() - stalls()
      service.chain.failing = 'unavailable'
      resolve()
      expect(await midway).toMatchObject({ status: 503, body: { code: 'chain-unavailable' } })
      expect(performance.now() - stalls() - begun).toBeLessThan(5_500)
      signalTree(postgres.pid(), 'SIGCONT')
      service.chain.failing = undefined
      expect((await insist(() => post(service, key, 'midway'))).status).toBe(201)
    } finally {
      signalTree(postgres.pid(), 'SIGCONT')
      await service.close()
    }
  })

  test('is not there yet: the service waits for it', async () => {
    const files = serviceFiles(anvil)
    const urlFile = join(files.folder, 'url')
    writeFileSync(urlFile, await postgres.createDatabase('waited'))
    await postgres.kill()
    const ending = new AbortController()
    const listening = Promise.withResolvers<string>()
    const options = { config: files.config, flags: { databaseUrlFile: urlFile }, version: '0', onListening: listening.resolve }
    const running = runService(options, ending.signal)
    running.catch(listening.reject)
    try {
      expect(await Promise.race([listening.promise, new Promise((done) => setTimeout(() => done('waiting'), 1_500))])).toBe('waiting')
      await postgres.restart()
      expect((await fetch(`${await listening.promise}/readyz`)).status).toBe(200)
      ending.abort()
      await running
    } finally {
      ending.abort()
      await postgres.restart()
      files.remove()
    }
  })
})

describe.each([
  { database: 'PGlite', open: embedded, instances: 1 },
  { database: 'PostgreSQL', open: server, instances: 2 },
])('300 requests at once on $database', ({ open, instances }) => {
  const services: TestService[] = []
  let key: string
  // Not a part of the test: the embedded database takes longer to start than to serve 300 requests, and on a busy machine minutes.
  beforeAll(async () => {
    const config = await open()
    for (let count = 0; count < instances; count++)
      services.push(await startService(config, { httpLimits: { maxInFlight: 40 }, leaseMs: 5_000 }))
    key = (await services[0]?.key()) ?? ''
    await services[0]?.stake(key)
  })
  afterAll(async () => {
    for (const service of services) await service.close()
  })

  test('are served or told to come again, and each makes one stake in the end', async () => {
    // Whoever is held waits for all others, and client and service are one process: on a busy machine that takes more than a client's usual patience.
    const ask = (count: number) => post(services[count % instances] ?? expect.fail(), key, `burst/${count}`, { timeoutMs: 100_000 })
    // Until all others are answered, none that is being served ends.
    const { promise, resolve } = Promise.withResolvers<void>()
    for (const { chain } of services) chain.hold = promise
    const asked = () => services.map(({ chain }) => chain.calls)
    const before = asked()
    let atOnce: number[] = []
    let shed = 0
    const first = await Promise.all(
      Array.from({ length: 300 }, async (_, count) => {
        const answer = await ask(count)
        if (answer.status === 503 && ++shed === 300 - 40 * instances) {
          // Each asks the chain once before it is held.
          atOnce = asked().map((calls, index) => calls - (before[index] ?? 0))
          resolve()
        }
        return answer
      }),
    )
    for (const calls of atOnce) expect(calls).toBeLessThanOrEqual(40)
    // A machine that is busy enough may have one that is being served told, too, that its database takes too long.
    expect(first.filter(({ status }) => status !== 201 && status !== 503)).toEqual([])
    expect(first.filter(({ status }) => status === 201).length).toBeLessThanOrEqual(40 * instances)
    for (const one of first.filter(({ status }) => status === 503)) expect(one).toMatchObject(unavailable)
    const made = await Promise.all(Array.from({ length: 300 }, (_, count) => insist(() => ask(count))))
    expect(made.map(({ status }) => status)).toEqual(made.map(() => 201))
    expect(new Set(made.map((one) => one.body.depositData.pubkey)).size).toBe(300)
    const rows = await services[0]?.store.db.selectFrom('ethereum_stakes').select('id').execute()
    // And the one from before.
    expect(rows).toHaveLength(301)
  })
})
