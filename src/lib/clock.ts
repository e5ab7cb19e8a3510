/** A moment, passed in: what is pure names this type, as the linter keeps the global Date from it. */
export type Instant = Date

/** Time as an argument: tests bring their own. */
export interface Clock {
  /** Wall time, for what people read. */
  now(): Instant
  /** Monotonic milliseconds, for durations: it goes on while the process is frozen and never jumps back. */
  monotonicMs(): number
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  // Not node:timers/promises: that makes an AbortError, with its stack, for each sleep that is cut short, and every request ends one (its time-out).
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const onAbort = () => {
        clearTimeout(timer)
        reject(signal.reason)
      }
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }, ms)
      signal.addEventListener('abort', onAbort, { once: true })
    }),
}

/** `ms` ± `ratio` (default 10 %), so that a fleet started together doesn't poll together. */
export const jitter = (ms: number, random: () => number = Math.random, ratio = 0.1): number => ms * (1 - ratio + 2 * ratio * random())
