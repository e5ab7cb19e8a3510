import { systemClock } from '../src/lib/clock.ts'
import { createKubeApi } from '../src/operator/kube/api.ts'
import { createController } from '../src/operator/kube/controller.ts'
import { createInformer } from '../src/operator/kube/informer.ts'
import { type KubeObject, refOf } from '../src/operator/kube/objects.ts'
import { createQueue, Priority } from '../src/operator/kube/queue.ts'
import type { ResourceDefinition } from '../src/operator/kube/resource-client.ts'
import type { ControlPlane } from '../test/cluster/control-plane.ts'
import { type BareClient, createBareClient, forEachOf } from './bare.ts'
import { median } from './measure.ts'

export interface RuntimeResult {
  readonly objects: number
  readonly rounds: number
  readonly writesPerSecondRuntime: number
  readonly writesPerSecondBare: number
  /** How fast the runtime is beside the bare pool, of each round: 1 is as fast. */
  readonly ratios: readonly number[]
  readonly ratio: number
  readonly cpuMsPerWriteRuntime: number
  readonly cpuMsPerWriteBare: number
}

const WORKERS = 16
const PATCHES = 8
const GROUP = 'bench.staking.dev'
const definition: ResourceDefinition = { group: GROUP, version: 'v1', plural: 'gauges', kind: 'Gauge', namespaced: true }
const collection = `/apis/${GROUP}/v1/namespaces/default/gauges`

interface Gauge extends KubeObject {
  readonly spec: { readonly size: number }
  readonly status?: { readonly step: number; readonly note: string }
}

/** With a status subresource and next to no validation: the less the server does, the more what is measured shows. */
const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gauges.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'gauges', singular: 'gauge', kind: 'Gauge', listKind: 'GaugeList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { size: { type: 'integer' } } },
              status: { type: 'object', properties: { step: { type: 'integer' }, note: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
}

const gauge = (name: string) => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Gauge',
  metadata: { name, namespace: 'default' },
  spec: { size: 1 },
})
const statusAt = (step: number) => ({ step, note: `step ${step} of ${PATCHES}, ${'as it is told to people '.repeat(8)}` })

/**
 * (b) The kube runtime beside a bare pool of connections: the same creates and fenced status patches, sixteen at a time, in turns. The runtime
 * follows its watch, keeps its cache and its queue and does one request a reconcile.
 */
export async function benchRuntime(
  cluster: ControlPlane,
  { objects, rounds }: { readonly objects: number; readonly rounds: number },
  log: (line: string) => void,
  signal: AbortSignal,
): Promise<RuntimeResult> {
  await cluster.kubectlOk(['apply', '-f', '-'], { input: JSON.stringify(crd) })
  await cluster.kubectlOk(['wait', '--for=condition=Established', `crd/gauges.${GROUP}`, '--timeout=30s'])
  const client = createBareClient(cluster)
  try {
    const writes = objects * (1 + PATCHES)
    const measured: { readonly runtime: Timing; readonly bare: Timing }[] = []
    // The first round warms up both.
    for (let round = 0; round <= rounds; round++) {
      const arms = {
        runtime: () => timed(() => runWithRuntime(cluster, `r${round}`, objects, signal)),
        bare: () => timed(() => runBare(client, `b${round}`, objects, signal)),
      }
      const first = round % 2 === 0 ? await arms.runtime() : undefined
      const bare = await arms.bare()
      const runtime = first ?? (await arms.runtime())
      const ratio = bare.ms / runtime.ms
      log(
        `round ${round}: runtime ${perSecond(writes, runtime)}/s, bare ${perSecond(writes, bare)}/s, ratio ${ratio.toFixed(2)}${round === 0 ? ' (warm-up)' : ''}`,
      )
      if (round > 0) measured.push({ runtime, bare })
    }
    const ratios = measured.map(({ runtime, bare }) => bare.ms / runtime.ms)
    const of = (pick: (round: { runtime: Timing; bare: Timing }) => number) => median(measured.map(pick))
    return {
      objects,
      rounds,
      writesPerSecondRuntime: (writes / of(({ runtime }) => runtime.ms)) * 1000,
      writesPerSecondBare: (writes / of(({ bare }) => bare.ms)) * 1000,
      ratios,
      ratio: median(ratios),
      cpuMsPerWriteRuntime: of(({ runtime }) => runtime.cpuMs) / writes,
      cpuMsPerWriteBare: of(({ bare }) => bare.cpuMs) / writes,
    }
  } finally {
    await client.close()
  }
}

