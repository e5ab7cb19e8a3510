import { randomUUID } from 'node:crypto'
import { type Clock, jitter } from '../../lib/clock.ts'
import { isAlreadyExists, isConflict, isNotFound } from './errors.ts'
import { type KubeLog, silentLog } from './log.ts'
import { microTime } from './micro-time.ts'
import { compareResourceVersions, type KubeObject } from './objects.ts'
import type { ResourceClient, ResourceDefinition } from './resource-client.ts'
import { EtcdSetBack } from './revisions.ts'

export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string
    readonly leaseDurationSeconds?: number
    readonly acquireTime?: string
    readonly renewTime?: string
    readonly leaseTransitions?: number
  }
}

export const leases: ResourceDefinition = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true }

/** This process no longer leads. Everything it has in flight must stop. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

export interface LeaderElectorOptions {
  readonly client: ResourceClient<Lease>
  readonly namespace: string
  readonly name: string
  /** Names the process for people, such as the pod's name. A random part is added: no two processes ever share an identity. */
  readonly identity: string
  /** How long others wait, after they last saw a renewal, before they take over, ms. */
  readonly leaseDurationMs?: number
  /** How long after the start of its last renewal this process still counts itself leader, ms. Less than the duration: the difference is the margin. */
  readonly renewDeadlineMs?: number
  readonly retryPeriodMs?: number
  readonly clock: Clock
  readonly log?: KubeLog
  readonly random?: () => number
}

export interface LeaderElector {
  readonly identity: string
  /**
   * Waits for the lease, then calls `onStartedLeading`, whose signal aborts (reason LeaseLost) when the lease is lost, or when `signal` does.
   * Resolves 'stopped' when `signal` aborted: after `onStartedLeading` has ended (the lease is renewed until then) the lease is given up for others to take at once.
   * Resolves 'lost' when the lease was lost, without waiting for what doesn't end: the process must end now.
   * When `onStartedLeading` ends by itself, gives up the lease and resolves 'stopped', or rejects as it did.
   */
  run(handlers: { onStartedLeading(signal: AbortSignal): Promise<void> }, signal: AbortSignal): Promise<'stopped' | 'lost'>
  /**
   * To be called right before an effect. Compares with the monotonic clock, which goes on while a process is frozen, so that a leader that wakes after its
   * deadline learns it here even before any of its timers has run.
   * @throws LeaseLost
   */
  assertHeld(): void
  isHeld(): boolean
  /** This process must not lead, nor come to: `run` resolves 'lost'. For what makes all that it knows worthless. */
  lose(why: string): void
}

/**
 * Leader election on a Lease, by client-go's rules: a holder counts as alive as long as its record keeps changing *as seen by our own clock*; the times
 * in the record, which are of other machines' clocks, are never compared. All writes are fenced by resourceVersion.
 */
