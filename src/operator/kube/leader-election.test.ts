import { afterEach, describe, expect, test } from 'vitest'
import { createFakeClock, settle } from '../../../test/integration/kube/fake-clock.ts'
import { createMemoryServer, type MemoryServer } from '../../../test/integration/kube/memory-server.ts'
import { KubeTransportError } from './errors.ts'
import { createLeaderElector, LeaseLost } from './leader-election.ts'
import { type Lease, leases } from './lease.ts'

let stopping = new AbortController()
afterEach(() => {
  stopping.abort()
  stopping = new AbortController()
})

type Fake = ReturnType<typeof createFakeClock>

/** A process that wants to lead. */
function candidate(
  identity: string,
  server: MemoryServer<Lease>,
  clock: Fake,
  work: (signal: AbortSignal) => Promise<void> = untilAborted,
  times: { readonly leaseDurationMs?: number; readonly renewDeadlineMs?: number; readonly retryPeriodMs?: number } = {},
) {
  const elector = createLeaderElector({
    client: server.client,
    namespace: 'ns',
    name: 'operator',
    identity,
    clock,
    random: () => 0.5,
    ...times,
  })
  const stop = new AbortController()
  const state: { leads: boolean; signal?: AbortSignal; end?: string } = { leads: false }
  const running = elector
    .run(
      {
        onStartedLeading: async (signal) => {
          state.leads = true
          state.signal = signal
          await work(signal)
        },
      },
      AbortSignal.any([stop.signal, stopping.signal]),
    )
    .then((end) => {
      state.end = end
      return end
    })
  running.catch(() => {})
  return { elector, state, stop, running }
}

const untilAborted = (signal: AbortSignal): Promise<void> => new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
const setUp = () => ({ clock: createFakeClock(), server: createMemoryServer<Lease>(leases) })
const lease = (server: MemoryServer<Lease>): Promise<Lease> =>
  server.client.get({ namespace: 'ns', name: 'operator' }, new AbortController().signal)

test('the first to come leads, and goes on leading', async () => {
  const { clock, server } = setUp()
  const first = candidate('first', server, clock)
  await settle()
  const second = candidate('second', server, clock)
  await clock.advance(120_000)
  expect(first.state).toMatchObject({ leads: true })
  expect(second.state.leads).toBe(false)
  first.elector.assertHeld()
  expect(() => second.elector.assertHeld()).toThrow(LeaseLost)
  expect((await lease(server)).spec).toMatchObject({
    holderIdentity: first.elector.identity,
    leaseDurationSeconds: 15,
    leaseTransitions: 0,
  })
})

test('times are written as the API server wants them', async () => {
  const { clock, server } = setUp()
  candidate('first', server, clock)
  await settle()
  expect((await lease(server)).spec?.renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
})

test('after a graceful stop another takes over at its next look', async () => {
  const { clock, server } = setUp()
  const first = candidate('first', server, clock)
  await settle()
  const second = candidate('second', server, clock)
  await clock.advance(10_000)
  first.stop.abort()
  expect(await first.running).toBe('stopped')
  expect((await lease(server)).spec?.holderIdentity).toBe('')
  await clock.advance(2_300)
  expect(second.state.leads).toBe(true)
  expect((await lease(server)).spec?.leaseTransitions).toBe(2 - 1)
})

test('the lease is held until what was going on has ended', async () => {
  const { clock, server } = setUp()
  let finish = (): void => {}
  const first = candidate('first', server, clock, () => new Promise((resolve) => (finish = resolve)))
  await settle()
  const second = candidate('second', server, clock)
  await clock.advance(5_000)
  first.stop.abort()
  await clock.advance(60_000)
  expect(first.state.signal?.aborted).toBe(true)
  first.elector.assertHeld()
  expect(second.state.leads).toBe(false)
  finish()
  expect(await first.running).toBe('stopped')
  expect(() => first.elector.assertHeld()).toThrow(LeaseLost)
})

test('after a crash another takes over when the lease has not changed for its duration by its own clock', async () => {
  const { clock, server } = setUp()
  const now = clock.now().toISOString()
  server.write({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace: 'ns', name: 'operator' },
    spec: { holderIdentity: 'crashed', leaseDurationSeconds: 15, renewTime: now },
  })
  const second = candidate('second', server, clock)
  await clock.advance(14_000)
  expect(second.state.leads).toBe(false)
  await clock.advance(4_000)
  expect(second.state.leads).toBe(true)
})

