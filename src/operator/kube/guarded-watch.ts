import type { Clock } from '../../lib/clock.ts'
import { isGone, isTransportError, KubeError } from './errors.ts'

/** Why a watch was cut by ourselves. */
export class Cut extends Error {
  readonly reason: 'idle' | 'relist'
  constructor(reason: Cut['reason']) {
    super(`the watch was cut: ${reason}`)
    this.reason = reason
  }
}

export interface WatchGuardOptions {
  readonly clock: Clock
  /** For how long a watch may be silent, ms. */
  readonly idleMs: number
  /** When the list is due once more, monotonic ms. */
  readonly relistAt: number
}

/** One watch, until the server ends it. `watch` says of every sign of life by its second argument. @throws Cut */
export async function guardWatch(
  watch: (signal: AbortSignal, onBytes: () => void) => Promise<void>,
  { clock, idleMs, relistAt }: WatchGuardOptions,
  signal: AbortSignal,
): Promise<void> {
  const cut = new AbortController()
  const over = new AbortController()
  let heardAt = clock.monotonicMs()
  const guard = async (): Promise<void> => {
    for (;;) {
      const now = clock.monotonicMs()
      const relistIn = relistAt - now
      const idleIn = heardAt + idleMs - now
      if (relistIn <= 0) return cut.abort(new Cut('relist'))
      if (idleIn <= 0) return cut.abort(new Cut('idle'))
      await clock.sleep(Math.min(idleIn, relistIn), over.signal)
    }
  }
  guard().catch(() => {})
  try {
    await watch(AbortSignal.any([signal, cut.signal]), () => {
      heardAt = clock.monotonicMs()
    })
  } finally {
    over.abort()
  }
}

/** How following ended, and what that means for the next attempt. */
export interface Ending {
  /** cut, idle, relist, expired (410), failed: for people. */
  readonly ended: string
  /** The cache can't go on from where it was. */
  readonly mustList: boolean
  /** Something is wrong, as opposed to what happens every day. */
  readonly isFailure: boolean
  /** How long the server asks to wait, ms. */
  readonly askedMs: number
}

export function endingOf(error: unknown): Ending {
  // Dropped or silent connections lose nothing: the next watch goes on from the position.
  if (error instanceof Cut) return { ended: error.reason, mustList: error.reason === 'relist', isFailure: false, askedMs: 0 }
  if (isTransportError(error)) return { ended: 'cut', mustList: false, isFailure: true, askedMs: 0 }
  if (isGone(error)) return { ended: 'expired', mustList: true, isFailure: false, askedMs: 0 }
  return { ended: 'failed', mustList: true, isFailure: true, askedMs: error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0 }
}
