import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import type { KubeApi } from '../../../src/operator/kube/api.ts'
import { createLeaderElector, LeaseLost } from '../../../src/operator/kube/leader-election.ts'
import { type Lease, leases } from '../../../src/operator/kube/lease.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { startProcess } from '../../cluster/process.ts'
import { adminApi, apiThrough, portOf, until } from './apis.ts'
import { startTcpProxy } from './tcp-proxy.ts'
import { installWidgets, widget, widgetClient } from './widgets.ts'

let cluster: ControlPlane
let api: KubeApi
let dir: string
const cleanUps: (() => unknown)[] = []
beforeAll(async () => {
  cluster = await startControlPlane()
  await installWidgets(cluster)
  api = adminApi(cluster)
  dir = mkdtempSync(join(tmpdir(), 'kube-lease-'))
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await api?.close()
  await cluster?.stop()
  rmSync(dir, { recursive: true, force: true })
})

const signal = new AbortController().signal
const timing = { leaseDurationMs: 8_000, renewDeadlineMs: 5_000, retryPeriodMs: 500 }

function candidate(identity: string, name: string, through: KubeApi = api) {
  const stop = new AbortController()
  const elector = createLeaderElector({
    client: through.resource<Lease>(leases),
    namespace: 'default',
    name,
    identity,
    clock: systemClock,
    ...timing,
  })
  const state: { leads: boolean; leading?: AbortSignal } = { leads: false }
  const running = elector.run(
    {
      onStartedLeading: async (leading) => {
        state.leads = true
        state.leading = leading
        await new Promise<void>((resolve) => leading.addEventListener('abort', () => resolve()))
      },
    },
    stop.signal,
  )
  cleanUps.push(async () => {
    stop.abort()
    await running
  })
  return { elector, state, stop, running }
}

test('of two, one leads; the other takes over at once when it stops', async () => {
  const [first, second] = [candidate('first', 'graceful'), candidate('second', 'graceful')]
  await until('one leads', () => first.state.leads || second.state.leads)
  // Longer than a lease that nobody renews.
  await systemClock.sleep(9_000, signal)
  expect([first.state.leads, second.state.leads].filter(Boolean)).toHaveLength(1)
  const [leader, other] = first.state.leads ? [first, second] : [second, first]
  leader.elector.assertHeld()
  expect(() => other.elector.assertHeld()).toThrow(LeaseLost)
  leader.stop.abort()
  expect(await leader.running).toBe('stopped')
  const stoppedAt = performance.now()
  await until('the other leads', () => other.state.leads)
  expect(performance.now() - stoppedAt).toBeLessThan(timing.leaseDurationMs)
  const lease = await api.resource<Lease>(leases).get({ namespace: 'default', name: 'graceful' }, signal)
  expect(lease.spec).toMatchObject({ holderIdentity: other.elector.identity, leaseTransitions: 1 })
})

test('a leader cut off from the API server stops before another takes over', async () => {
  const proxy = await startTcpProxy(portOf(cluster))
  const behind = apiThrough(cluster, proxy.port)
  cleanUps.push(
    () => proxy.close(),
    () => behind.close(),
  )
  const first = candidate('first', 'cut-off', behind)
  await until('it leads', () => first.state.leads)
  const second = candidate('second', 'cut-off')
  await systemClock.sleep(1_000, signal)
  proxy.refuse()
  expect(await first.running).toBe('lost')
  expect(first.state.leading?.reason).toBeInstanceOf(LeaseLost)
  expect(second.state.leads).toBe(false)
  await until('the other leads', () => second.state.leads)
})

const leaderProcess = (leaseName: string, widgetName: string, goFile: string) =>
  startProcess({
    name: 'leader',
    command: process.execPath,
    args: [join(import.meta.dirname, 'leader-process.ts'), cluster.adminKubeconfigPath, leaseName, widgetName, goFile],
    readyWhen: ({ output }) => output().includes('READY'),
  })

test('after a leader is killed another takes over when the lease has run out', async () => {
  await widgetClient(api).create(widget('crash'), signal)
  const leader = await leaderProcess('crash', 'crash', join(dir, 'never'))
  cleanUps.push(() => leader.stop())
  const second = candidate('second', 'crash')
  leader.kill('SIGKILL')
  await leader.exited
  await systemClock.sleep(1_500, signal)
  expect(second.state.leads).toBe(false)
  await until('the other leads', () => second.state.leads)
})

test('a leader that wakes from a freeze is refused its effect, its write, and its lease', async () => {
  const client = widgetClient(api)
  const created = await client.create(widget('freeze'), signal)
  const goFile = join(dir, 'go')
  const leader = await leaderProcess('freeze', 'freeze', goFile)
  cleanUps.push(() => leader.stop())
  leader.kill('SIGSTOP')
  const second = candidate('second', 'freeze')
  await until('the other leads', () => second.state.leads)
  const ref = { namespace: 'default', name: 'freeze' }
  const { resourceVersion } = created.metadata
  await client.mergePatch(ref, { status: { note: 'second' } }, { resourceVersion, subresource: 'status' }, signal)
  writeFileSync(goFile, '')
  leader.kill('SIGCONT')
  await leader.exited
  expect(leader.output().trim().split('\n').slice(0, 2)).toEqual(['READY', 'REFUSED'])
  expect(leader.output().trim().split('\n').slice(2).sort()).toEqual(['CONFLICT', 'LOST'])
  expect((await client.get(ref, signal)).status?.note).toBe('second')
  second.elector.assertHeld()
})