export function createLeaderElector(options: LeaderElectorOptions): LeaderElector {
  const { client, namespace, name, clock, log = silentLog, random } = options
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options
  if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs))
    throw new RangeError('a lease needs leaseDurationMs > renewDeadlineMs > retryPeriodMs')
  const identity = `${options.identity}_${randomUUID()}`
  const ref = { namespace, name }
  let observed: { readonly lease: Lease; readonly at: number } | undefined
  /** When the last renewal that succeeded was begun; undefined while not holding. */
  let renewedAt: number | undefined
  let leading: AbortController | undefined
  /** Once lost, an answer that comes late must not make it held again. */
  let isLost = false
  let ending = new AbortController()

  /**
   * A lease that goes back is an etcd that was set back: every holder writes it every few seconds, and it is read past all caches. @throws LeaseLost
   */
  const observe = (lease: Lease): void => {
    const [seen = '', now] = [observed?.lease.metadata.resourceVersion, lease.metadata.resourceVersion]
    if (compareResourceVersions(now, seen) < 0) throw lose(new EtcdSetBack('the lease', seen, now).message)
    if (observed?.lease.metadata.resourceVersion !== lease.metadata.resourceVersion || observed.lease.metadata.uid !== lease.metadata.uid)
      observed = { lease, at: clock.monotonicMs() }
  }

  const heldFor = (): number => (renewedAt === undefined || isLost ? 0 : renewedAt + renewDeadlineMs - clock.monotonicMs())

  const lose = (why: string): LeaseLost => {
    const lost = new LeaseLost(why)
    if (!ending.signal.aborted) log.error({ lease: name, identity }, `leadership is lost: ${why}`)
    isLost = true
    ending.abort(lost)
    leading?.abort(lost)
    return lost
  }

  /** One attempt to take or renew the lease. True when it is ours. */
  async function attempt(signal: AbortSignal): Promise<boolean> {
    const startedAt = clock.monotonicMs()
    const renewTime = microTime(clock.now())
    const fresh = { holderIdentity: identity, leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000), renewTime }
    if (renewedAt === undefined || observed === undefined) {
      const lease = await client.get(ref, signal).catch((error: unknown) => {
        if (isNotFound(error)) return undefined
        throw error
      })
      if (lease === undefined) {
        const { apiVersion, definition } = client
        observe(
          await client.create(
            { apiVersion, kind: definition.kind, metadata: ref, spec: { ...fresh, acquireTime: renewTime, leaseTransitions: 0 } },
            signal,
          ),
        )
        renewedAt = startedAt
        return true
      }
      observe(lease)
    }
    if (observed === undefined) return false
    const { lease, at } = observed
    const { holderIdentity: holder = '', leaseDurationSeconds = 0, leaseTransitions = 0 } = lease.spec ?? {}
    const isOurs = holder === identity
    if (!isOurs && holder !== '' && clock.monotonicMs() - at < leaseDurationSeconds * 1000) return false
    const spec = isOurs ? fresh : { ...fresh, acquireTime: renewTime, leaseTransitions: leaseTransitions + 1 }
    observe(await client.mergePatch(ref, { spec }, { resourceVersion: lease.metadata.resourceVersion }, signal))
    renewedAt = startedAt
    return true
  }

  async function acquire(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        if (await attempt(signal)) return
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof LeaseLost) throw error
        if (!isConflict(error) && !isAlreadyExists(error))
          log.warn({ lease: name, err: error }, 'the lease could not be taken: trying again')
      }
      await clock.sleep(jitter(retryPeriodMs, random), signal)
    }
  }

  /** Renews until aborted, or until the lease is another's or its deadline has passed. */
  async function renew(signal: AbortSignal): Promise<void> {
    for (;;) {
      await clock.sleep(Math.min(retryPeriodMs, Math.max(0, heldFor())), signal)
      if (heldFor() <= 0) return
      try {
        await attempt(signal)
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof LeaseLost) return
        log.warn({ lease: name, err: error }, 'the lease could not be renewed: trying again')
        if (!isConflict(error) && !isNotFound(error)) continue
        if (await isTaken(signal)) return
      }
    }
  }

  /** After a renewal was refused: whether another holds it. An answer that got lost may have renewed it; a person may have deleted it. */
  async function isTaken(signal: AbortSignal): Promise<boolean> {
    try {
      const lease = await client.get(ref, signal)
      observe(lease)
      return lease.spec?.holderIdentity !== identity
    } catch (error) {
      signal.throwIfAborted()
      return isNotFound(error) || error instanceof LeaseLost
    }
  }

  async function deadline(signal: AbortSignal): Promise<void> {
    for (let left = heldFor(); left > 0; left = heldFor()) await clock.sleep(left, signal)
  }

  async function release(): Promise<void> {
    if (observed === undefined || heldFor() <= 0) return
    renewedAt = undefined
    const signal = AbortSignal.timeout(3_000)
    const give = ({ metadata }: Lease): Promise<Lease> => {
      const spec = { holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.now()) }
      return client.mergePatch(ref, { spec }, { resourceVersion: metadata.resourceVersion }, signal)
    }
    try {
      await give(observed.lease).catch(async (error: unknown) => {
        // A renewal that was cut off on the way may have taken place all the same.
        if (!isConflict(error)) throw error
        const lease = await client.get(ref, signal)
        if (lease.spec?.holderIdentity === identity) await give(lease)
      })
    } catch (error) {
      log.warn({ lease: name, err: error }, 'the lease could not be given up: others wait until it expires')
    }
  }

  return {
    identity,
    async run({ onStartedLeading }, signal) {
      isLost = false
      renewedAt = undefined
      ending = new AbortController()
      const ended = whenAborted(ending.signal)
      try {
        await acquire(AbortSignal.any([signal, ending.signal]))
      } catch (error) {
        if (isLost) return 'lost'
        if (signal.aborted) return 'stopped'
        throw error
      }
      log.info({ lease: name, identity }, 'leading')
      const term = new AbortController()
      leading = term
      const renewing = new AbortController()
      const onStop = (): void => term.abort(signal.reason)
      signal.addEventListener('abort', onStop)
      if (signal.aborted) onStop()
      const held = Promise.race([renew(renewing.signal), deadline(renewing.signal), ended]).catch(() => {})
      const work = (async () => onStartedLeading(term.signal))()
      try {
        const end = await Promise.race([work.then(() => 'stopped' as const), held.then(() => 'lost' as const)]).catch((error: unknown) => {
          if (term.signal.aborted) return 'stopped' as const
          throw error
        })
        if (end === 'lost' || term.signal.reason instanceof LeaseLost) {
          work.catch(() => {})
          lose('it was not renewed in time, or another process took it')
          return 'lost'
        }
        return 'stopped'
      } finally {
        signal.removeEventListener('abort', onStop)
        renewing.abort()
        await release()
        leading = undefined
      }
    },
    assertHeld() {
      if (renewedAt === undefined) throw new LeaseLost('this process does not lead')
      if (heldFor() <= 0) throw lose('its renew deadline has passed')
    },
    isHeld: () => heldFor() > 0,
    lose: (why) => {
      lose(why)
    },
  }
}

const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
