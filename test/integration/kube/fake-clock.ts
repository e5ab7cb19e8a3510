import type { Clock } from '../../../src/lib/clock.ts'

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** Time that passes only when told. */
export interface FakeClock extends Clock {
  /** Lets `ms` pass: whoever sleeps is woken in order, and what it then does is done before the next is woken. */
  advance(ms: number): Promise<void>
  /** Lets `ms` pass without waking anyone, as for a process that was frozen. */
  freeze(ms: number): void
  readonly sleeping: number
}

/** Lets everything that needs no time happen. */
export const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}

export function createFakeClock(): FakeClock {
  let now = 1_000_000
  const sleepers = new Set<Sleeper>()
  return {
    now: () => new Date(1_700_000_000_000 + now),
    monotonicMs: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        const onAbort = (): void => {
          sleepers.delete(sleeper)
          reject(signal.reason)
        }
        const sleeper: Sleeper = {
          at: now + ms,
          wake: () => {
            sleepers.delete(sleeper)
            signal.removeEventListener('abort', onAbort)
            resolve()
          },
        }
        signal.addEventListener('abort', onAbort)
        sleepers.add(sleeper)
      }),
    async advance(ms) {
      const until = now + ms
      await settle()
      for (;;) {
        const [next] = [...sleepers].sort((a, b) => a.at - b.at)
        if (next === undefined || next.at > until) break
        now = Math.max(now, next.at)
        next.wake()
        await settle()
      }
      now = until
    },
    freeze: (ms) => {
      now += ms
    },
    get sleeping() {
      return sleepers.size
    },
  }
}
