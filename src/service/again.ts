import type { Clock } from '../lib/clock.ts'

/** What is done again and again. */
export interface Again<T> {
  readonly work: () => Promise<T>
  /** @param failures in a row, this one with them */
  readonly failed: (error: unknown, failures: number) => void
  /** Ms until the next time. @param done what the work gave; undefined where it failed @param failures in a row */
  readonly waitMs: (failures: number, done: T | undefined) => number
}

/** Until aborted. Never throws. */
export async function again<T>(clock: Pick<Clock, 'sleep'>, signal: AbortSignal, { work, failed, waitMs }: Again<T>): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    let done: T | undefined
    try {
      done = await work()
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      failures++
      failed(error, failures)
    }
    // It ends early by the abort alone, which is looked at above.
    await clock.sleep(waitMs(failures, done), signal).catch(() => undefined)
  }
}
