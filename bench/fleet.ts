import { setTimeout as delay } from 'node:timers/promises'
import { createBareClient, forEachOf } from './bare.ts'
import type { BenchCluster, BenchOperator, Fakes } from './bench-cluster.ts'
import { lastPlace, settledRecord, settledStake, settledStatus } from './fleet-object.ts'
import { cpuMs, growth, median, peakResidentBytes, residentBytes, scrape, sumBy, until } from './measure.ts'

export interface FleetResult {
  readonly stakes: number
  readonly jsonBytesPerStake: number
  readonly createdPerSecond: number
  /** From the start of the process until all caches are full; beside it, with no stakes at all. */
  readonly readyMs: number
  readonly readyMsEmpty: number
  /** Until every stake has been looked at once. */
  readonly settledMs: number
  /** The operator's CPU time until then; beside it, with no stakes at all. */
  readonly settledCpuMs: number
  readonly settledCpuMsEmpty: number
  readonly requestsUntilSettled: number
  readonly requestsUntilSettledEmpty: number
  /** After the quiet. */
  readonly residentBytes: number
  /** The most since the start of the process. */
  readonly peakResidentBytes: number
  readonly residentBytesEmpty: number
  readonly heapBytesPerStake: number
  readonly heapBytes: number
  readonly quietSeconds: number
  readonly statusWritesWhileQuiet: number
  readonly requestsWhileQuiet: number
  readonly cpuMsPerSecondWhileQuiet: number
}

const NAMESPACES = Array.from({ length: 20 }, (_, index) => `fleet-${index}`)
const REQUESTS = 'staking_operator_kube_request_duration_seconds_count'
const EVERY_MS = 60_000
const DAY_MINUTES = 24 * 60
const withHeap = ['--expose-gc', '--import', new URL('heap-on-signal.ts', import.meta.url).href]

interface Sample {
  readonly readyMs: number
  readonly settledMs: number
  readonly settledCpuMs: number
  readonly requests: number
  readonly resident: number
  readonly peak: number
  readonly heap: number
  readonly quiet: { readonly writes: number; readonly requests: number; readonly cpuPerSecond: number }
}

/** (c) A fleet of active validators that nothing happens to: what it costs to hold, and that nothing is written. */
export async function benchFleet(
  bench: BenchCluster,
  { stakes, quietSeconds }: { readonly stakes: number; readonly quietSeconds: number },
  log: (line: string) => void,
  signal: AbortSignal,
): Promise<FleetResult> {
  await bench.prepare(NAMESPACES)
  const fakes = await bench.startFakes(0, { fleet: stakes })
  try {
    log('the operator without stakes')
    const empty = await sample(bench, fakes, { stakes: 0, quietSeconds: 1 }, signal)
    log(`creating ${stakes} settled stakes`)
    const startedAt = performance.now()
    const jsonBytesPerStake = await createFleet(bench, stakes, signal)
    const createdPerSecond = (stakes / (performance.now() - startedAt)) * 1000
    log(`the operator with ${stakes} stakes, ${quietSeconds} s of quiet`)
    const full = await sample(bench, fakes, { stakes, quietSeconds }, signal)
    return {
      stakes,
      jsonBytesPerStake,
      createdPerSecond,
      readyMs: full.readyMs,
      readyMsEmpty: empty.readyMs,
      settledMs: full.settledMs,
      settledCpuMs: full.settledCpuMs,
      settledCpuMsEmpty: empty.settledCpuMs,
      requestsUntilSettled: full.requests,
      requestsUntilSettledEmpty: empty.requests,
      residentBytes: full.resident,
      peakResidentBytes: full.peak,
      residentBytesEmpty: empty.resident,
      heapBytesPerStake: (full.heap - empty.heap) / stakes,
      heapBytes: full.heap,
      quietSeconds,
      statusWritesWhileQuiet: full.quiet.writes,
      requestsWhileQuiet: full.quiet.requests,
      cpuMsPerSecondWhileQuiet: full.quiet.cpuPerSecond,
    }
  } finally {
    await fakes.stop()
  }
}

