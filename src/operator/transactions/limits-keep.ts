import type { Clock } from '../../lib/clock.ts'
import { sameHex } from '../../lib/hex.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { countedUntilMs, limitsOf, longestOf, MAX_WINDOW_MS, type Present, presentOf } from './limits.ts'
import type { RecordObject } from './store.ts'

/** For how long records are kept, beyond what else needs them, as a limit counts them. */
export function createKeeping({ signers, clock }: { readonly signers: () => Iterable<StakingSigner>; readonly clock: Pick<Clock, 'now'> }) {
  const signersOf = (record: Pick<RecordObject, 'spec'>): readonly StakingSigner[] =>
    [...signers()].filter(({ spec }) => spec.chain === record.spec.chain && sameHex(spec.address, record.spec.from))

  /** When a record counts no more for a window, as the end of a sentence; undefined where it does not now. */
  function untilOf(record: RecordObject, windowMs: number, now: Present): string | undefined {
    const until = countedUntilMs(record, windowMs, now)
    if (until === undefined || until <= now.clockMs) return undefined
    // By the clock alone, which says the same at each look; what the chain adds to that moves with its blocks.
    const byClock = countedUntilMs(record, windowMs, { ...now, blockMs: undefined }) ?? until
    if (!Number.isFinite(byClock)) return ''
    return byClock > now.clockMs ? ` until ${timestamp(new Date(byClock))}` : " by the chain's own time"
  }

  /**
   * Until when a limit counts a record that nobody needs otherwise, as a sentence; undefined where none does. What may land is held for that anyway.
   * ▸ Limits that can't be read now may be the longest that there are: they count it all the same once they are mended.
   * @param blockSeconds the chain's time, which a window goes by as well; 0 where it has none
   */
  function countedUntil(record: RecordObject, blockSeconds: number): string | undefined {
    const now = presentOf(clock.now().getTime(), blockSeconds)
    for (const { metadata, spec } of signersOf(record)) {
      const limits = limitsOf(spec)
      const isUnreadable = 'problem' in limits
      const windowMs = isUnreadable ? MAX_WINDOW_MS : longestOf(limits)
      // Without a limit nothing counts, though the time of its block be ahead of our clock.
      const until = windowMs === 0 ? undefined : untilOf(record, windowMs, now)
      if (until === undefined) continue
      return isUnreadable
        ? `The limits of StakingSigner ${metadata.name} can't be read (${limits.problem}), and may count it${until}.`
        : `A limit of StakingSigner ${metadata.name} (spec.policy.limits) counts it${until}.`
    }
    return undefined
  }

  /** Whether a limit counts a record, or may: a signer that is gone is made anew at times, with limits that are not known before. */
  const mayBeCounted = (record: RecordObject, blockSeconds: number): boolean =>
    countedUntil(record, blockSeconds) !== undefined ||
    (signersOf(record).length === 0 && untilOf(record, MAX_WINDOW_MS, presentOf(clock.now().getTime(), blockSeconds)) !== undefined)

  return { countedUntil, mayBeCounted, signersOf }
}
