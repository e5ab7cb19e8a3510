import type { Clock } from '../../../lib/clock.ts'
import { abortable } from '../../../lib/shared-call.ts'
import { KeyError } from '../../ports.ts'

/** Calls to one signer at a time; more wait for their turn. */
const AT_ONCE = 16
/** How long a signer that gave no answer is left alone: twice as long each time, up to the longest, in ms. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000

export type RemoteOutcome = 'ok' | 'unavailable' | 'refused' | 'misbehaves' | 'left-alone'
/** Told of every call. `left-alone`: it was not made, since the last ones had no answer. */
export type OnRemoteCall = (operation: 'sign' | 'probe', outcome: RemoteOutcome, ms: number) => void

export interface Gate {
  /**
   * @param work has to end with its signal; a late answer is dropped
   * @throws KeyError `unavailable` after the time-out, or at once while the signer is left alone; the signal's reason when that aborts
   */
  run<T>(operation: 'sign' | 'probe', work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T>
}

/**
 * What stands before a remote signer, so that one that hangs holds nobody up: each call ends within the time-out, and after one without an answer all others are
 * refused at once for a while; then a single one tries again.
 */
export function createGate({
  name,
  clock,
  timeoutMs,
  onCall,
}: {
  readonly name: string
  readonly clock: Clock
  readonly timeoutMs: number
  readonly onCall?: OnRemoteCall | undefined
}): Gate {
  const turns = createTurns(AT_ONCE)
  /** Raised by each failure that counts: those that were under way with it say nothing new. */
  let epoch = 0
  let failures = 0
  let opensAt = Number.NEGATIVE_INFINITY
  let isTrying = false
  /** What was said of the last failure: it is said again as long as it holds, so that no condition changes with each look. */
  let last: KeyError | undefined

  function assertOpen(): void {
    if (failures === 0) return
    const waitMs = opensAt - clock.monotonicMs()
    if (waitMs <= 0 && !isTrying) return
    throw last ?? new KeyError('unavailable', `The remote signer ${name} gave no answer the last time. It is asked again.`)
  }

  function failed(error: unknown, startedIn: number): void {
    if (!(error instanceof KeyError) || error.code !== 'unavailable' || startedIn !== epoch) return
    epoch += 1
    failures += 1
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
    const pauseMs = Math.max(pause, Math.min(error.retryAfterMs ?? 0, LONGEST_PAUSE_MS))
    opensAt = clock.monotonicMs() + pauseMs
    last = new KeyError('unavailable', error.message, { retryAfterMs: pauseMs })
  }

  /** The time-out is for the call alone: who waits for a turn behind sixteen others waits for one call after another, of a signer that answers. */
  async function bounded<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const startedIn = epoch
    return turns(async () => {
      // Those before it may have found out meanwhile that nobody answers.
      if (startedIn !== epoch) assertOpen()
      const done = new AbortController()
      const timeout = new AbortController()
      clock.sleep(timeoutMs, done.signal).then(
        () => timeout.abort('timeout'),
        () => {},
      )
      const either = AbortSignal.any([signal, timeout.signal])
      try {
        return await abortable(work(either), either)
      } catch (error) {
        signal.throwIfAborted()
        if (timeout.signal.aborted)
          throw new KeyError('unavailable', `The remote signer ${name} did not answer within ${timeoutMs} ms. It is asked again.`)
        throw error
      } finally {
        done.abort('over')
      }
    }, signal)
  }

  return {
    async run(operation, work, signal) {
      signal.throwIfAborted()
      const begin = clock.monotonicMs()
      try {
        assertOpen()
      } catch (error) {
        onCall?.(operation, 'left-alone', 0)
        throw error
      }
      const isTrial = failures > 0
      if (isTrial) isTrying = true
      const startedIn = epoch
      try {
        const result = await bounded(work, signal)
        failures = 0
        onCall?.(operation, 'ok', clock.monotonicMs() - begin)
        return result
      } catch (error) {
        signal.throwIfAborted()
        failed(error, startedIn)
        if (error instanceof KeyError && isOutcome(error.code)) {
          // It has answered.
          if (error.code !== 'unavailable') failures = 0
          onCall?.(operation, error.code, clock.monotonicMs() - begin)
        }
        throw error
      } finally {
        if (isTrial) isTrying = false
      }
    },
  }
}

const isOutcome = (code: string): code is 'unavailable' | 'refused' | 'misbehaves' =>
  code === 'unavailable' || code === 'refused' || code === 'misbehaves'

/** So many at a time; the others in the order in which they came, unless their signal aborts first. */
function createTurns(atOnce: number) {
  let running = 0
  const waiting: (() => void)[] = []
  return async <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    if (running >= atOnce) {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push(resolve)
      try {
        await abortable(promise, signal)
      } catch (error) {
        const at = waiting.indexOf(resolve)
        // Its turn came in the same moment: it is handed on.
        if (at === -1) next()
        else waiting.splice(at, 1)
        throw error
      }
    } else running += 1
    try {
      return await work()
    } finally {
      next()
    }
  }
  function next(): void {
    const resolve = waiting.shift()
    if (resolve === undefined) running -= 1
    else resolve()
  }
}