test.each(['2001-01-01T00:00:00.000000Z', '2101-01-01T00:00:00.000000Z'])(
  'a holder whose clock says %s is neither deposed early nor believed for ever',
  async (renewTime) => {
    const { clock, server } = setUp()
    server.write({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace: 'ns', name: 'operator' },
      spec: { holderIdentity: 'other', leaseDurationSeconds: 15, renewTime },
    })
    const second = candidate('second', server, clock)
    await clock.advance(13_000)
    expect(second.state.leads).toBe(false)
    await clock.advance(5_000)
    expect(second.state.leads).toBe(true)
  },
)

test('a process under the same name does not take the lease of the one before it', async () => {
  const { clock, server } = setUp()
  const first = candidate('pod-0', server, clock)
  await settle()
  const twin = candidate('pod-0', server, clock)
  await clock.advance(60_000)
  expect([first.state.leads, twin.state.leads]).toEqual([true, false])
})

test('a leader that was frozen past its deadline learns it at the next check, before any timer', async () => {
  const { clock, server } = setUp()
  const first = candidate('first', server, clock)
  await clock.advance(20_000)
  clock.freeze(9_000)
  first.elector.assertHeld()
  clock.freeze(3_000)
  expect(() => first.elector.assertHeld()).toThrow(LeaseLost)
  expect(first.state.signal?.reason).toBeInstanceOf(LeaseLost)
  expect(await first.running).toBe('lost')
  expect(() => first.elector.assertHeld()).toThrow(LeaseLost)
})

/** A server whose answers to renewals can be held back: the write takes place, nobody hears of it. */
function withSlowAnswers(server: MemoryServer<Lease>) {
  let gate: Promise<void> | undefined
  const client: MemoryServer<Lease>['client'] = {
    ...server.client,
    mergePatch: async (...args) => {
      const stored = await server.client.mergePatch(...args)
      await gate
      return stored
    },
  }
  return {
    server: { ...server, client },
    hold: (): (() => void) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      return resolve
    },
  }
}

test('a renewal whose answer comes after the deadline does not bring leadership back', async () => {
  const { clock, server } = setUp()
  const slow = withSlowAnswers(server)
  const first = candidate('first', slow.server, clock)
  await clock.advance(1_000)
  for (let time = 0; time < 3; time++) server.failNext('mergePatch', new KubeTransportError('ECONNRESET', 'reset'))
  const answer = slow.hold()
  await clock.advance(9_500)
  expect(first.state.end).toBe('lost')
  answer()
  await settle()
  expect(first.elector.isHeld()).toBe(false)
  expect(() => first.elector.assertHeld()).toThrow(LeaseLost)
})

test('the deadline counts from when a renewal was sent, not from when it was answered', async () => {
  const { clock, server } = setUp()
  const slow = withSlowAnswers(server)
  const first = candidate('first', slow.server, clock)
  await clock.advance(1_999)
  const answer = slow.hold()
  await clock.advance(1)
  await clock.advance(5_000)
  answer()
  await settle()
  first.elector.assertHeld()
  clock.freeze(6_000)
  expect(() => first.elector.assertHeld()).toThrow(LeaseLost)
})

test('a leader that can not renew stops at its deadline, before others may take over', async () => {
  const { clock, server } = setUp()
  const first = candidate('first', server, clock)
  await clock.advance(4_000)
  for (let time = 0; time < 20; time++) server.failNext('mergePatch', new KubeTransportError('ECONNREFUSED', 'down'))
  await clock.advance(7_000)
  expect(first.state.end).toBeUndefined()
  first.elector.assertHeld()
  await clock.advance(3_500)
  expect(first.state.end).toBe('lost')
  expect(first.state.signal?.reason).toBeInstanceOf(LeaseLost)
})

