import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import type { KubeApi } from '../../../src/operator/kube/api.ts'
import { createInformer, type Informer } from '../../../src/operator/kube/informer.ts'
import type { ResourceClient } from '../../../src/operator/kube/resource-client.ts'
import { type ControlPlane, startControlPlane } from '../../cluster/control-plane.ts'
import { adminApi, apiThrough, portOf, until } from './apis.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'
import { createWidgets, installWidgets, type Widget, widget, widgetClient } from './widgets.ts'

let cluster: ControlPlane
let admin: KubeApi
let direct: ResourceClient<Widget>
beforeAll(async () => {
  cluster = await startControlPlane()
  await installWidgets(cluster)
  admin = adminApi(cluster)
  direct = widgetClient(admin)
})
afterAll(async () => {
  await admin?.close()
  await cluster?.stop()
})

const signal = new AbortController().signal
let stopping: AbortController
let proxy: TcpProxy
let api: KubeApi
let running: Promise<void>[]
beforeEach(async () => {
  stopping = new AbortController()
  running = []
  proxy = await startTcpProxy(portOf(cluster))
  api = apiThrough(cluster, proxy.port)
})
afterEach(async () => {
  stopping.abort()
  await Promise.all(running)
  await api.close()
  await proxy.close()
  await cluster.request({ method: 'DELETE', path: '/apis/test.kube-runtime.dev/v1/namespaces/default/widgets' })
})

/** An informer behind the proxy, whose picture of the world is also kept from its changes alone. */
function follow(options: { idleWatchMs?: number } = {}) {
  const changes: string[] = []
  const ends: string[] = []
  const listed: number[] = []
  const mirror = new Map<string, string>()
  const informer = createInformer<Widget>({
    client: widgetClient(api),
    clock: systemClock,
    backoff: { baseMs: 50, maxMs: 500 },
    ...options,
    onChange: (key, change) => {
      changes.push(`${change.type} ${key}`)
      if (change.type === 'deleted') mirror.delete(key)
      else mirror.set(key, change.new.metadata.resourceVersion)
    },
    metrics: { watchEnded: (reason) => ends.push(reason), listed: (count) => listed.push(count) },
  })
  running.push(informer.run(stopping.signal))
  return { informer, changes, ends, listed, mirror }
}

/** Everything that the server has, in order. */
async function truth(): Promise<string[]> {
  let items: readonly Widget[] = []
  // An API server that has just started refuses lists until its cache is filled.
  await until('the server lists', async () => {
    const page = await direct.list({}, signal).catch(() => undefined)
    items = page?.items ?? []
    return page !== undefined
  })
  return items.map(({ metadata }) => `${metadata.namespace}/${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`).sort()
}
const picture = (informer: Informer<Widget>): string[] =>
  [...informer.list()].map(({ metadata }) => `${metadata.namespace}/${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`).sort()

async function untilCaughtUp({ informer, mirror }: ReturnType<typeof follow>): Promise<void> {
  const expected = await truth()
  await until('the informer has caught up', () => picture(informer).join() === expected.join())
  // Who only heard of the changes knows the same.
  expect([...mirror].map(([key, version]) => `${key} ${version}`).sort()).toEqual(
    [...informer.list()].map(({ metadata }) => `${metadata.namespace}/${metadata.name} ${metadata.resourceVersion}`).sort(),
  )
}

const numbered = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
const drop = (name: string): Promise<void> => direct.delete({ namespace: 'default', name }, {}, signal)

test('thousands are listed in pages, without the fields that nobody reads', async () => {
  await createWidgets(direct, numbered('many', 2100), signal)
  const context = follow()
  await context.informer.whenSynced(AbortSignal.timeout(60_000))
  expect(context.informer.size).toBe(2100)
  expect(context.listed).toEqual([2100])
  expect(context.informer.get('default/many-7')?.metadata.managedFields).toBeUndefined()
  await untilCaughtUp(context)
})