interface Timing {
  readonly ms: number
  /** Of this process. */
  readonly cpuMs: number
}
const perSecond = (writes: number, { ms }: Timing): string => ((writes / ms) * 1000).toFixed(0)

/** `work` says itself when the clock starts and stops. */
async function timed(work: () => Promise<Timing>): Promise<Timing> {
  globalThis.gc?.()
  return work()
}

function startClock(): () => Timing {
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  return () => {
    const ms = performance.now() - startedAt
    const { user, system } = process.cpuUsage(cpu)
    return { ms, cpuMs: (user + system) / 1000 }
  }
}

async function runBare(client: BareClient, prefix: string, objects: number, signal: AbortSignal): Promise<Timing> {
  // As the runtime's, the connections stand before the clock starts.
  await forEachOf(WORKERS, WORKERS, async () => void (await client.send('GET', `${collection}?limit=1`)), signal)
  const stop = startClock()
  await forEachOf(
    objects,
    WORKERS,
    async (index) => {
      const name = `${prefix}-${index}`
      let object = await client.send<Gauge>('POST', collection, gauge(name))
      for (let step = 1; step <= PATCHES; step++) {
        object = await client.send<Gauge>('PATCH', `${collection}/${name}/status`, {
          status: statusAt(step),
          metadata: { resourceVersion: object.metadata.resourceVersion },
        })
      }
    },
    signal,
  )
  return stop()
}

async function runWithRuntime(cluster: ControlPlane, prefix: string, objects: number, signal: AbortSignal): Promise<Timing> {
  const stopping = new AbortController()
  const either = AbortSignal.any([signal, stopping.signal])
  const api = createKubeApi({ kubeconfigPath: cluster.adminKubeconfigPath, clock: systemClock, userAgent: 'bench' })
  const client = api.resource<Gauge>(definition)
  const queue = createQueue<string>({ clock: systemClock })
  const informer = createInformer<Gauge>({
    client,
    clock: systemClock,
    onChange: (key, change) => {
      if (!change.own) queue.add(key)
    },
  })
  const following = informer.run(either)
  let left = objects
  const finished = Promise.withResolvers<void>()
  const reconcile = async (key: string, abort: AbortSignal) => {
    const object = informer.get(key)
    if (object === undefined) {
      informer.put(await client.create(gauge(refOf(key).name), abort))
      return { kind: 'again', priority: Priority.high } as const
    }
    const step = object.status?.step ?? 0
    if (step >= PATCHES) return { kind: 'done' } as const
    const { resourceVersion } = object.metadata
    informer.put(await client.mergePatch(refOf(key), { status: statusAt(step + 1) }, { resourceVersion, subresource: 'status' }, abort))
    if (step + 1 < PATCHES) return { kind: 'again', priority: Priority.high } as const
    left--
    if (left === 0) finished.resolve()
    return { kind: 'done' } as const
  }
  const controller = createController<string>({ name: 'Gauge', queue, workers: WORKERS, reconcile, clock: systemClock })
  try {
    await informer.whenSynced(either)
    await forEachOf(WORKERS, WORKERS, async () => void (await client.list({ limit: 1 }, either)), either)
    const working = controller.run(either)
    const stop = startClock()
    for (let index = 0; index < objects; index++) queue.add(`default/${prefix}-${index}`)
    await Promise.race([finished.promise, new Promise((_, reject) => either.addEventListener('abort', () => reject(either.reason)))])
    const timing = stop()
    stopping.abort()
    await working
    return timing
  } finally {
    stopping.abort()
    await following
    await api.close()
  }
}
