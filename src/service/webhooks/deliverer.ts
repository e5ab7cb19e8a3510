import { randomUUID } from 'node:crypto'
import type { WebhookEvent } from '../../contract/schemas/webhooks.ts'
import { type Clock, jitter } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import { again } from '../again.ts'
import type { Metrics } from '../metrics.ts'
import type { ValidatorKeys } from '../seed.ts'
import { isOutage, type Store } from '../store/database.ts'
import {
  type DeliveryRow,
  dropBeyond,
  type EndpointRow,
  giveBack,
  nextDelivery,
  recordDelivered,
  recordFailed,
  secretsOf,
  takeEndpoints,
} from '../store/webhooks.ts'
import type { Sender } from './send.ts'
import { secretOf, signedHeaders } from './sign.ts'

export interface DelivererDeps {
  readonly store: Store
  readonly keys: Pick<ValidatorKeys, 'mac'>
  readonly sender: Sender
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'webhook' | 'webhooksDropped'>
  /** So long one instance has an endpoint to itself, in ms: longer than its turn takes, so that only one that died is superseded (see {@link leaseOf}). */
  readonly leaseMs: number
  readonly pollMs?: number
  /** So many deliveries wait for one endpoint; of more, the oldest are dropped. */
  readonly maxPending: number
  readonly retry?: Partial<RetryRules>
}

export interface RetryRules {
  /** After the first attempt that failed; each further one waits three times as long. */
  readonly firstMs: number
  readonly mostMs: number
  /** A delivery that is older is given up. */
  readonly keepMs: number
  /** An endpoint that nothing could be delivered to for so long is disabled. */
  readonly disableAfterMs: number
}

const day = 86_400_000
export const defaultRetryRules: RetryRules = { firstMs: 5_000, mostMs: 6 * 3_600_000, keepMs: 3 * day, disableAfterMs: 3 * day }

/** Endpoints that one instance delivers to at the same time, in all and of one account: a slow one holds no other's place. */
const atOnce = 16
const atOncePerAccount = 2
/** One turn of an endpoint: then others have theirs. */
const turnMs = 5_000
const turnDeliveries = 50

/** A turn, its last attempt, and the database's time-outs around that. */
export const leaseOf = ({ timeoutMs }: { readonly timeoutMs: number }): number => turnMs + timeoutMs + 10_000

/** How long after so many failed attempts the next one comes, in ms. */
export const backoffMs = (failures: number, { firstMs, mostMs }: Pick<RetryRules, 'firstMs' | 'mostMs'>): number =>
  Math.min(firstMs * 3 ** Math.min(Math.max(failures - 1, 0), 20), mostMs)

/** How often what is too much or too old is dropped, and how much by one statement. */
const boundEveryMs = 30_000
const dropAtOnce = 2_000
const maxBoundTurns = 1_000

/** An endpoint whose attempts fail rests before anything is tried there, but not for as long as one delivery that it alone refuses. */
const maxRestMs = 60_000

/** What a receiver gets: what has changed, and never more than anybody who reads the mail of its endpoint may see. */
export const eventOf = (delivery: DeliveryRow): WebhookEvent => ({
  type: delivery.type as WebhookEvent['type'],
  timestamp: delivery.at.toISOString(),
  data: {
    id: delivery.resource_id,
    ...(delivery.stake_id === null ? {} : { stakeId: delivery.stake_id }),
    ...(delivery.pubkey === null ? {} : { pubkey: delivery.pubkey }),
    ...(delivery.network === '' ? {} : { network: delivery.network }),
    status: delivery.status,
  },
})

export interface Deliverer {
  /** Goes once through what is due. @returns how many endpoints something was tried at. @throws the database's error */
  pass(signal: AbortSignal): Promise<number>
  /** Drops what waits beyond what may, of every endpoint. @throws the database's error */
  bound(signal: AbortSignal): Promise<void>
  /** Delivers until aborted. Never throws. */
  run(signal: AbortSignal): Promise<void>
}

/**
 * Delivers what the triggers have written, at least once: an attempt is marked after it was made. Each endpoint is one instance's for a while, so that its deliveries
 * come one after another.
 */