test('a watch cut again and again in the middle of changes loses none, and lists only once', async () => {
  const context = follow()
  await context.informer.whenSynced(AbortSignal.timeout(60_000))
  const cutting = setInterval(() => proxy.cut(), 60)
  try {
    await createWidgets(direct, numbered('cut', 200), signal)
    for (const name of numbered('cut', 50)) await drop(name)
  } finally {
    clearInterval(cutting)
  }
  await untilCaughtUp(context)
  expect(context.ends).toContain('cut')
  expect(context.listed).toHaveLength(1)
  expect(context.informer.size).toBe(150)
})

test('a watch over which nothing comes any more is found out and resumed', async () => {
  const context = follow({ idleWatchMs: 1_000 })
  await context.informer.whenSynced(AbortSignal.timeout(60_000))
  await direct.create(widget('before'), signal)
  await until('it follows', () => context.informer.size === 1)
  proxy.swallow()
  await direct.create(widget('after'), signal)
  await untilCaughtUp(context)
  expect(context.ends).toContain('idle')
})

test('when the version to resume from was compacted away, it lists afresh and misses neither changes nor deletions', async () => {
  await createWidgets(direct, numbered('kept', 20), signal)
  const context = follow()
  await context.informer.whenSynced(AbortSignal.timeout(60_000))
  proxy.refuse()
  await drop('kept-1')
  await drop('kept-2')
  await direct.create(widget('kept-2'), signal)
  await createWidgets(direct, numbered('new', 5), signal)
  await cluster.compactEtcd()
  await cluster.restartApiServer()
  context.changes.length = 0
  proxy.accept()
  await untilCaughtUp(context)
  expect(context.ends).toContain('expired')
  expect(context.changes.filter((change) => change.endsWith('kept-1'))).toEqual(['deleted default/kept-1'])
  expect(context.changes.filter((change) => change.endsWith('kept-2'))).toEqual(['deleted default/kept-2', 'added default/kept-2'])
})

test('an API server that is killed and comes back is followed again, deletions meanwhile included', async () => {
  await createWidgets(direct, numbered('there', 20), signal)
  const context = follow()
  await context.informer.whenSynced(AbortSignal.timeout(60_000))
  await cluster.stopApiServer()
  proxy.refuse()
  await cluster.startApiServer()
  for (const name of numbered('there', 5)) await drop(name)
  proxy.accept()
  await untilCaughtUp(context)
  expect(context.informer.size).toBe(15)
  await direct.create(widget('later'), signal)
  await until('it follows again', () => context.informer.get('default/later') !== undefined)
})

test('an own write is in the cache before the watch brings it', async () => {
  const created = await direct.create(widget('own'), signal)
  const context = follow()
  await context.informer.whenSynced(AbortSignal.timeout(60_000))
  proxy.refuse()
  const { resourceVersion } = created.metadata
  const patched = await direct.mergePatch(
    { namespace: 'default', name: 'own' },
    { status: { step: 1 } },
    { resourceVersion, subresource: 'status' },
    signal,
  )
  context.informer.put(patched)
  expect(context.informer.get('default/own')?.status?.step).toBe(1)
  proxy.accept()
  await untilCaughtUp(context)
  expect(context.changes).toEqual(['added default/own', 'updated default/own'])
})

test('it waits for a CRD that is not installed, and outlives one that is deleted and made again', async () => {
  await cluster.kubectlOk(['delete', 'crd', 'widgets.test.kube-runtime.dev', '--wait=true'])
  const context = follow()
  await until('it has tried', () => context.ends.length > 1)
  expect(context.informer.hasSynced()).toBe(false)
  await installWidgets(cluster)
  await context.informer.whenSynced(AbortSignal.timeout(60_000))
  await until('the API serves widgets', async () => (await cluster.kubectl(['get', 'widgets'])).code === 0)
  await direct.create(widget('first'), signal)
  await untilCaughtUp(context)
  await cluster.kubectlOk(['delete', 'crd', 'widgets.test.kube-runtime.dev', '--wait=true'])
  await installWidgets(cluster)
  await until('the API serves widgets again', async () => (await cluster.kubectl(['get', 'widgets'])).code === 0)
  await direct.create(widget('second'), signal)
  await until('it has caught up', () => [...context.mirror.keys()].join() === 'default/second')
  expect(context.changes).toEqual(['added default/first', 'deleted default/first', 'added default/second'])
})
