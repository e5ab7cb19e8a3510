import type { Clock } from '../../../lib/clock.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { KeyError, type SolanaKeys } from '../../ports.ts'

/** A key that is missing for so long is lost, or kept away, in ms. */
const AWAY_MS = 30_000
/** A look that is so old is no part of a while, in ms: a stalled step is looked at more often. */
const STALE_MS = 600_000

/** Tells whether a signer's key is mounted; a Secret that is replaced is missing for a moment. */
export function createMounted({ keys, clock }: { readonly keys: Pick<SolanaKeys, 'address'>; readonly clock: Clock }) {
  /** By folder: since when a key was missing at each look, and the last of these, on the monotonic clock. */
  const missing = new Map<string, { readonly since: number; readonly seen: number }>()

  /** False for a key that has been missing for a while. @throws KeyError for one that is missing only now: its Secret may be about to be replaced */
  async function isMounted({ spec: { keyName } }: StakingSigner, signal: AbortSignal): Promise<boolean> {
    try {
      await keys.address(keyName, signal)
      missing.delete(keyName)
      return true
    } catch (error) {
      if (!(error instanceof KeyError) || error.code !== 'missing') throw error
      const now = clock.monotonicMs()
      const before = missing.get(keyName)
      // What was seen long ago says nothing of the time between.
      const since = before === undefined || now - before.seen > STALE_MS ? now : before.since
      missing.set(keyName, { since, seen: now })
      if (now - since < AWAY_MS) throw error
      return false
    }
  }

  return isMounted
}
