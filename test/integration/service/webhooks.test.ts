import { randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { webhookEvent } from '../../../src/contract/schemas/webhooks.ts'
import type { DatabaseConfig } from '../../../src/service/store/database.ts'
import { claimPlace, noteProvisioned } from '../../../src/service/store/stakes.ts'
import { databases, startService, type TestService } from './harness.ts'
import { startSolanaService } from './solana-harness.ts'

const { both, stop } = databases('webhooks')
afterAll(stop)

type Answer = number | 'hold' | 'endless'
interface Received {
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly id: string
  readonly path: string
}
interface Receiver {
  readonly url: string
  readonly received: Received[]
  /** What it answers to the next ones, in turn; the last again and again. `hold` never answers, `endless` answers 200 and comes to no end. `/ok` is always answered 200. */
  answers: Answer[]
  location: string | undefined
  /** Connections to it. */
  open(): number
  close(): Promise<void>
}

async function startReceiver(...answers: Answer[]): Promise<Receiver> {
  const received: Received[] = []
  const server: Server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const { url: path = '', headers } = incoming
    received.push({ headers, path, text: Buffer.concat(chunks).toString(), id: String(headers['webhook-id']) })
    const next = () => (receiver.answers.length > 1 ? receiver.answers.shift() : receiver.answers[0]) ?? 200
    const answer = path === '/ok' ? 200 : next()
    if (answer === 'hold') return
    if (answer === 'endless') return void outgoing.writeHead(200).write('and so on')
    outgoing.writeHead(answer, receiver.location === undefined ? {} : { location: receiver.location }).end('a secret of the receiver')
  })
  const sockets = new Set<object>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answers,
    location: undefined,
    open: () => sockets.size,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
  return receiver
}

const endpoints = '/v1/webhook-endpoints'
const idempotencyKey = () => randomBytes(8).toString('hex')
const webhooks = { allowHttp: true, allowAddresses: ['127.0.0.0/8'], timeoutMs: 10_000 }
const deliveries = { pollMs: 20, leaseMs: 30_000, retry: { firstMs: 50, mostMs: 200 } }
const patience = { timeout: 30_000, interval: 20 }

