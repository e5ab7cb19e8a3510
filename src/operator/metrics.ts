import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { createNodeBoard, type NodeBoard } from '../chains/nodes/board.ts'
import { ethereumStake } from '../resources/ethereum-stake.ts'
import { solanaStake } from '../resources/solana-stake.ts'
import { validatorExit } from '../resources/validator-exit.ts'
import { validatorWithdrawal } from '../resources/validator-withdrawal.ts'
import { type Readings, registerReadings } from './gauges.ts'

/** What the operator's metrics are fed with. Names follow the Prometheus conventions: base units, `_total` for counters. */
export interface OperatorMetrics {
  readonly registry: Registry
  /** Has the gauges show these from now on. Once only. */
  readonly read: (readings: Readings) => void
  readonly reconcile: (kind: string, outcome: string, ms: number) => void
  readonly step: (kind: string, step: string, outcome: string, ms: number) => void
  readonly statusWrite: (kind: string) => void
  /** A condition of a resource became True so long after it was created. */
  readonly condition: (kind: string, condition: string, sinceCreatedMs: number) => void
  /** A file that is followed has changed. */
  readonly reload: (file: 'networks' | 'api-keys' | 'keys' | 'remote-signers', isUsed: boolean) => void
  readonly refused: (kind: string, reason: string) => void
  readonly kubeRequest: (verb: string, resource: string, status: number, ms: number) => void
  readonly rpc: (network: string, method: string, outcome: string, ms: number) => void
  readonly api: (operation: string, outcome: string, ms: number) => void
  /** A call to a remote signer, by the name that StakingSigners know it by. */
  readonly remoteSigner: (signer: string, operation: string, outcome: string, ms: number) => void
  /** What happened to a transaction: `attempt`, `replaced`, `sent`, its outcome, or how a place was closed. */
  readonly transaction: (network: string, purpose: string, what: string) => void
  /** What a person should hear of at once, by its reason: FrontRun, KeyUsedElsewhere, UnaccountedTransactions, NoFinality. */
  readonly alarm: (network: string, signer: string, reason: string) => void
  /** An object of the log was deleted: a record by its purpose, or `SignerNonce`. */
  readonly pruned: (network: string, what: string) => void
  readonly queuePicked: (kind: string, waitedMs: number) => void
  /** The networks' nodes, read at scrape time. */
  readonly nodes: NodeBoard
}

const minute = 60
const hour = 60 * minute
const day = 24 * hour
/** From a deposit on a test network to a validator's activation queue. */
const sinceCreated = [
  1,
  5,
  15,
  30,
  minute,
  2 * minute,
  5 * minute,
  10 * minute,
  20 * minute,
  30 * minute,
  hour,
  2 * hour,
  6 * hour,
  12 * hour,
  day,
  2 * day,
  5 * day,
  10 * day,
  20 * day,
  40 * day,
]
const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export function createOperatorMetrics(build: { readonly version: string }): OperatorMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const histogram = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Histogram({ name, help, labelNames, buckets: seconds, registers })
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) => new Counter({ name, help, labelNames, registers })

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
  const refused = counter(
    'staking_operator_signatures_refused_total',
    'Resources that verification or policy refused a signature, by reason: once each time that it begins.',
    ['kind', 'reason'],
  )
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
  const remoteSigners = histogram(
    'staking_operator_remote_signer_request_duration_seconds',
    'Calls to remote signers (`sign`, `probe`), by how they ended: `ok`, `unavailable` (no useful answer in time), `refused`, `misbehaves` (what came back was not what was asked for, and was thrown away), `left-alone` (not made, since the last ones had no answer).',
    ['signer', 'operation', 'outcome'],
  )
  const transactions = counter(
    'staking_operator_transactions_total',
    'What happened to transactions of the log: `attempt` (a first version was written down and signed), `replaced` (a version that outbids an earlier one, or cancels it), `sent`, the outcome (`Landed`, `Reverted`, `FrontRun`), or how a place was closed without one (`closed:Cancel`, `closed:Revert`, `closed:Foreign` …).',
    ['network', 'purpose', 'event'],
  )
  const alarms = counter(
    'staking_operator_alarms_total',
    'What a person should look at now: `FrontRun`, `KeyUsedElsewhere`, `UnaccountedTransactions`, `NoFinality`.',
    ['network', 'signer', 'reason'],
  )
  const pruned = counter(
    'staking_operator_log_pruned_total',
    'Objects of the transaction log that were deleted since nothing needs them: records by their purpose, places as `SignerNonce`.',
    ['network', 'what'],
  )
  const queueWait = histogram('staking_operator_queue_wait_seconds', 'Time that a due key waited for a worker.', ['kind'])

  const conditions = new Histogram({
    name: 'staking_operator_time_to_condition_seconds',
    help: 'Time from the creation of a resource until one of its conditions became True. Not of a resource whose spec was changed since: the time would tell what people did.',
    labelNames: ['kind', 'condition'],
    buckets: sinceCreated,
    registers,
  })
  // An increase is only seen of a series that was there before.
  for (const { kind } of [ethereumStake, validatorExit, validatorWithdrawal, solanaStake]) conditions.zero({ kind, condition: 'Broadcast' })
  const reloads = counter(
    'staking_operator_config_reloads_total',
    'Changes of mounted files: `networks`, `api-keys`, `keys`, `remote-signers`. Success: in use.',
    ['file', 'result'],
  )
  const lastReload = new Gauge({
    name: 'staking_operator_config_last_reload_successful',
    help: '0 while a file that was changed can not be used, so that the last good one is.',
    labelNames: ['file'],
    registers,
  })
  new Gauge({
    name: 'staking_operator_build_info',
    help: 'The running version; the value is always 1.',
    labelNames: ['version'],
    registers,
  }).set({ version: build.version }, 1)
  return {
    registry,
    nodes: createNodeBoard(),
    read: (readings) => registerReadings(registry, readings),
    reconcile: (kind, outcome, ms) => reconciles.observe({ kind, outcome }, ms / 1000),
    step: (kind, step, outcome, ms) => steps.observe({ kind, step, outcome }, ms / 1000),
    statusWrite: (kind) => statusWrites.inc({ kind }),
    refused: (kind, reason) => refused.inc({ kind, reason }),
    kubeRequest: (verb, resource, status, ms) => kube.observe({ verb, resource, status: String(status) }, ms / 1000),
    rpc: (network, method, outcome, ms) => rpc.observe({ network, method, outcome }, ms / 1000),
    api: (operation, outcome, ms) => api.observe({ operation, outcome }, ms / 1000),
    remoteSigner: (signer, operation, outcome, ms) => remoteSigners.observe({ signer, operation, outcome }, ms / 1000),
    transaction: (network, purpose, event) => transactions.inc({ network, purpose, event }),
    alarm: (network, signer, reason) => alarms.inc({ network, signer, reason }),
    condition: (kind, condition, ms) => conditions.observe({ kind, condition }, ms / 1000),
    reload: (file, isUsed) => {
      reloads.inc({ file, result: isUsed ? 'success' : 'failure' })
      lastReload.set({ file }, isUsed ? 1 : 0)
    },
    pruned: (network, what) => pruned.inc({ network, what }),
    queuePicked: (kind, waitedMs) => queueWait.observe({ kind }, waitedMs / 1000),
  }
}
