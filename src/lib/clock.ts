import { setTimeout as delay } from 'node:timers/promises'

/** Time as an argument: tests bring their own. */
export interface Clock {
  /** Wall time, for what people read. */
  now(): Date
  /** Monotonic milliseconds, for durations: it goes on while the process is frozen and never jumps back. */
  monotonicMs(): number
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) => delay(ms, undefined, { signal }),
}

/** `ms` ± `ratio` (default 10 %), so that a fleet started together doesn't poll together. */
export const jitter = (ms: number, random: () => number = Math.random, ratio = 0.1): number => ms * (1 - ratio + 2 * ratio * random())
