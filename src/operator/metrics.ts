import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { createNodeBoard, type NodeBoard, registerNodeMetrics } from '../chains/nodes/board.ts'

/** What the operator's metrics are fed with. Names follow the Prometheus conventions: base units, `_total` for counters. */
export interface OperatorMetrics {
  readonly registry: Registry
  /** Has the gauges show these from now on. Once only. */
  readonly read: (readings: Readings) => void
  readonly reconcile: (kind: string, outcome: string, ms: number) => void
  readonly step: (kind: string, step: string, outcome: string, ms: number) => void
  readonly statusWrite: (kind: string) => void
  readonly refused: (kind: string, reason: string) => void
  readonly kubeRequest: (verb: string, resource: string, status: number, ms: number) => void
  readonly rpc: (network: string, method: string, outcome: string, ms: number) => void
  readonly api: (operation: string, outcome: string, ms: number) => void
  /** What happened to a transaction: `attempt`, `sent`, its outcome, or how a place was closed. */
  readonly transaction: (network: string, purpose: string, what: string) => void
  /** What a person should hear of at once, by its reason: FrontRun, KeyUsedElsewhere, UnaccountedTransactions, NoFinality. */
  readonly alarm: (network: string, signer: string, reason: string) => void
  /** An object of the log was deleted: a record by its purpose, or `SignerNonce`. */
  readonly pruned: (network: string, what: string) => void
  readonly queuePicked: (kind: string, waitedMs: number) => void
  /** The networks' nodes, read at scrape time. */
  readonly nodes: NodeBoard
}

/** What is read at scrape time, so that no gauge can be stale. */
export interface Readings {
  readonly leader: () => boolean
  readonly queues: () => Iterable<{ readonly kind: string; readonly ready: number; readonly delayed: number; readonly processing: number }>
  readonly informers: () => Iterable<{
    readonly resource: string
    readonly objects: number
    readonly synced: boolean
    readonly silentMs: number | undefined
  }>
  /** Resources by kind, phase and whether they are stalled, and for which reason ('' when not): how many there are. */
  readonly resources: () => Iterable<{ readonly kind: string; readonly phase: string; readonly stalled: string; readonly count: number }>
  readonly signers: () => Iterable<{
    readonly signer: string
    readonly network: string
    readonly inFlight: number
    readonly nextNonce: number
    readonly balanceEth: number | undefined
  }>
  /** Of Solana signers, where it was read. */
  readonly solanaBalances: () => Iterable<{ readonly signer: string; readonly network: string; readonly balanceSol: number }>
}

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export function createOperatorMetrics(build: { readonly version: string }): OperatorMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const histogram = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Histogram({ name, help, labelNames, buckets: seconds, registers })
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) => new Counter({ name, help, labelNames, registers })
  const gauge = gaugesOf(registry)

  const nodes = createNodeBoard()
  registerNodeMetrics(registry, 'staking_operator', nodes)

  const reconciles = histogram('staking_operator_reconcile_duration_seconds', 'Time that one reconcile took, by how it ended.', [
    'kind',
    'outcome',
  ])
  const steps = histogram('staking_operator_step_duration_seconds', 'Time that one step of a saga took, by how it ended.', [
    'kind',
    'step',
    'outcome',
  ])
  const statusWrites = counter('staking_operator_status_writes_total', 'Status patches sent to the API server.', ['kind'])
  const refused = counter('staking_operator_signatures_refused_total', 'Signatures that verification or policy refused, by reason.', [
    'kind',
    'reason',
  ])
  const kube = histogram('staking_operator_kube_request_duration_seconds', 'Requests to the API server; status 0 means no answer.', [
    'verb',
    'resource',
    'status',
  ])
  const rpc = histogram('staking_operator_rpc_request_duration_seconds', 'JSON-RPC calls to the networks.', [
    'network',
    'method',
    'outcome',
  ])
  const api = histogram('staking_operator_staking_api_request_duration_seconds', 'Calls to the staking API.', ['operation', 'outcome'])
  const transactions = counter('staking_operator_transactions_total', 'What happened to transactions of the log.', [
    'network',
    'purpose',
    'event',
  ])
  const alarms = counter('staking_operator_alarms_total', 'What a person should look at now, by reason.', ['network', 'signer', 'reason'])
  const pruned = counter(
    'staking_operator_log_pruned_total',
    'Objects of the transaction log that were deleted since nothing needs them.',
    ['network', 'what'],
  )
  const queueWait = histogram('staking_operator_queue_wait_seconds', 'Time that a due key waited for a worker.', ['kind'])

  gauge('staking_operator_build_info', 'The running version; the value is always 1.', ['version'], (set) =>
    set({ version: build.version }, 1),
  )
  return {
    registry,
    nodes,
    read: (readings) => registerReadings(gauge, readings),
    reconcile: (kind, outcome, ms) => reconciles.observe({ kind, outcome }, ms / 1000),
    step: (kind, step, outcome, ms) => steps.observe({ kind, step, outcome }, ms / 1000),
    statusWrite: (kind) => statusWrites.inc({ kind }),
    refused: (kind, reason) => refused.inc({ kind, reason }),
    kubeRequest: (verb, resource, status, ms) => kube.observe({ verb, resource, status: String(status) }, ms / 1000),
    rpc: (network, method, outcome, ms) => rpc.observe({ network, method, outcome }, ms / 1000),
    api: (operation, outcome, ms) => api.observe({ operation, outcome }, ms / 1000),
    transaction: (network, purpose, event) => transactions.inc({ network, purpose, event }),
    alarm: (network, signer, reason) => alarms.inc({ network, signer, reason }),
    pruned: (network, what) => pruned.inc({ network, what }),
    queuePicked: (kind, waitedMs) => queueWait.observe({ kind }, waitedMs / 1000),
  }
}

