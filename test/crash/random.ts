/** Numbers that look random and are the same for the same seed (mulberry32). */
export interface Random {
  /** From `min` to below `max`. */
  between(min: number, max: number): number
  pick<T>(list: readonly [T, ...T[]]): T
}

/** The seed of this run: `STAKING_TEST_SEED` to have an earlier run again, else a new one. */
export const chooseSeed = (): number => Number(process.env.STAKING_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    between: (min, max) => min + Math.floor(next() * (max - min)),
    pick: (list) => list[Math.floor(next() * list.length)] ?? list[0],
  }
}
