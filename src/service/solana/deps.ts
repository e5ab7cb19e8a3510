import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import type { Idempotency } from '../idempotency.ts'
import type { Metrics } from '../metrics.ts'
import type { Store } from '../store/database.ts'
import type { SolanaNetworks } from './networks.ts'

/** What all operations on Solana stakes work with. */
export interface SolanaDeps {
  readonly store: Store
  readonly idempotency: Idempotency
  readonly networks: SolanaNetworks
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly policy: SolanaPolicy
}

export interface SolanaPolicy {
  /** Host name that challenges name; undefined: the host that the client asked for. */
  readonly domain?: string | undefined
  /** The most that a transaction offers on top of its base fee, in lamports, however high the cluster's recent fees are. */
  readonly maxPriorityFeeLamports: bigint
}

export const defaultSolanaPolicy: SolanaPolicy = { maxPriorityFeeLamports: 10_000n }
