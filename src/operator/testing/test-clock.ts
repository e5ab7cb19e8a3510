import type { Clock } from '../../lib/clock.ts'

/** Time that passes only when told; nobody sleeps on it for real. */
export interface TestClock extends Clock {
  advance(ms: number): void
  /** The wall clock is set back; monotonic time goes on. */
  setBack(ms: number): void
}

export function createTestClock(startMs = Date.parse('2030-01-01T00:00:00Z')): TestClock {
  let now = 0
  let back = 0
  return {
    now: () => new Date(startMs + now - back),
    monotonicMs: () => now,
    sleep: async (ms, signal) => {
      signal.throwIfAborted()
      now += ms
    },
    advance: (ms) => {
      now += ms
    },
    setBack: (ms) => {
      back += ms
    },
  }
}

/** Small, fast and the same for the same seed (mulberry32). Gives numbers in [0, 1). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
