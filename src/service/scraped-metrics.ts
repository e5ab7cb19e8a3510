import { Gauge, type Registry } from 'prom-client'
import type { NetworkHealth } from './network-health.ts'

/** What is read at each scrape, from who knows it. */
export interface ScrapedMetrics {
  /** Webhook deliveries that are not made yet. */
  onScrapeWebhooks(read: () => Promise<bigint>): void
  /** Requests that are served now. */
  onScrapeInFlight(read: () => number): void
  /** Requests that wait for a change. */
  onScrapeWaiting(read: () => number): void
  onScrapePool(read: () => PoolState): void
  onScrapeNetworks(read: () => Promise<NetworkHealth>): void
  onScrape(read: () => Promise<readonly { network: string; status: string; count: bigint }[]>): void
  /** Stakes that the chain has and the database lacks. */
  onScrapeMissing(read: () => Promise<readonly { network: string; count: bigint }[]>): void
}

/** Of the database's connections. */
export interface PoolState {
  readonly busy: number
  readonly idle: number
  readonly waiting: number
}

export function createScrapedMetrics(registry: Registry): ScrapedMetrics {
  const registers = [registry]
  return {
    onScrapeWebhooks(read) {
      new Gauge({
        name: 'staking_service_webhook_deliveries_pending',
        help: 'Webhook deliveries that are not made yet',
        registers,
        async collect() {
          const count = await read().catch(() => undefined)
          if (count !== undefined) this.set(Number(count))
        },
      })
    },
    onScrapeInFlight(read) {
      new Gauge({
        name: 'staking_service_requests_in_flight',
        help: 'Requests that are served now',
        registers,
        collect() {
          this.set(read())
        },
      })
    },
    onScrapeWaiting(read) {
      new Gauge({
        name: 'staking_service_requests_waiting',
        help: 'Requests that wait for a change of a resource; they are not in flight',
        registers,
        collect() {
          this.set(read())
        },
      })
    },
    onScrapePool(read) {
      new Gauge({
        name: 'staking_service_database_connections',
        help: 'Connections of the pool by state; waiting: requests that wait for one',
        labelNames: ['state'],
        registers,
        collect() {
          for (const [state, count] of Object.entries(read())) this.set({ state }, count)
        },
      })
    },
    onScrapeNetworks(read) {
      new Gauge({
        name: 'staking_service_network_up',
        help: "Whether a network's nodes can be used: 1 or 0; kind is chain or beacon",
        labelNames: ['network', 'kind'],
        registers,
        async collect() {
          const health = await read()
          this.reset()
          for (const [network, kinds] of Object.entries(health)) {
            for (const [kind, code] of Object.entries(kinds)) this.set({ network, kind }, code === 'ok' ? 1 : 0)
          }
        },
      })
    },
    onScrapeMissing(read) {
      new Gauge({
        name: 'staking_service_missing_stakes',
        help: "Deposits to withdrawal addresses of this service's paid stakes, for validator keys that its database does not know: it was restored from an older copy, or they were made elsewhere",
        labelNames: ['network'],
        registers,
        async collect() {
          const rows = await read().catch(() => [])
          this.reset()
          for (const { network, count } of rows) this.set({ network }, Number(count))
        },
      })
    },
    onScrape(read) {
      new Gauge({
        name: 'staking_service_stakes',
        help: 'Stakes by network and status of their transaction',
        labelNames: ['network', 'status'],
        registers,
        async collect() {
          // Without the database the other metrics still count.
          const rows = await read().catch(() => [])
          this.reset()
          for (const { network, status, count } of rows) this.set({ network, status }, Number(count))
        },
      })
    },
  }
}
