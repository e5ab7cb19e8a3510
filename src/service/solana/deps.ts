import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import { ProblemError } from '../errors.ts'
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
  /** Host name that challenges name; undefined: the host that the client asked for, if it is one of `hosts` or this machine itself. */
  readonly domain?: string | undefined
  /** Host names, in lower case and with the port unless that is the protocol's own, under which the service is reached. */
  readonly hosts?: readonly string[] | undefined
  /** The most that a transaction offers on top of its base fee, in lamports, however high the cluster's recent fees are. */
  readonly maxPriorityFeeLamports: bigint
}

export const defaultSolanaPolicy: SolanaPolicy = { maxPriorityFeeLamports: 10_000n }

const loopback = /^(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?$/

/**
 * What a challenge may name. A client says itself which host it asked for: whoever relays its requests would have the withdraw authority sign a text that
 * names somebody else.
 * @throws ProblemError `invalid-request` for a host that is none of the service's
 */
export function challengeDomain({ domain, hosts = [] }: SolanaPolicy, host: string): string {
  if (domain !== undefined) return domain
  const asked = host.toLowerCase()
  if (hosts.includes(asked) || loopback.test(asked)) return asked
  const detail =
    'the host that was asked for is none that challenges of this service name: its configuration has solana.domain and solana.hosts'
  throw new ProblemError('invalid-request', detail, { errors: [{ pointer: '/headers/host', code: 'unknown-host', detail }] })
}