type AddGauge = ReturnType<typeof gaugesOf>
const gaugesOf =
  (registry: Registry) =>
  <L extends string>(
    name: string,
    help: string,
    labelNames: L[],
    read: (set: (labels: Record<L, string>, value: number) => void) => void,
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset()
        read((labels, value) => this.labels(labels).set(value))
      },
    })

function registerReadings(gauge: AddGauge, readings: Readings): void {
  gauge('staking_operator_leader', '1 while this process holds the lease.', [], (set) => set({}, readings.leader() ? 1 : 0))
  gauge('staking_operator_queue_keys', 'Keys in the work queue, by state.', ['kind', 'state'], (set) => {
    for (const { kind, ready, delayed, processing } of readings.queues()) {
      set({ kind, state: 'ready' }, ready)
      set({ kind, state: 'delayed' }, delayed)
      set({ kind, state: 'processing' }, processing)
    }
  })
  gauge('staking_operator_informer_objects', 'Objects in the cache.', ['resource'], (set) => {
    for (const { resource, objects } of readings.informers()) set({ resource }, objects)
  })
  gauge('staking_operator_informer_synced', '1 once a whole list has been taken in.', ['resource'], (set) => {
    for (const { resource, synced } of readings.informers()) set({ resource }, synced ? 1 : 0)
  })
  gauge(
    'staking_operator_informer_silence_seconds',
    'Time since the API server last gave a sign of life on the watch.',
    ['resource'],
    (set) => {
      for (const { resource, silentMs } of readings.informers()) if (silentMs !== undefined) set({ resource }, silentMs / 1000)
    },
  )
  gauge('staking_operator_resources', 'Resources by phase.', ['kind', 'phase'], (set) => {
    const counts = new Map<string, { kind: string; phase: string; count: number }>()
    for (const { kind, phase, count } of readings.resources()) {
      const entry = counts.get(`${kind}/${phase}`) ?? { kind, phase, count: 0 }
      counts.set(`${kind}/${phase}`, { ...entry, count: entry.count + count })
    }
    for (const { kind, phase, count } of counts.values()) set({ kind, phase }, count)
  })
  gauge('staking_operator_stalled_resources', 'Resources that wait for a person, by reason.', ['kind', 'reason'], (set) => {
    const counts = new Map<string, { kind: string; reason: string; count: number }>()
    for (const { kind, stalled, count } of readings.resources()) {
      if (stalled === '') continue
      const entry = counts.get(`${kind}/${stalled}`) ?? { kind, reason: stalled, count: 0 }
      counts.set(`${kind}/${stalled}`, { ...entry, count: entry.count + count })
    }
    for (const { kind, reason, count } of counts.values()) set({ kind, reason }, count)
  })
  gauge(
    'staking_operator_signer_in_flight',
    'Transactions whose nonce was given out and is not final yet.',
    ['signer', 'network'],
    (set) => {
      for (const { signer, network, inFlight } of readings.signers()) set({ signer, network }, inFlight)
    },
  )
  gauge('staking_operator_signer_next_nonce', 'The highest nonce given out, plus one.', ['signer', 'network'], (set) => {
    for (const { signer, network, nextNonce } of readings.signers()) set({ signer, network }, nextNonce)
  })
  gauge('staking_operator_signer_balance_eth', 'Balance when it was last read, in ETH.', ['signer', 'network'], (set) => {
    for (const { signer, network, balanceEth } of readings.signers()) if (balanceEth !== undefined) set({ signer, network }, balanceEth)
  })
  gauge('staking_operator_signer_balance_sol', 'Balance when it was last read, in SOL.', ['signer', 'network'], (set) => {
    for (const { signer, network, balanceSol } of readings.solanaBalances()) set({ signer, network }, balanceSol)
  })
}
