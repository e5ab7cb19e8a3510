import { jitter } from '../../lib/clock.ts'

export interface Backoff {
  /** The next wait in ms: doubles with each call up to the maximum, ± 20 %. */
  next(): number
  reset(): void
}

export interface BackoffOptions {
  readonly baseMs: number
  readonly maxMs: number
  readonly random?: (() => number) | undefined
}

/** The wait after the `failures`-th failure in a row (1, 2, …), in ms. */
export const backoffMs = (failures: number, { baseMs, maxMs, random }: BackoffOptions): number =>
  jitter(Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 40)), random, 0.2)

export function createBackoff(options: BackoffOptions): Backoff {
  let failures = 0
  return {
    next: () => backoffMs(++failures, options),
    reset: () => {
      failures = 0
    },
  }
}
