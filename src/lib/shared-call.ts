import type { Clock } from './clock.ts'

/**
 * Many callers at the same time share one call. It is not bound to one caller's signal, since others wait for it too; each leaves with the
 * reason of its own signal when that aborts.
 */
export function shareCall<T>(call: () => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let running: Promise<T> | undefined
  return async (signal) => {
    signal.throwIfAborted()
    if (running === undefined) {
      const started = call().finally(() => {
        if (running === started) running = undefined
      })
      // All callers may have left when it fails.
      started.catch(() => {})
      running = started
    }
    return abortable(running, signal)
  }
}

/** How often a call is made at most: `everyMs` (ms of monotonic time) lie between the beginnings of two. */
export interface Pace {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly everyMs: number
}

interface NextCall<T> {
  readonly ask: (signal: AbortSignal) => Promise<T>
  /** Nothing runs, and the next one who asks needs not wait. */
  readonly isIdle: () => boolean
}

/** What is shared is bound to nobody's signal. */
const never = new AbortController().signal

function createNextCall<T>(call: () => Promise<T>, pace?: Pace): NextCall<T> {
  let running: Promise<unknown> | undefined
  let next: Promise<T> | undefined
  let begunAt = Number.NEGATIVE_INFINITY
  const pauseMs = (): number => (pace === undefined ? 0 : Math.max(0, begunAt + pace.everyMs - pace.clock.monotonicMs()))
  const isIdle = (): boolean => running === undefined && next === undefined && pauseMs() === 0

  const start = (): Promise<T> => {
    if (pace !== undefined) begunAt = pace.clock.monotonicMs()
    const started = call()
    running = started
    started
      .catch(() => {})
      .finally(() => {
        if (running === started) running = undefined
      })
    return started
  }

  async function startNext(after: Promise<unknown> | undefined): Promise<T> {
    await after?.catch(() => {})
    if (pace !== undefined && pauseMs() > 0) await pace.clock.sleep(pauseMs(), never)
    next = undefined
    return start()
  }

  return {
    isIdle,
    async ask(signal) {
      signal.throwIfAborted()
      if (isIdle()) return abortable(start(), signal)
      if (next === undefined) {
        next = startNext(running)
        // All callers may have left when it fails.
        next.catch(() => {})
      }
      return abortable(next, signal)
    },
  }
}

/**
 * For what must not be older than the question: callers never share a call that had begun before they came. Those that come while one runs, or before the pace
 * lets the next one begin, share the next. As with `shareCall`, the call is bound to no caller's signal.
 */
export const shareNextCall = <T>(call: () => Promise<T>, pace?: Pace): ((signal: AbortSignal) => Promise<T>) =>
  createNextCall(call, pace).ask

/** `shareNextCall` for each key apart. What nobody waits for is not kept beyond its pace. */
export function shareNextCallBy<K, T>(call: (key: K) => Promise<T>, pace?: Pace): (key: K, signal: AbortSignal) => Promise<T> {
  const shared = new Map<K, NextCall<T>>()
  return async (key, signal) => {
    for (const [other, { isIdle }] of shared) if (other !== key && isIdle()) shared.delete(other)
    const one = shared.get(key) ?? createNextCall(() => call(key), pace)
    shared.set(key, one)
    return one.ask(signal)
  }
}

/** A promise's result, or the signal's reason if that comes first. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