test('a few failed renewals do no harm', async () => {
  const { clock, server } = setUp()
  const first = candidate('first', server, clock)
  await clock.advance(4_000)
  for (let time = 0; time < 3; time++) server.failNext('mergePatch', new KubeTransportError('ECONNRESET', 'reset'))
  await clock.advance(60_000)
  expect(first.state.end).toBeUndefined()
  first.elector.assertHeld()
})

test('a renewal whose answer was lost is found out and gone on from', async () => {
  const { clock, server } = setUp()
  const first = candidate('first', server, clock)
  await clock.advance(3_000)
  const stored = await lease(server)
  server.write({ ...stored, spec: { ...stored.spec, renewTime: 'the answer got lost' } })
  await clock.advance(30_000)
  expect(first.state.end).toBeUndefined()
  first.elector.assertHeld()
})

test('a leader whose lease another has taken stops at once', async () => {
  const { clock, server } = setUp()
  const first = candidate('first', server, clock)
  await clock.advance(3_000)
  const stored = await lease(server)
  server.write({ ...stored, spec: { ...stored.spec, holderIdentity: 'other' } })
  await clock.advance(2_500)
  expect(first.state.end).toBe('lost')
})

test('work that ends by itself gives up the lease, and its error is passed on', async () => {
  const { clock, server } = setUp()
  const first = candidate('first', server, clock, () => Promise.reject(new Error('a bug')))
  await expect(first.running).rejects.toThrow('a bug')
  expect((await lease(server)).spec?.holderIdentity).toBe('')
})

test('who never led stops without a trace', async () => {
  const { clock, server } = setUp()
  candidate('first', server, clock)
  await settle()
  const before = await lease(server)
  const second = candidate('second', server, clock)
  await settle()
  second.stop.abort()
  expect(await second.running).toBe('stopped')
  expect(await lease(server)).toEqual(before)
})

test('a deadline beyond the lease is refused: two would lead', () => {
  const { clock, server } = setUp()
  expect(() =>
    createLeaderElector({
      client: server.client,
      namespace: 'ns',
      name: 'n',
      identity: 'i',
      clock,
      leaseDurationMs: 10_000,
      renewDeadlineMs: 10_000,
    }),
  ).toThrow(RangeError)
})

describe('an etcd that was set back', () => {
  test('ends the leader at the first renewal that finds the lease as it was before', async () => {
    const { clock, server } = setUp()
    const first = candidate('first', server, clock)
    await clock.advance(60_000)
    const { metadata, ...rest } = await lease(server)
    server.setRevision(Number(metadata.resourceVersion) - 10)
    server.write({ ...rest, metadata }, 'quietly')
    await clock.advance(3_000)
    expect(first.state.end).toBe('lost')
    expect(first.state.signal?.reason).toBeInstanceOf(LeaseLost)
    expect(String(first.state.signal?.reason)).toContain('etcd was set back: the lease is at resource version')
    expect(() => first.elector.assertHeld()).toThrow(LeaseLost)
  })

  test('ends who waits for the lease too: what it has in its caches is of another past', async () => {
    const { clock, server } = setUp()
    candidate('first', server, clock)
    await settle()
    const second = candidate('second', server, clock)
    await clock.advance(60_000)
    const { metadata, ...rest } = await lease(server)
    server.setRevision(Number(metadata.resourceVersion) - 10)
    server.write({ ...rest, metadata }, 'quietly')
    await clock.advance(6_000)
    expect(second.state).toMatchObject({ leads: false, end: 'lost' })
  })

  test('and found by anyone else, ends the leader at once', async () => {
    const { clock, server } = setUp()
    const first = candidate('first', server, clock)
    await settle()
    first.elector.assertHeld()
    first.elector.lose('etcd was set back: a list of stakes')
    expect(() => first.elector.assertHeld()).toThrow(LeaseLost)
    expect(first.state.signal?.aborted).toBe(true)
    await settle()
    expect(first.state.end).toBe('lost')
    // The lease is not given up: nobody else leads before it has run out.
    expect((await lease(server)).spec?.holderIdentity).toBe(first.elector.identity)
  })

  test('and found while waiting for the lease, ends the wait', async () => {
    const { clock, server } = setUp()
    candidate('first', server, clock)
    await settle()
    const second = candidate('second', server, clock)
    await clock.advance(5_000)
    second.elector.lose('etcd was set back: a list of stakes')
    await settle()
    expect(second.state).toMatchObject({ leads: false, end: 'lost' })
  })
})

