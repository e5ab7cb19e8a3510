import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type NodeBoard, registerNodeMetrics } from '../chains/nodes/board.ts'
import { createScrapedMetrics, type ScrapedMetrics } from './scraped-metrics.ts'

/** The service's metrics, in a registry of its own. Names and units follow Prometheus' conventions. */
export interface Metrics extends ScrapedMetrics {
  readonly registry: Registry
  requestDuration(method: string, route: string, status: number, seconds: number): void
  rpcError(network: string, code: string): void
  knownKeySkipped(network: string): void
  stakeCreated(network: string): void
  replayed(): void
  stakeSettled(network: string, status: 'confirmed' | 'failed' | 'dropped'): void
  requestSettled(network: string, kind: 'exit' | 'withdrawal', outcome: 'accepted' | 'dropped' | 'failed'): void
  trackerPass(network: string, at: Date): void
  /** Shows the networks' nodes, read at each scrape. */
  showNodes(board: NodeBoard): void
  /** A request that was told to come again, since as many as may be were served. */
  shed(): void
  /** An attempt to deliver a webhook. */
  webhook(outcome: 'delivered' | 'failed' | 'gone'): void
  /** Deliveries of webhooks that were never made, and never will be. */
  webhooksDropped(count: number): void
  /** Of the process: memory, processor, event loop. One process has one of them. */
  watchProcess(): void
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const duration = new Histogram({
    name: 'staking_service_http_request_duration_seconds',
    help: 'Time to answer a request, by route and status',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const rpcErrors = new Counter({
    name: 'staking_service_chain_errors_total',
    help: "Calls of a network's nodes that failed, by what it means",
    labelNames: ['network', 'code'],
    registers,
  })
  const skipped = new Counter({
    name: 'staking_service_known_keys_skipped_total',
    help: 'New validator keys that the chain knew already: the database was restored from an older copy, or the seed is used elsewhere',
    labelNames: ['network'],
    registers,
  })
  const created = new Counter({
    name: 'staking_service_stakes_created_total',
    help: 'Stakes created',
    labelNames: ['network'],
    registers,
  })
  const replays = new Counter({
    name: 'staking_service_idempotent_replays_total',
    help: 'Requests answered from the record of their Idempotency-Key',
    registers,
  })
  const settled = new Counter({
    name: 'staking_service_stakes_settled_total',
    help: 'Stakes whose transaction became final, by outcome',
    labelNames: ['network', 'status'],
    registers,
  })
  const requestsSettled = new Counter({
    name: 'staking_service_requests_settled_total',
    help: 'Exit and withdrawal requests that came to their end, by what the consensus layer made of them; failed: their transaction did nothing',
    labelNames: ['network', 'kind', 'outcome'],
    registers,
  })
  const lastPass = new Gauge({
    name: 'staking_service_tracker_last_success_timestamp_seconds',
    help: 'When the tracker last went through what is due, or began to, as a Unix time: its age is the lag',
    labelNames: ['network'],
    registers,
  })
  const shed = new Counter({
    name: 'staking_service_requests_shed_total',
    help: 'Requests that were told to come again, since as many as may be were served',
    registers,
  })
  const webhookAttempts = new Counter({
    name: 'staking_service_webhook_attempts_total',
    help: 'Attempts to deliver a webhook, by outcome',
    labelNames: ['outcome'],
    registers,
  })
  const webhooksDropped = new Counter({
    name: 'staking_service_webhook_deliveries_dropped_total',
    help: 'Webhook deliveries that were given up: too many waited for an endpoint, or for too long, or it was disabled',
    registers,
  })
  return {
    registry,
    requestDuration: (method, route, status, seconds) => duration.observe({ method, route, status: String(status) }, seconds),
    rpcError: (network, code) => rpcErrors.inc({ network, code }),
    knownKeySkipped: (network) => skipped.inc({ network }),
    stakeCreated: (network) => created.inc({ network }),
    replayed: () => replays.inc(),
    stakeSettled: (network, status) => settled.inc({ network, status }),
    requestSettled: (network, kind, outcome) => requestsSettled.inc({ network, kind, outcome }),
    trackerPass: (network, at) => lastPass.set({ network }, at.getTime() / 1000),
    showNodes: (board) => registerNodeMetrics(registry, 'staking_service', board),
    shed: () => shed.inc(),
    webhooksDropped: (count) => webhooksDropped.inc(count),
    webhook: (outcome) => webhookAttempts.inc({ outcome }),
    watchProcess: () => collectDefaultMetrics({ register: registry }),
    ...createScrapedMetrics(registry),
  }
}
