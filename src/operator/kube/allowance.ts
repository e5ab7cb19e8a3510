import type { Clock } from '../../lib/clock.ts'

/** Beyond so many keys those that have all of their allowance again are dropped: they are as if they had never been seen. */
const MOST = 1_000

/** What each key may do: `burst` at once, and `perSecond` in the long run (a token bucket). */
export function createAllowance({
  clock,
  burst,
  perSecond,
}: {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly burst: number
  readonly perSecond: number
}) {
  const known = new Map<string, { readonly left: number; readonly at: number }>()

  function leftOf(key: string, now: number): number {
    const seen = known.get(key)
    return seen === undefined ? burst : Math.min(burst, seen.left + ((now - seen.at) / 1_000) * perSecond)
  }

  function forgetFull(now: number): void {
    if (known.size < MOST) return
    for (const key of known.keys()) if (leftOf(key, now) >= burst) known.delete(key)
  }

  return {
    /** Takes one. @returns ms to wait before it may be used: 0 within the allowance, and longer for each that is claimed beyond it */
    claim(key: string): number {
      const now = clock.monotonicMs()
      const left = leftOf(key, now) - 1
      forgetFull(now)
      known.set(key, { left, at: now })
      return left >= 0 ? 0 : Math.ceil((-left / perSecond) * 1_000)
    },
  }
}
