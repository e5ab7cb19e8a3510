import { randomUUID } from 'node:crypto'
import { type Clock, jitter } from '../../lib/clock.ts'
import { isAlreadyExists, isConflict, isNotFound } from './errors.ts'
import { createHeldLease, type HeldLease, type Lease } from './lease.ts'
import { type KubeLog, silentLog } from './log.ts'
import type { ResourceClient } from './resource-client.ts'

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
  /** How often the lease has passed to another holder, as it was seen last; undefined before that. */
  transitions(): number | undefined
  /** Who holds the lease, by the name that it goes by, without the random part, as it was seen last; undefined while nobody does, or before that. */
  leader(): string | undefined
  /** The annotations of the lease, at most half a retry period old, and at most a second or so, while this process leads: people tell the leader something by them. */
  annotations(): Readonly<Record<string, string>>
  /** This process must not lead, nor come to: `run` resolves 'lost'. For what makes all that it knows worthless. */
  lose(why: string): void
}

/** Leader election on a Lease: who holds it leads, until the deadline of its last renewal. */
export function createLeaderElector(options: LeaderElectorOptions): LeaderElector {
  const { client, namespace, name, clock, log = silentLog, random } = options
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options
  if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs))
    throw new RangeError('a lease needs leaseDurationMs > renewDeadlineMs > retryPeriodMs')
  const identity = `${options.identity}_${randomUUID()}`
  let leading: AbortController | undefined
  /** Once lost, an answer that comes late must not make it held again. */
  let isLost = false
  let ending = new AbortController()

  const lease = createHeldLease({
    client,
    ref: { namespace, name },
    identity,
    durationMs: leaseDurationMs,
    clock,
    onSetBack: ({ message }) => lose(message),
  })

  const heldFor = (): number => (lease.renewedAt === undefined || isLost ? 0 : lease.renewedAt + renewDeadlineMs - clock.monotonicMs())

  const { acquire, renew, deadline, release } = createRenewal({ lease, heldFor, identity, name, retryPeriodMs, clock, log, random })

  const lose = (why: string): LeaseLost => {
    const lost = new LeaseLost(why)
    if (!ending.signal.aborted) log.error({ lease: name, identity }, `leadership is lost: ${why}`)
    isLost = true
    ending.abort(lost)
    leading?.abort(lost)
    return lost
  }

  return {
    identity,
    async run({ onStartedLeading }, signal) {
      isLost = false
      lease.reset()
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
      if (lease.renewedAt === undefined) throw new LeaseLost('this process does not lead')
      if (heldFor() <= 0) throw lose('its renew deadline has passed')
    },
    isHeld: () => heldFor() > 0,
    transitions: () => lease.transitions,
    leader: () => lease.seenHolder?.replace(/_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, ''),
    annotations: () => lease.annotations,
    lose: (why) => {
      lose(why)
    },
  }
}

const tellEveryMs = 60_000
/** How often the lease is read at least while it is held, ms: an emergency stop stands there. */
const LOOK_MS = 1_000

/** Takes the lease, renews it while it can be renewed, and gives it up. */
function createRenewal({
  lease,
  heldFor,
  identity,
  name,
  retryPeriodMs,
  clock,
  log,
  random,
}: {
  readonly lease: HeldLease
  /** How long this process still counts itself leader, ms. */
  readonly heldFor: () => number
  readonly identity: string
  readonly name: string
  readonly retryPeriodMs: number
  readonly clock: Clock
  readonly log: KubeLog
  readonly random: (() => number) | undefined
}) {
  async function acquire(signal: AbortSignal): Promise<void> {
    let told: { readonly reason: string; readonly at: number } | undefined
    /** Every retry fails in the same way: a line when that changes, and each minute. */
    const tell = (error: unknown): void => {
      const [reason, at] = [error instanceof Error ? error.message : String(error), clock.monotonicMs()]
      if (told?.reason === reason && at - told.at < tellEveryMs) return
      told = { reason, at }
      log.warn({ lease: name, reason }, 'the lease could not be taken: trying again')
    }
    for (;;) {
      try {
        if (await lease.attempt(signal)) return
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof LeaseLost) throw error
        if (!isConflict(error) && !isAlreadyExists(error)) tell(error)
      }
      await clock.sleep(jitter(retryPeriodMs, random), signal)
    }
  }

  /** Renews until aborted, or until the lease is another's or its deadline has passed. */
  async function renew(signal: AbortSignal): Promise<void> {
    let looks = 0
    for (;;) {
      const every = Math.min(retryPeriodMs / 2, LOOK_MS)
      await clock.sleep(Math.min(every, Math.max(0, heldFor())), signal)
      if (heldFor() <= 0) return
      looks += 1
      try {
        // Between two renewals it is only read: what people write there is heard within LOOK_MS, however seldom it is renewed.
        const isLook = (looks + 1) * every <= retryPeriodMs
        if (!isLook) looks = 0
        const isOurs = isLook ? (await lease.holder(signal)) === identity : await lease.attempt(signal)
        if (!isOurs) return
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
      return (await lease.holder(signal)) !== identity
    } catch (error) {
      signal.throwIfAborted()
      return isNotFound(error) || error instanceof LeaseLost
    }
  }

  async function deadline(signal: AbortSignal): Promise<void> {
    for (let left = heldFor(); left > 0; left = heldFor()) await clock.sleep(left, signal)
  }

  async function release(): Promise<void> {
    if (heldFor() <= 0) return
    try {
      await lease.release(AbortSignal.timeout(3_000))
    } catch (error) {
      log.warn({ lease: name, err: error }, 'the lease could not be given up: others wait until it expires')
    }
  }

  return { acquire, renew, deadline, release }
}

const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