describe.each(both)('webhooks on $database', ({ open }) => {
  let database: DatabaseConfig
  let service: TestService
  let receiver: Receiver
  let ending: AbortController
  let running: Promise<void> | undefined
  beforeAll(async () => {
    database = await open()
    service = await startService(database, { webhooks, deliveries })
  })
  afterAll(() => service?.close())
  afterEach(async () => {
    ending?.abort()
    await running
    running = undefined
    await receiver?.close()
  })
  const run = (one = service) => {
    ending = new AbortController()
    running = one.service.deliverer.run(ending.signal)
  }
  /** An account with an endpoint at the receiver. */
  async function account(url: string) {
    const key = await service.key({ account: randomBytes(8).toString('hex') })
    const made = await service.call('POST', endpoints, { key, idempotencyKey: idempotencyKey(), body: { url } })
    expect(made.status).toBe(201)
    const path = `${endpoints}/${made.body.endpointId}`
    const state = async () => (await service.call('GET', path, { key })).body
    return { key, path, state, secret: made.body.secret as string }
  }
  const verify = (secret: string, { text, headers }: Received) =>
    webhookEvent.parse(new Webhook(secret).verify(text, headers as Record<string, string>))

  test('each change of a stake is delivered, signed so that the library of Standard Webhooks verifies it', async () => {
    receiver = await startReceiver(204)
    const { key, state, secret } = await account(receiver.url)
    run()
    const { stakeId } = (await service.stake(key)).body
    const submit = { key, body: { transactionHash: `0x${randomBytes(32).toString('hex')}` } }
    await service.call('PUT', `/v1/ethereum/stakes/${stakeId}/submission`, submit)
    await vi.waitFor(() => expect(receiver.received).toHaveLength(2), patience)
    const events = receiver.received.map((one) => verify(secret, one))
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      ['ethereum-stake.transaction', { id: stakeId, network: 'devnet', status: 'awaiting_submission' }],
      ['ethereum-stake.transaction', { id: stakeId, network: 'devnet', status: 'submitted' }],
    ])
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(2)
    await vi.waitFor(async () => expect(await state()).toMatchObject({ pending: 0, status: 'enabled' }), patience)
    // What nobody sees is no news: the tracker's looks.
    await service.store.db.updateTable('ethereum_stakes').set({ checked_head: 99n }).where('id', '=', stakeId).execute()
    expect((await state()).pending).toBe(0)
  })

  test('whether a validator client holds the key of a stake is delivered, each time that this changes', async () => {
    receiver = await startReceiver(204)
    const { key, secret } = await account(receiver.url)
    const { stakeId, depositData } = (await service.stake(key)).body
    const { db } = service.store
    const pubkeys = [depositData.pubkey as string]
    const claim = (seconds: number, place: string) => claimPlace(db, { pubkeys, at: new Date(seconds * 1_000), place, again: true })
    await claim(1, 'here')
    for (const seconds of [2, 3]) await noteProvisioned(db, { pubkeys, at: new Date(seconds * 1_000) })
    await claim(4, 'there')
    await claim(5, 'there')
    await noteProvisioned(db, { pubkeys, at: new Date(6_000) })
    await service.service.deliverer.pass(new AbortController().signal)
    const events = receiver.received.map((one) => verify(secret, one))
    expect(events.map(({ type, data }) => [type, data.id, data.status])).toEqual([
      ['ethereum-stake.transaction', stakeId, 'awaiting_submission'],
      ['ethereum-stake.keys', stakeId, 'provisioned'],
      ['ethereum-stake.keys', stakeId, 'not-provisioned'],
      ['ethereum-stake.keys', stakeId, 'provisioned'],
    ])
  })

  test('what could not be delivered is tried again under the same id, and says why meanwhile', async () => {
    receiver = await startReceiver(500, 503, 200)
    receiver.location = 'http://127.0.0.1:1/'
    const { key, state, secret } = await account(receiver.url)
    await service.stake(key)
    await service.service.deliverer.pass(new AbortController().signal)
    const failing = await state()
    expect(failing).toMatchObject({ pending: 1, lastError: 'the endpoint answered 500' })
    expect(JSON.stringify(failing)).not.toContain('a secret of the receiver')
    run()
    await vi.waitFor(async () => expect(await state()).toMatchObject({ pending: 0, lastDeliveredAt: expect.any(String) }), patience)
    expect((await state()).failingSince).toBeUndefined()
    expect(receiver.received).toHaveLength(3)
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
    for (const one of receiver.received) verify(secret, one)
  })

  test('no redirect is followed', async () => {
    const trap = await startReceiver(200)
    try {
      receiver = await startReceiver(307)
      receiver.location = trap.url
      const { key, state } = await account(receiver.url)
      await service.stake(key)
      await service.service.deliverer.pass(new AbortController().signal)
      expect(await state()).toMatchObject({ pending: 1, lastError: 'the endpoint answered 307' })
      expect(trap.received).toEqual([])
    } finally {
      await trap.close()
    }
  })

  test('an instance that died between sending and marking is superseded when its lease ends, and the same delivery comes again', async () => {
    receiver = await startReceiver('hold', 200)
    const { key, state } = await account(receiver.url)
    await service.stake(key)
    const { deliverer } = service.service
    const dying = new AbortController()
    const pass = deliverer.pass(dying.signal)
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patience)
    // It dies: what it had begun is neither marked nor given back.
    const endpoint = () => service.store.db.updateTable('webhook_endpoints').where('url', '=', receiver.url)
    await endpoint().set({ owner: 'who died' }).execute()
    dying.abort()
    await pass
    expect(await state()).toMatchObject({ pending: 1 })
    const { signal } = new AbortController()
    await deliverer.pass(signal)
    expect(receiver.received).toHaveLength(1)
    await endpoint()
      .set({ busy_until: new Date(0) })
      .execute()
    await deliverer.pass(signal)
    expect(await state()).toMatchObject({ pending: 0 })
    expect(receiver.received).toHaveLength(2)
    expect(receiver.received[1]?.id).toBe(receiver.received[0]?.id)
  })

  test('an account whose endpoints never answer holds up nobody else, at the same host either', async () => {
    receiver = await startReceiver('hold')
    const at = (path: string) => receiver.received.filter((one) => one.path === path)
    const held = () => receiver.received.filter((one) => one.path !== '/ok')
    const patient = await startService(service.store, {
      webhooks: { ...webhooks, timeoutMs: 180_000 },
      deliveries: { ...deliveries, leaseMs: 240_000 },
    })
    try {
      const slow = await account(receiver.url)
      for (let count = 0; count < 5; count++) {
        const body = { url: `${receiver.url}/${count}` }
        await service.call('POST', endpoints, { key: slow.key, idempotencyKey: idempotencyKey(), body })
      }
      const other = await account(new URL('/ok', receiver.url).href)
      await service.stake(slow.key)
      run(patient)
      await vi.waitFor(() => expect(held()).toHaveLength(2), patience)
      for (let count = 1; count <= 3; count++) {
        await service.stake(other.key)
        await vi.waitFor(() => expect(at('/ok')).toHaveLength(count), patience)
      }
      // Two of its endpoints are served at the same time, and none of them has come to an end.
      expect(held()).toHaveLength(2)
      expect(await slow.state()).toMatchObject({ pending: 1 })
      expect((await slow.state()).failingSince).toBeUndefined()
    } finally {
      ending.abort()
      await running
      await patient.close()
    }
  })

  test('an endpoint whose answers never end has what it is told, and keeps no connections', async () => {
    receiver = await startReceiver('endless')
    const { key, state } = await account(receiver.url)
    for (let count = 0; count < 3; count++) await service.stake(key)
    await service.service.deliverer.pass(new AbortController().signal)
    expect(await state()).toMatchObject({ pending: 0 })
    expect(receiver.received).toHaveLength(3)
    await vi.waitFor(() => expect(receiver.open()).toBeLessThan(2), patience)
  })

  test('an endpoint that is deleted while its deliveries are under way gets nothing without a signature', async () => {
    receiver = await startReceiver(200)
    const { key, path } = await account(receiver.url)
    await service.stake(key)
    const { db } = service.store
    // At the moment between the look for a delivery and its signature.
    await db
      .deleteFrom('webhook_secrets')
      .where('endpoint_id', '=', path.slice(endpoints.length + 1))
      .execute()
    await service.service.deliverer.pass(new AbortController().signal)
    expect(receiver.received).toEqual([])
    expect((await service.call('DELETE', path, { key })).status).toBe(200)
  })

  test('many passes at once deliver each once', async () => {
    receiver = await startReceiver(200)
    const { key, state } = await account(receiver.url)
    await Promise.all(Array.from({ length: 4 }, () => service.stake(key)))
    const { signal } = new AbortController()
    await Promise.all(Array.from({ length: 5 }, () => service.service.deliverer.pass(signal)))
    expect(await state()).toMatchObject({ pending: 0 })
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(4)
    expect(receiver.received).toHaveLength(4)
  })

  test.each([
    {
      what: 'fails for too long',
      answer: 500,
      failingMs: 4 * 86_400_000,
      reason: /^nothing could be delivered since .*: the endpoint answered 500$/,
    },
    { what: 'says that it is gone', answer: 410, failingMs: 0, reason: /^the endpoint answered 410/ },
  ])('an endpoint that $what is disabled, and says so, until it is enabled', async ({ answer, failingMs, reason }) => {
    receiver = await startReceiver(answer)
    const { key, path, state } = await account(receiver.url)
    await service.stake(key)
    if (failingMs > 0)
      await service.store.db
        .updateTable('webhook_endpoints')
        .set({ failing_since: new Date(Date.now() - failingMs) })
        .where('url', '=', receiver.url)
        .execute()
    await service.service.deliverer.pass(new AbortController().signal)
    expect(await state()).toMatchObject({ status: 'disabled', disabledReason: expect.stringMatching(reason), pending: 0, dropped: 1 })
    await service.stake(key)
    expect((await state()).pending).toBe(0)
    receiver.answers = [200]
    const enabled = await service.call('POST', `${path}/enable`, { key, body: {} })
    expect(enabled.body).toMatchObject({ status: 'enabled' })
    await service.stake(key)
    await service.service.deliverer.pass(new AbortController().signal)
    expect(receiver.received).toHaveLength(2)
  })

  test('of an endpoint that is down so many deliveries wait as may, the newest; it says how many were dropped, and its receiver is told', async () => {
    const bounded = await startService(service.store, { webhooks, deliveries: { ...deliveries, maxPending: 3 } })
    const { signal } = new AbortController()
    try {
      receiver = await startReceiver(503)
      const { key, state, secret } = await account(receiver.url)
      const other = await account(new URL('/ok', receiver.url).href)
      const ids: string[] = []
      for (let count = 0; count < 7; count++) ids.push((await service.stake(key)).body.stakeId)
      await service.stake(other.key)
      await bounded.service.deliverer.pass(signal)
      expect(await state()).toMatchObject({ pending: 7 })
      expect(await state()).not.toHaveProperty('dropped')
      for (let turn = 0; turn < 2; turn++) {
        await bounded.service.deliverer.bound(signal)
        // Two of the newest, and what tells of the others.
        expect(await state()).toMatchObject({ status: 'enabled', pending: 3, dropped: 5, droppedAt: expect.any(String) })
      }
      expect(await other.state()).not.toHaveProperty('dropped')
      expect(bounded.logs()).toMatch(/webhook deliveries are dropped/)
      const { endpointId } = await state()
      receiver.answers = [200]
      receiver.received.splice(0)
      run(bounded)
      await vi.waitFor(async () => expect(await state()).toMatchObject({ pending: 0, dropped: 5 }), patience)
      const events = receiver.received.filter(({ path }) => path !== '/ok').map((one) => verify(secret, one))
      expect(events.map(({ type, data }) => [type, data])).toEqual([
        ...ids.slice(5).map((id) => ['ethereum-stake.transaction', { id, network: 'devnet', status: 'awaiting_submission' }]),
        ['webhook-endpoint.dropped', { id: endpointId, status: 'dropped' }],
      ])
      const { text } = await bounded.call('GET', '/metrics')
      expect(text).toMatch(/^staking_service_webhook_deliveries_dropped_total 5$/m)
    } finally {
      ending?.abort()
      await running
      await bounded.close()
    }
  })

  test('a delivery that its receiver alone refuses is given up in the end, which is counted and told; so is what waits for too long', async () => {
    const old = { ...deliveries, retry: { ...deliveries.retry, keepMs: 1 } }
    const impatient = await startService(service.store, { webhooks, deliveries: old })
    const { signal } = new AbortController()
    try {
      receiver = await startReceiver(400, 200)
      const { key, state, secret } = await account(receiver.url)
      await service.stake(key)
      await new Promise((done) => setTimeout(done, 20))
      await impatient.service.deliverer.pass(signal)
      expect(await state()).toMatchObject({ pending: 1, dropped: 1, lastError: 'the endpoint answered 400' })
      await vi.waitFor(async () => {
        await service.service.deliverer.pass(signal)
        expect(receiver.received).toHaveLength(2)
      }, patience)
      const told = receiver.received[1]
      if (told === undefined) throw new Error('nothing was delivered')
      expect(verify(secret, told).type).toBe('webhook-endpoint.dropped')
      await service.stake(key)
      await new Promise((done) => setTimeout(done, 20))
      await impatient.service.deliverer.bound(signal)
      expect(await state()).toMatchObject({ pending: 1, dropped: 2 })
    } finally {
      await impatient.close()
    }
  })

  test('many instances drop together no more than there is too much of', async () => {
    const all = await Promise.all(
      Array.from({ length: 3 }, () => startService(service.store, { webhooks, deliveries: { ...deliveries, maxPending: 2 } })),
    )
    const { signal } = new AbortController()
    try {
      receiver = await startReceiver(503)
      const { key, state } = await account(receiver.url)
      for (let count = 0; count < 6; count++) await service.stake(key)
      await Promise.all(all.map((one) => one.service.deliverer.bound(signal)))
      await Promise.all(all.map((one) => one.service.deliverer.bound(signal)))
      expect(await state()).toMatchObject({ pending: 2, dropped: 5 })
    } finally {
      await Promise.all(all.map((one) => one.close()))
    }
  })

  test('after a rotation both secrets sign until the overlap ends; a repetition takes away none', async () => {
    receiver = await startReceiver(200)
    const { key, path, secret } = await account(receiver.url)
    const rotate = (overlapSeconds: number) => service.call('POST', `${path}/secret-rotations`, { key, body: { overlapSeconds } })
    await rotate(3_600)
    const { body } = await rotate(3_600)
    expect(body.formerSecretsUntil).toEqual(expect.any(String))
    await service.stake(key)
    const { signal } = new AbortController()
    await service.service.deliverer.pass(signal)
    const [first] = receiver.received
    if (first === undefined) throw new Error('nothing was delivered')
    for (const each of [secret, body.secret]) verify(each, first)
    const last = await rotate(0)
    await service.stake(key)
    await service.service.deliverer.pass(signal)
    const second = receiver.received[1]
    if (second === undefined) throw new Error('nothing was delivered')
    verify(last.body.secret, second)
    expect(() => verify(secret, second)).toThrow()
    for (let count = 0; count < 4; count++) await rotate(3_600)
    expect((await rotate(3_600)).body).toMatchObject({ code: 'invalid-state' })
  })

  test('what became of a Solana transaction is delivered, though nobody reads the stake', async () => {
    receiver = await startReceiver(200)
    const solana = await startSolanaService(service.store, { defaultVoteAccount: true })
    const following = new AbortController()
    let followed: Promise<void> | undefined
    try {
      const ask = { key: solana.key, idempotencyKey: idempotencyKey(), body: { url: receiver.url } }
      const { secret } = (await service.call('POST', endpoints, ask)).body
      const { path, stake, transaction } = await solana.withTransaction()
      const signature = solana.broadcast(transaction)
      solana.cluster.produce()
      expect((await solana.put(`${path}/transactions/${transaction.txId}/submission`, { signature })).body.status).toBe('submitted')
      solana.cluster.settle()
      followed = solana.service.service.solanaFollower.run(following.signal)
      run()
      await vi.waitFor(() => expect(receiver.received).toHaveLength(3), patience)
      const events = receiver.received.map((one) => verify(secret, one))
      expect(events.map(({ data }) => data.status)).toEqual(['awaiting_submission', 'submitted', 'confirmed'])
      expect(events[2]).toMatchObject({
        type: 'solana-transaction.transaction',
        data: { id: transaction.txId, stakeId: stake.stakeId, network: stake.network },
      })
    } finally {
      following.abort()
      await followed
      await solana.close()
    }
  })

  test('a secret is told once, and the database does not hold it', async () => {
    const key = await service.key({ account: randomBytes(8).toString('hex') })
    const ask = { key, idempotencyKey: idempotencyKey(), body: { url: 'https://hooks.example/once', description: 'x' } }
    const made = await service.call('POST', endpoints, ask)
    expect(made.body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const again = await service.call('POST', endpoints, ask)
    const { secret, ...rest } = made.body
    expect([again.headers.get('idempotency-replayed'), again.body]).toEqual(['true', rest])
    expect((await service.call('GET', endpoints, { key })).body).toEqual({ items: [rest] })
    const stored = await Promise.all(
      (['webhook_endpoints', 'webhook_secrets', 'idempotency_keys'] as const).map((table) =>
        service.store.db.selectFrom(table).selectAll().execute(),
      ),
    )
    expect(JSON.stringify(stored, (_, value) => (typeof value === 'bigint' ? String(value) : value))).not.toContain(secret.slice(6, 40))
  })

  test('an account sees, deletes and is told of its own only', async () => {
    receiver = await startReceiver(200)
    const { key, path } = await account(receiver.url)
    const other = await service.key({ account: randomBytes(8).toString('hex') })
    expect((await service.call('GET', path, { key: other })).status).toBe(404)
    expect((await service.call('DELETE', path, { key: other })).status).toBe(404)
    expect((await service.call('POST', `${path}/secret-rotations`, { key: other, body: {} })).status).toBe(404)
    await service.stake(other)
    expect((await service.call('GET', path, { key })).body.pending).toBe(0)
    await service.stake(key)
    expect((await service.call('DELETE', path, { key })).status).toBe(200)
    await service.service.deliverer.pass(new AbortController().signal)
    expect(receiver.received).toEqual([])
    expect((await service.call('GET', path, { key })).status).toBe(404)
    const reader = await service.key({ scopes: ['read'] })
    const create = { key: reader, idempotencyKey: idempotencyKey(), body: { url: 'https://hooks.example/' } }
    expect((await service.call('POST', endpoints, create)).status).toBe(403)
  })

  test('has so many endpoints an account, and one for each URL', async () => {
    const key = await service.key({ account: randomBytes(8).toString('hex') })
    const create = (url: string) => service.call('POST', endpoints, { key, idempotencyKey: idempotencyKey(), body: { url } })
    for (let count = 0; count < 10; count++) expect((await create(`https://hooks.example/${count}`)).status).toBe(201)
    expect((await create('https://hooks.example/0')).body).toMatchObject({ code: 'invalid-state', existingId: expect.any(String) })
    expect((await create('https://hooks.example/10')).body).toMatchObject({ code: 'invalid-state' })
  })

  test.each(['http://hooks.example:80/#x', 'https://10.0.0.1/', 'https://[::1]/', 'ftp://hooks.example/'])('refuses %s', async (url) => {
    const key = await service.key()
    const refused = await service.call('POST', endpoints, { key, idempotencyKey: idempotencyKey(), body: { url } })
    expect(refused.body).toMatchObject({ code: 'invalid-request', errors: [{ pointer: '/body/url' }] })
  })

  test('a name that leads to this machine is not connected to, whatever it led to when the endpoint was made', async () => {
    receiver = await startReceiver(200)
    const strict = await startService(service.store, { webhooks: { ...webhooks, allowAddresses: [] }, deliveries })
    try {
      const { key, state } = await account(receiver.url.replace('127.0.0.1', 'localhost'))
      await service.stake(key)
      await strict.service.deliverer.pass(new AbortController().signal)
      expect(await state()).toMatchObject({ pending: 1, lastError: 'the host leads to an address that is not public' })
      expect(receiver.received).toEqual([])
    } finally {
      await strict.close()
    }
  })
})
