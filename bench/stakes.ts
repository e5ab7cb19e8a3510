import type { EthereumStake } from '../src/resources/ethereum-stake.ts'
import { type BareClient, createBareClient, forEachOf } from './bare.ts'
import type { BenchCluster, BenchOperator, Fakes } from './bench-cluster.ts'
import { cpuMs, growth, type Metrics, scrape, sumBy, until } from './measure.ts'
import { AMOUNT_ETH, NETWORK, SIGNER, WITHDRAWAL_ADDRESS } from './network.ts'

export interface StakesResult {
  readonly stakes: number
  readonly seconds: number
  /** Until the last was sent. */
  readonly sentPerSecond: number
  /** The most that were sent and not final at one time. */
  readonly mostInFlight: number
  readonly stakesPerSecond: number
  readonly operatorCpuMsPerStake: number
  /** Requests to the API server a stake, by what they were: `patch ethereumstakes`. */
  readonly requestsPerStake: Readonly<Record<string, number>>
  readonly requestsPerStakeTotal: number
  readonly statusWritesPerStake: number
  readonly signerWritesPerStake: number
  readonly rpcCallsPerStake: number
  readonly rpcPerStake: Readonly<Record<string, number>>
  readonly apiCallsPerStake: number
  readonly apiPerStake: Readonly<Record<string, number>>
}

const collection = (namespace: string) => `/apis/staking.dev/v1alpha1/namespaces/${namespace}/ethereumstakes`
const WARM_UP = 50
/** Stakes created at a time: faster than the operator works. */
const CREATORS = 16

/** (a) Stakes from created to Confirmed, with a chain and a service that answer at once: what is left is the operator and the API server. */
export async function benchStakes(
  bench: BenchCluster,
  sizes: readonly number[],
  onResult: (result: StakesResult) => unknown,
  log: (line: string) => void,
  signal: AbortSignal,
  chain: Parameters<BenchCluster['startFakes']>[1] = {},
): Promise<void> {
  const runs = [WARM_UP, ...sizes]
  const namespaces = runs.map((_, index) => `stakes-${index}`)
  await bench.prepare(namespaces)
  log('preparing the deposits')
  const fakes = await bench.startFakes(
    runs.reduce((sum, size) => sum + size, 0),
    chain,
  )
  const operator = await bench.startOperator(fakes)
  const client = createBareClient(bench.cluster)
  try {
    await until('the signer is ready', async () => isReady(client), { timeoutMs: 30_000, signal })
    for (const [index, count] of runs.entries()) {
      log(index === 0 ? `warming up with ${count} stakes` : `${count} stakes`)
      const result = await run({ client, fakes, operator, namespace: namespaces[index] ?? '', count, signal })
      if (index > 0) onResult(result)
    }
  } catch (error) {
    log(
      `the operator's last words:\n${operator.process
        .output()
        .trimEnd()
        .split('\n')
        .slice(-8)
        .map((line) => line.slice(0, 800))
        .join('\n')}`,
    )
    throw error
  } finally {
    await client.close()
    await operator.process.stop()
    await fakes.stop()
  }
}

async function isReady(client: BareClient): Promise<boolean> {
  const signer = await client.send<{ status?: { conditions?: { type: string; status: string }[] } }>(
    'GET',
    `/apis/staking.dev/v1alpha1/stakingsigners/${SIGNER}`,
  )
  return signer.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
}

async function run(given: {
  readonly client: BareClient
  readonly fakes: Fakes
  readonly operator: BenchOperator
  readonly namespace: string
  readonly count: number
  readonly signal: AbortSignal
}): Promise<StakesResult> {
  const { client, fakes, operator, namespace, count, signal } = given
  const already = (await fakes.progress()).submitted
  const before = await scrape(operator.metricsUrl)
  const cpuBefore = cpuMs(operator.process.pid)
  const startedAt = performance.now()
  const creating = forEachOf(
    count,
    CREATORS,
    async (index) => {
      await client.send('POST', collection(namespace), {
        apiVersion: 'staking.dev/v1alpha1',
        kind: 'EthereumStake',
        metadata: { name: `stake-${index}`, namespace },
        spec: { network: NETWORK, amountEth: AMOUNT_ETH, withdrawalAddress: WITHDRAWAL_ADDRESS, signer: SIGNER },
      })
    },
    signal,
  )
  const timeoutMs = 20_000 + count * 300
  await creating
  // Cheap to ask, so it does not slow what is measured; the resources themselves are looked at only towards the end.
  let mostInFlight = 0
  await until(
    'all transactions are reported',
    async () => {
      const { submitted, inFlight } = await fakes.progress()
      mostInFlight = Math.max(mostInFlight, inFlight)
      return submitted - already >= count
    },
    { timeoutMs, signal },
  )
  const sentSeconds = (performance.now() - startedAt) / 1000
  await until(
    'all stakes are Confirmed',
    async () => {
      const { items } = await client.send<{ items: EthereumStake[] }>('GET', collection(namespace))
      return (
        items.length === count && items.every(({ status }) => status?.transaction?.state === 'Confirmed' && status.phase === 'Confirmed')
      )
    },
    { timeoutMs, signal },
  )
  const seconds = (performance.now() - startedAt) / 1000
  const cpu = cpuMs(operator.process.pid) - cpuBefore
  const after = await scrape(operator.metricsUrl)

  const per = (name: string, by: string, labels?: Record<string, string>): Map<string, number> => {
    const grown = growth(sumBy(before, name, by, labels), sumBy(after, name, by, labels))
    return new Map([...grown].map(([key, value]) => [key, value / count]))
  }
  const requests = requestsPer(before, after, count)
  const rpc = per('staking_operator_rpc_request_duration_seconds_count', 'method')
  const api = per('staking_operator_staking_api_request_duration_seconds_count', 'operation')
  const writes = per('staking_operator_status_writes_total', 'kind')
  const total = (sums: ReadonlyMap<string, number>) => [...sums.values()].reduce((sum, value) => sum + value, 0)
  return {
    stakes: count,
    seconds,
    sentPerSecond: count / sentSeconds,
    mostInFlight,
    stakesPerSecond: count / seconds,
    operatorCpuMsPerStake: cpu / count,
    requestsPerStake: requests,
    requestsPerStakeTotal: Object.values(requests).reduce((sum, value) => sum + value, 0),
    statusWritesPerStake: writes.get('EthereumStake') ?? 0,
    signerWritesPerStake: writes.get('StakingSigner') ?? 0,
    rpcCallsPerStake: total(rpc),
    rpcPerStake: Object.fromEntries(rpc),
    apiCallsPerStake: total(api),
    apiPerStake: Object.fromEntries(api),
  }
}

/** Without the lease, which is renewed by time and not by work. */
function requestsPer(before: Metrics, after: Metrics, count: number): Record<string, number> {
  const name = 'staking_operator_kube_request_duration_seconds_count'
  const found: Record<string, number> = {}
  for (const resource of ['ethereumstakes', 'stakingtransactions', 'signernonces', 'stakingsigners', 'namespaces', 'events']) {
    const grown = growth(sumBy(before, name, 'verb', { resource }), sumBy(after, name, 'verb', { resource }))
    for (const [verb, value] of grown) found[`${verb} ${resource}`] = value / count
  }
  return found
}