test('to ask whether a process leads that does not yet is no loss: it can still come to lead', async () => {
  const { clock, server } = setUp()
  const first = candidate('first', server, clock)
  await settle()
  const second = candidate('second', server, clock)
  await clock.advance(5_000)
  expect(() => second.elector.assertHeld()).toThrow(LeaseLost)
  first.stop.abort()
  await clock.advance(60_000)
  second.elector.assertHeld()
  expect(second.state).toMatchObject({ leads: true })
  expect(second.state.end).toBeUndefined()
})

describe('what people write at the lease', () => {
  const annotate = async (server: MemoryServer<Lease>, annotations: Record<string, string>): Promise<void> => {
    const { resourceVersion } = (await lease(server)).metadata
    const ref = { namespace: 'ns', name: 'operator' }
    await server.client.mergePatch(ref, { metadata: { annotations } }, { resourceVersion }, new AbortController().signal)
  }

  test('the leader knows within half a retry period, and goes on leading', async () => {
    const { clock, server } = setUp()
    const first = candidate('first', server, clock)
    await settle()
    for (let n = 0; n < 6; n++) {
      await clock.advance(700)
      await annotate(server, { told: String(n) })
      await clock.advance(1_100)
      expect(first.elector.annotations()).toMatchObject({ told: String(n) })
    }
    expect(first.state).toMatchObject({ leads: true })
    first.elector.assertHeld()
  })

  test('the leader knows within a second or so, however seldom it renews, and renews no more often for that', async () => {
    const { clock, server } = setUp()
    const slow = { leaseDurationMs: 60_000, renewDeadlineMs: 40_000, retryPeriodMs: 20_000 }
    const first = candidate('first', server, clock, untilAborted, slow)
    await settle()
    const renewals = new Set<string | undefined>()
    for (let n = 0; n < 30; n++) {
      await clock.advance(700)
      await annotate(server, { told: String(n) })
      await clock.advance(1_100)
      expect(first.elector.annotations()).toMatchObject({ told: String(n) })
      renewals.add((await lease(server)).spec?.renewTime)
    }
    expect(renewals.size).toBe(3)
    expect(first.state).toMatchObject({ leads: true })
  })

  test('whoever comes to lead knows before it begins', async () => {
    const { clock, server } = setUp()
    const first = candidate('first', server, clock)
    await settle()
    await annotate(server, { told: 'before' })
    first.stop.abort()
    await first.running
    let known: unknown
    const second: ReturnType<typeof candidate> = candidate('second', server, clock, async (signal) => {
      known = second.elector.annotations()
      await untilAborted(signal)
    })
    await clock.advance(3_000)
    expect(known).toMatchObject({ told: 'before' })
  })
})

describe('a lease that is taken from the leader', () => {
  test.each([
    { by: 'another process', holderIdentity: 'somebody else' },
    { by: 'nobody, by hand', holderIdentity: '' },
  ])('by $by is lost at the next look, long before its deadline', async ({ holderIdentity }) => {
    const { clock, server } = setUp()
    const first = candidate('first', server, clock)
    await clock.advance(3_000)
    const { resourceVersion } = (await lease(server)).metadata
    const ref = { namespace: 'ns', name: 'operator' }
    await server.client.mergePatch(ref, { spec: { holderIdentity } }, { resourceVersion }, new AbortController().signal)
    await clock.advance(1_100)
    expect(first.state.end).toBe('lost')
    expect(() => first.elector.assertHeld()).toThrow(LeaseLost)
  })
})