export function createDeliverer(deps: DelivererDeps): Deliverer {
  const { store, keys, sender, clock, log, metrics, leaseMs, maxPending, pollMs = 1_000 } = deps
  const { db } = store
  const rules: RetryRules = { ...defaultRetryRules, ...deps.retry }

  /** @returns whether it goes on with the next one */
  async function attempt(endpoint: EndpointRow, failures: number, delivery: DeliveryRow, signal: AbortSignal): Promise<boolean> {
    const secrets = (await secretsOf(db, endpoint.id, clock.now())).map(({ salt }) => secretOf(keys, endpoint.id, salt))
    // It was deleted a moment ago: nothing goes there any more, and nothing ever without a signature.
    if (secrets.length === 0) return false
    const body = JSON.stringify(eventOf(delivery))
    const seconds = Math.floor(clock.now().getTime() / 1000)
    const sent = await sender.send(endpoint.url, signedHeaders({ id: delivery.id, body, seconds }, secrets), body, signal)
    const now = clock.now()
    metrics.webhook(sent.is)
    if (sent.is === 'delivered') {
      await recordDelivered(db, delivery, now)
      return true
    }
    const isOld = now.getTime() - delivery.at.getTime() > rules.keepMs
    const failingMs = endpoint.failing_since === null ? 0 : now.getTime() - endpoint.failing_since.getTime()
    const disableBecause =
      sent.is === 'gone'
        ? 'the endpoint answered 410: it is gone'
        : failingMs > rules.disableAfterMs
          ? `nothing could be delivered since ${endpoint.failing_since?.toISOString()}: ${sent.error}`
          : undefined
    const dropped = await recordFailed(db, delivery, {
      ...{ error: sent.error, now, disableBecause },
      againInMs: isOld ? undefined : jitter(backoffMs(delivery.attempts + 1, rules), Math.random, 0.2),
      restMs: jitter(Math.min(backoffMs(failures + 1, rules), maxRestMs), Math.random, 0.2),
    })
    if (dropped > 0n) metrics.webhooksDropped(Number(dropped))
    const line = { endpointId: endpoint.id, account: endpoint.account, error: sent.error }
    if (disableBecause !== undefined) log.warn(line, 'a webhook endpoint is disabled')
    else if (isOld) log.warn({ ...line, deliveryId: delivery.id }, 'a webhook delivery is given up')
    return false
  }

  /** Delivers what is due until something fails, or the endpoint's turn is over. */
  async function serve(endpoint: EndpointRow, owner: string, signal: AbortSignal): Promise<void> {
    const begun = clock.monotonicMs()
    try {
      for (let count = 0; count < turnDeliveries && clock.monotonicMs() - begun < turnMs && !signal.aborted; count++) {
        const delivery = await nextDelivery(db, endpoint.id)
        if (delivery === undefined) break
        if (!(await attempt(endpoint, count === 0 ? endpoint.failures : 0, delivery, signal))) break
      }
    } finally {
      await giveBack(db, endpoint.id, owner).catch(() => undefined)
    }
  }

  const busy = new Set<Promise<void>>()

  /** Begins what is due, as far as there are places. @returns how many endpoints it has begun with */
  async function begin(signal: AbortSignal): Promise<Promise<void>[]> {
    if (busy.size >= atOnce) return []
    const owner = randomUUID()
    const taken = await takeEndpoints(db, { owner, limit: atOnce - busy.size, perAccount: atOncePerAccount, leaseMs })
    return taken.map((endpoint) => {
      const serving = serve(endpoint, owner, signal)
        .catch((error: unknown) => {
          if (!signal.aborted) log[isOutage(error) ? 'debug' : 'warn']({ err: error }, 'a webhook could not be delivered now')
        })
        .finally(() => busy.delete(serving))
      busy.add(serving)
      return serving
    })
  }

  async function bound(signal: AbortSignal): Promise<void> {
    const before = new Date(clock.now().getTime() - rules.keepMs)
    for (let turn = 0; turn < maxBoundTurns && !signal.aborted; turn++) {
      const dropped = await dropBeyond(db, { most: maxPending, before, limit: dropAtOnce })
      if (dropped.length === 0) return
      for (const { endpointId, account, count } of dropped) {
        if (count === 0n) continue
        metrics.webhooksDropped(Number(count))
        log.warn(
          { endpointId, account, count: Number(count) },
          'webhook deliveries are dropped: too many wait for the endpoint, or for too long',
        )
      }
    }
  }

  /** Beside the deliveries: an endpoint that takes long holds it up no more than others. */
  const boundAgain = (signal: AbortSignal) =>
    again(clock, signal, {
      work: () => bound(signal),
      failed(error, failures) {
        if (failures === 1) log.warn({ err: error }, 'webhook deliveries that are too many could not be dropped; it tries again')
      },
      waitMs: () => jitter(boundEveryMs),
    })

  return {
    bound,
    async pass(signal) {
      const begun = await begin(signal)
      await Promise.all(begun)
      return begun.length
    },
    async run(signal) {
      const bounding = boundAgain(signal)
      await again(clock, signal, {
        work: () => begin(signal),
        failed(error, failures) {
          if (failures === 1) log.warn({ err: error }, 'webhooks could not be looked for; it tries again')
        },
        waitMs(failures, begun = []) {
          const waitMs = jitter(pollMs * 2 ** Math.min(failures, 5))
          // With more to do it goes on as soon as a place is free.
          return begun.length > 0 ? Math.min(waitMs, 100) : waitMs
        },
      })
      await Promise.all([bounding, ...busy])
    },
  }
}
