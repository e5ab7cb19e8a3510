import type { Clock } from '../../lib/clock.ts'

/**
 * How long the final block may stand still before whoever waits for it is told. A block is final two epochs after it, 13 minutes on mainnet
 * (consensus specification, Casper FFG): half an hour without any is an incident of the chain, or of the nodes.
 */
export const NO_FINALITY_MS = 30 * 60_000

/** So many blocks the chain may be ahead of what is final: NO_FINALITY_MS of slots of 12 s. It is there at the first look, whoever was restarted. */
export const NO_FINALITY_BLOCKS = 150n

export interface FinalityWatch {
  /** Notes what is final now of a chain, and how far that is. @returns whether that has not moved for so long that it must be said */
  standsStill(chain: number | string, final: bigint, latest: bigint): boolean
  /** Whether it is said for the first time, to this lane, since the final block moved last. */
  isNews(lane: string, final: bigint): boolean
}

/**
 * How long the final block of each chain has stood still: by how many blocks came since, which a restart does not forget, and by monotonic time, for a
 * chain that makes none at all.
 */
export function createFinalityWatch(clock: Clock): FinalityWatch {
  const highest = new Map<number | string, { readonly final: bigint; readonly since: number }>()
  const said = new Map<string, bigint>()
  return {
    standsStill(chain, final, latest) {
      const now = clock.monotonicMs()
      const known = highest.get(chain)
      // Another node's, a little lower, is no move.
      if (known === undefined || final > known.final) highest.set(chain, { final, since: now })
      if (latest - final > NO_FINALITY_BLOCKS) return true
      return known !== undefined && final <= known.final && now - known.since >= NO_FINALITY_MS
    },
    isNews(lane, final) {
      const before = said.get(lane)
      if (before !== undefined && final <= before) return false
      said.set(lane, final)
      return true
    },
  }
}