async function createFleet(bench: BenchCluster, stakes: number, signal: AbortSignal): Promise<number> {
  const client = createBareClient(bench.cluster)
  // Made one after the other, as fleets are: times that all share would take no memory.
  const firstMs = Date.now() - (stakes + DAY_MINUTES) * EVERY_MS
  const sizes: number[] = []
  try {
    await forEachOf(
      stakes,
      32,
      async (index) => {
        const namespace = NAMESPACES[index % NAMESPACES.length] ?? ''
        const object = settledStake(index, namespace)
        const path = `/apis/staking.dev/v1alpha1/namespaces/${namespace}/ethereumstakes`
        const { metadata } = await client.send<{ metadata: { generation: number } }>('POST', path, object)
        const written = await client.send<{ metadata: { managedFields?: unknown } }>('PATCH', `${path}/${object.metadata.name}/status`, {
          status: settledStatus(index, metadata.generation, new Date(firstMs + index * EVERY_MS)),
        })
        const { object: made, status } = settledRecord(index, namespace)
        const records = '/apis/staking.dev/v1alpha1/stakingtransactions'
        const { metadata: record } = await client.send<{ metadata: { name: string; uid: string } }>('POST', records, made)
        if (index === stakes - 1) await client.send('POST', '/apis/staking.dev/v1alpha1/signernonces', lastPlace(index, record))
        await client.send('PATCH', `${records}/${made.metadata.name}/status`, { status })
        if (sizes.length < 100)
          sizes.push(JSON.stringify({ ...written, metadata: { ...written.metadata, managedFields: undefined } }).length)
      },
      signal,
    )
  } finally {
    await client.close()
  }
  return median(sizes)
}

async function sample(
  bench: BenchCluster,
  fakes: Fakes,
  { stakes, quietSeconds }: { readonly stakes: number; readonly quietSeconds: number },
  signal: AbortSignal,
): Promise<Sample> {
  const startedAt = performance.now()
  const operator = await bench.startOperator(fakes, { nodeArgs: withHeap })
  try {
    await until('every stake was looked at', () => isIdle(operator, stakes), { timeoutMs: 60_000 + stakes * 10, everyMs: 250, signal })
    const settledMs = performance.now() - startedAt
    const settledCpuMs = cpuMs(operator.process.pid)
    // What came with the start (the signer's first status, events) is over.
    await delay(3_000, undefined, { signal })
    const before = await scrape(operator.metricsUrl)
    const begun = sumBy(before, REQUESTS, 'resource')
    begun.delete('leases')
    const cpuBefore = cpuMs(operator.process.pid)
    await delay(quietSeconds * 1000, undefined, { signal })
    const cpu = cpuMs(operator.process.pid) - cpuBefore
    const after = await scrape(operator.metricsUrl)
    const resident = residentBytes(operator.process.pid)
    const peak = peakResidentBytes(operator.process.pid)
    const grown = (name: string, by: string) => growth(sumBy(before, name, by), sumBy(after, name, by))
    const sum = (sums: ReadonlyMap<string, number>) => [...sums.values()].reduce((total, value) => total + value, 0)
    operator.process.kill('SIGUSR2')
    const [, heap] = await operator.process.waitForOutput(/heap-on-signal (\d+)/)
    const requests = grown(REQUESTS, 'resource')
    requests.delete('leases')
    return {
      readyMs: operator.readyMs,
      settledMs,
      settledCpuMs,
      requests: sum(begun),
      resident,
      peak,
      heap: Number(heap),
      quiet: {
        writes: sum(grown('staking_operator_status_writes_total', 'kind')),
        requests: sum(requests),
        cpuPerSecond: cpu / quietSeconds,
      },
    }
  } finally {
    await operator.process.stop()
  }
}

/** Leading, every stake in the cache visited and waiting for its next look, nothing ready or running. */
async function isIdle(operator: BenchOperator, stakes: number): Promise<boolean> {
  const metrics = await scrape(operator.metricsUrl)
  if (metrics.get('staking_operator_leader') !== 1) return false
  const keys = (state: string) => metrics.get(`staking_operator_queue_keys{kind="EthereumStake",state="${state}"}`) ?? 0
  const objects = metrics.get('staking_operator_informer_objects{resource="ethereumstakes"}') ?? 0
  return objects === stakes && keys('delayed') === stakes && keys('ready') + keys('processing') === 0
}
