import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { createApiKeys } from '../../../src/service/api-keys.ts'
import { claimPlace, noteProvisioned } from '../../../src/service/store/stakes.ts'
import { type Ask, callService, databases, type Response, startService, type TestService } from './harness.ts'

const { both, stop } = databases('follow')
afterAll(stop)

/** Whoever waits looks again now and then, without being woken: not here. What these tests see, a notice has told. */
const woken: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms >= 5_000 ? 3_600_000 : ms, signal) }
const hash = () => `0x${randomBytes(32).toString('hex')}`
const waitingCount = async ({ url }: TestService): Promise<number> =>
  Number(/^staking_service_requests_waiting (\d+)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1])
const untilWaiting = (service: TestService, count: number) =>
  vi.waitFor(async () => expect(await waitingCount(service)).toBe(count), { timeout: 20_000, interval: 20 })

describe.each(both)('following a resource on $database', ({ open }) => {
  let service: TestService
  /** Another instance on the same database; on the embedded one, which has but one, the same. */
  let other: TestService
  let key: string
  const stopping = new AbortController()
  beforeAll(async () => {
    const database = await open()
    const limits = { httpLimits: { maxWaiting: 6, maxWaitingPerKey: 4, maxInFlight: 5 }, clock: woken }
    service = await startService(database, limits)
    other = database.kind === 'embedded' ? service : await startService(database)
    key = await service.key()
  })
  afterAll(async () => {
    await service?.close()
    if (other !== service) await other?.close()
  })
  afterEach(() => untilWaiting(service, 0))

  /** A new stake with the tag of its state. */
  async function stake() {
    const { stakeId, depositData } = (await service.stake(key)).body
    const path = `/v1/ethereum/stakes/${stakeId}`
    const tag = (await service.call('GET', path, { key })).headers.get('etag') ?? ''
    return { path, tag, pubkeys: [depositData.pubkey as string] }
  }
  const wait = (path: string, tag: string, query = '?wait=30s', ask: Ask = {}): Promise<Response> =>
    service.call('GET', `${path}${query}`, { key, ...ask, headers: { 'if-none-match': tag, ...ask.headers } })
  const report = (path: string, transactionHash = hash()) => other.call('PUT', `${path}/submission`, { key, body: { transactionHash } })

  test('is answered at once without a state to compare with, and when the state is another', async () => {
    const { path, tag } = await stake()
    const unnamed = await service.call('GET', `${path}?wait=30s`, { key })
    expect([unnamed.status, unnamed.headers.get('etag')]).toEqual([200, tag])
    await report(path)
    const outdated = await wait(path, `"another", ${tag}`)
    expect([outdated.status, outdated.body.transaction.status]).toEqual([200, 'submitted'])
    expect(outdated.headers.get('preference-applied')).toBe('wait=30')
    // It names no state.
    expect((await wait(path, '*')).status).toBe(304)
  })

  test.each([
    { how: 'the query', ask: (path: string, tag: string) => wait(path, tag) },
    {
      how: 'the header Prefer',
      ask: (path: string, tag: string) => wait(path, tag, '', { headers: { prefer: 'respond-async, wait=30' } }),
    },
  ])('asked by $how waits until the state changes, and answers with the new one', async ({ ask }) => {
    const { path, tag } = await stake()
    const waiting = ask(path, tag)
    await untilWaiting(service, 1)
    const transactionHash = hash()
    await report(path, transactionHash)
    const answer = await waiting
    expect([answer.status, answer.body.transaction]).toEqual([200, { status: 'submitted', hash: transactionHash }])
    expect(answer.headers.get('etag')).not.toBe(tag)
    expect(answer.headers.get('preference-applied')).toBe('wait=30')
  })

  test('is woken when a validator client is seen to hold its key, and when the key leaves that place', async () => {
    const { path, tag, pubkeys } = await stake()
    const provisioning = wait(path, tag)
    await untilWaiting(service, 1)
    const at = new Date()
    await claimPlace(other.store.db, { pubkeys, at, place: 'one', again: false })
    await noteProvisioned(other.store.db, { pubkeys, at })
    const provisioned = await provisioning
    expect([provisioned.status, provisioned.body.keysProvisioned]).toEqual([200, true])
    const leaving = wait(path, provisioned.headers.get('etag') ?? '')
    await untilWaiting(service, 1)
    await claimPlace(other.store.db, { pubkeys, at: new Date(at.getTime() + 1), place: 'another', again: true })
    expect((await leaving).body.keysProvisioned).toBe(false)
  })

  test('ends with 304 when nothing has changed', async () => {
    const { path, tag } = await stake()
    const answer = await wait(path, `W/${tag}`, '?wait=1s')
    expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([304, '', tag])
    expect(answer.headers.get('preference-applied')).toBe('wait=1')
  })

  test.each(['30', '1m', '-1s', '1.5s', ''])('refuses to wait for "%s"', async (given) => {
    const { path } = await stake()
    expect((await service.call('GET', `${path}?wait=${given}`, { key })).status).toBe(400)
  })

  test('is served beside many who wait: they take no place of those who are served, and no connection of the database', async () => {
    const { path, tag } = await stake()
    const waiting = Array.from({ length: 4 }, () => wait(path, tag))
    await untilWaiting(service, 4)
    const { connections } = service.store
    await vi.waitFor(() => expect(connections?.().busy ?? 0).toBe(0), { timeout: 20_000 })
    const others = await Promise.all(Array.from({ length: 5 }, () => service.call('GET', path, { key })))
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    await report(path)
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200, 200])
  })

  test('has so many places for one API key and in all: whoever finds none is answered at once, and told so', async () => {
    const { path, tag } = await stake()
    const second = await service.key()
    const waiting = Array.from({ length: 4 }, () => wait(path, tag))
    await untilWaiting(service, 4)
    const refused = await wait(path, tag)
    expect([refused.status, refused.headers.get('preference-applied')]).toEqual([304, null])
    waiting.push(...Array.from({ length: 2 }, () => wait(path, tag, '?wait=30s', { key: second })))
    await untilWaiting(service, 6)
    expect((await wait(path, tag, '?wait=30s', { key: second })).headers.get('preference-applied')).toBeNull()
    await report(path)
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
  })

  test('is over when the client has left', async () => {
    const { path, tag } = await stake()
    const leaving = new AbortController()
    const gone = fetch(`${service.url}${path}?wait=60s`, {
      headers: { authorization: `Bearer ${key}`, 'if-none-match': tag },
      signal: leaving.signal,
    }).catch(() => 'left')
    await untilWaiting(service, 1)
    leaving.abort()
    expect(await gone).toBe('left')
    await untilWaiting(service, 0)
  })

  test('tells nothing to a key that was revoked meanwhile', async () => {
    const apiKeys = createApiKeys({ store: other.store, clock: systemClock })
    const { info, key: text } = await apiKeys.create({ account: 'acme', label: 'r', scopes: ['read'] })
    const { path, tag } = await stake()
    const waiting = wait(path, tag, '?wait=30s', { key: text.reveal() })
    await untilWaiting(service, 1)
    await apiKeys.revoke(info.keyId)
    await report(path)
    expect((await waiting).status).toBe(401)
  })

  test('is over at once when the instance is about to end', async () => {
    const ending = await startService(service.store, { stopping: stopping.signal })
    const { path, tag } = await stake()
    const waiting = callService(ending.url, 'GET', `${path}?wait=60s`, { key, headers: { 'if-none-match': tag } })
    await untilWaiting(ending, 1)
    stopping.abort()
    const answer = await waiting
    expect([answer.status, answer.headers.get('connection')]).toEqual([304, 'close'])
    await ending.close()
  })
})
