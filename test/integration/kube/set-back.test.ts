import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createKubeApi, type KubeApi } from '../../../src/operator/kube/api.ts'
import { createInformer } from '../../../src/operator/kube/informer.ts'
import { createLeaderElector, LeaseLost } from '../../../src/operator/kube/leader-election.ts'
import { type Lease, leases } from '../../../src/operator/kube/lease.ts'
import { EtcdSetBack } from '../../../src/operator/kube/revisions.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { adminApi, until } from './apis.ts'
import { createWidgets, installWidgets, type Widget, widget, widgetClient } from './widgets.ts'

let cluster: ControlPlane
let admin: KubeApi
const cleanUps: (() => unknown)[] = []
beforeAll(async () => {
  cluster = await startControlPlane()
  await installWidgets(cluster)
})
beforeEach(() => {
  // A new one for each test: its own word of what it has seen is as good as any other's.
  admin = adminApi(cluster)
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  await admin.close()
})
afterAll(async () => {
  await cluster?.stop()
})

const signal = new AbortController().signal

/** An instance as the operator is one: an API whose word ends it, a lease, a cache. Its lease outlives the restart of an API server. */
function instance(name: string, { withLease }: { readonly withLease: boolean }) {
  const told: EtcdSetBack[] = []
  const logged: string[] = []
  const stop = new AbortController()
  const api = createKubeApi({
    kubeconfigPath: cluster.adminKubeconfigPath,
    clock: systemClock,
    userAgent: name,
    onSetBack: (error) => {
      told.push(error)
      elector.lose(error.message)
    },
  })
  const note = (_fields: object, message: string): void => {
    logged.push(message)
  }
  const elector = createLeaderElector({
    client: api.resource<Lease>(leases),
    namespace: 'default',
    name,
    identity: name,
    clock: systemClock,
    leaseDurationMs: 120_000,
    renewDeadlineMs: 110_000,
    retryPeriodMs: withLease ? 500 : 100_000,
    log: { debug: () => {}, info: note, warn: () => {}, error: note },
  })
  const informer = createInformer<Widget>({ client: widgetClient(api), clock: systemClock, backoff: { baseMs: 50, maxMs: 500 } })
  const state: { leading?: AbortSignal } = {}
  const following = informer.run(stop.signal)
  const running = elector.run(
    {
      onStartedLeading: async (leading) => {
        state.leading = leading
        await new Promise<void>((resolve) => leading.addEventListener('abort', () => resolve()))
      },
    },
    stop.signal,
  )
  cleanUps.push(async () => {
    stop.abort()
    await Promise.all([running, following])
    await api.close()
  })
  return { api, elector, informer, told, logged, state, running }
}

/** Many more than an API server writes of its own accord while it starts: a store that has caught up with what was seen shows nothing. */
const MANY = 300
const names = (prefix: string, length = MANY) => Array.from({ length }, (_, index) => `${prefix}-${index}`)

test('a leader whose etcd is set back ends, whatever shows it first', async () => {
  await createWidgets(widgetClient(admin), names('kept', 20), signal)
  const leader = instance('by-lease', { withLease: true })
  await until('it leads', () => leader.state.leading !== undefined)
  await cluster.backUpEtcd()
  // The API server is without etcd for a moment.
  await until('widgets can be made', () =>
    createWidgets(widgetClient(admin), names(`lost-${Date.now()}`), signal).then(
      () => true,
      () => false,
    ),
  )
  await leader.informer.whenSynced(signal)
  await until('it is followed', () => leader.informer.size >= 20 + MANY)
  expect(leader.told).toEqual([])
  leader.elector.assertHeld()

  await cluster.restoreEtcd()
  expect(await leader.running).toBe('lost')
  expect(leader.state.leading?.reason).toBeInstanceOf(LeaseLost)
  expect(() => leader.elector.assertHeld()).toThrow(LeaseLost)
  expect(leader.logged.join('\n')).toContain('leadership is lost: etcd was set back: ')
})

test('a leader whose etcd is set back ends before its lease could show it, and the write that shows it is refused', {
  timeout: 240_000,
}, async () => {
  const client = widgetClient(admin)
  await until('widgets can be made', () =>
    client.create(widget('written'), signal).then(
      () => true,
      () => false,
    ),
  )
  const leader = instance('by-cache', { withLease: false })
  await until('it leads', () => leader.state.leading !== undefined)
  await leader.informer.whenSynced(signal)
  await cluster.backUpEtcd()
  await until('widgets can be made', () =>
    createWidgets(client, names(`gone-${Date.now()}`), signal).then(
      () => true,
      () => false,
    ),
  )
  await until('they are followed', () => leader.informer.size >= MANY)
  expect(leader.told).toEqual([])

  await cluster.restoreEtcd()
  // The object is as it was before the backup, so that no fence holds this write back.
  const known = leader.informer.get('default/written')
  const written = widgetClient(leader.api).mergePatch(
    { namespace: 'default', name: 'written' },
    { status: { step: 1 } },
    { resourceVersion: known?.metadata.resourceVersion ?? '', subresource: 'status' },
    signal,
  )
  await expect(written).rejects.toBeInstanceOf(EtcdSetBack)
  expect(await leader.running).toBe('lost')
  expect(() => leader.elector.assertHeld()).toThrow(LeaseLost)
  expect(leader.told[0]?.message).toMatch(
    /^etcd was set back: a (list|write) of widgets is at resource version \d+, but \d+ was seen before/,
  )
})

test('an API server that is killed and comes back with the same etcd ends nobody', async () => {
  const leader = instance('undisturbed', { withLease: true })
  await until('it leads', () => leader.state.leading !== undefined)
  await leader.informer.whenSynced(signal)
  await cluster.restartApiServer()
  await until('widgets can be made', () =>
    widgetClient(admin)
      .create(widget(`after-${Date.now()}`), signal)
      .then(
        () => true,
        () => false,
      ),
  )
  await until('it is followed', () => [...leader.informer.list()].some(({ metadata }) => metadata.name.startsWith('after-')))
  expect(leader.told).toEqual([])
  leader.elector.assertHeld()
})
