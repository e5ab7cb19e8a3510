import { type Clock, jitter } from '../../lib/clock.ts'

/** One wait at the API: for another state than `state`, and `waitMs` at most. */
export type AwaitChange = (
  given: { readonly state: string; readonly waitMs: number },
  signal: AbortSignal,
) => Promise<'changed' | 'unchanged' | 'refused'>

export interface Follower {
  /** What was read of a resource: the name of its state, undefined where the API knows no waits, and how to wait for another one. */
  note(id: string, state: string | undefined, awaitChange: AwaitChange): void
  /** Calls back once the API shows another state than was noted last. False where nothing is to be followed, or as much is as may be. */
  follow(id: string, onChange: () => void, signal: AbortSignal): boolean
}

/** Waits at one API at the same time: whoever finds no place goes on asking, as at an API that knows no waits. */
const defaultMax = 16
const waitMs = 30_000
/** Then it is asked for by a reading once more. */
const maxRounds = 20
const maxNoted = 1_000
/** Between two changes of one resource that are told: an API whose every answer is another one is not asked without an end. */
const apartMs = 2_000

/**
 * Waits at the API beside the workers of the queues, for states that were read of it. A wait that fails is over: nothing depends on it, since whoever follows
 * something goes on asking now and then.
 */
export function createFollower({ clock, max = defaultMax }: { readonly clock: Clock; readonly max?: number }): Follower {
  const noted = new Map<string, { readonly state: string; readonly awaitChange: AwaitChange }>()
  const following = new Set<string>()
  const toldAt = new Map<string, number>()

  async function run(id: string, first: string, awaitChange: AwaitChange, onChange: () => void, signal: AbortSignal): Promise<void> {
    try {
      for (let round = 0; round < maxRounds && !signal.aborted; round++) {
        const outcome = await awaitChange({ state: first, waitMs }, signal)
        if (outcome === 'refused') return
        if (outcome === 'changed') {
          const told = toldAt.get(id)
          if (told !== undefined) await clock.sleep(Math.max(0, told + apartMs - clock.monotonicMs()), signal)
          toldAt.delete(id)
          toldAt.set(id, clock.monotonicMs())
          forgetOldest(toldAt)
          return onChange()
        }
        await clock.sleep(jitter(200), signal)
      }
    } catch {
      // As it was before: by asking.
    } finally {
      following.delete(id)
    }
  }

  return {
    note(id, state, awaitChange) {
      noted.delete(id)
      if (state === undefined) return
      noted.set(id, { state, awaitChange })
      forgetOldest(noted)
    },
    follow(id, onChange, signal) {
      const known = noted.get(id)
      if (known === undefined || signal.aborted) return false
      if (following.has(id)) return true
      if (following.size >= max) return false
      following.add(id)
      void run(id, known.state, known.awaitChange, onChange, signal)
      return true
    },
  }
}

function forgetOldest(map: Map<string, unknown>): void {
  if (map.size > maxNoted) for (const oldest of map.keys()) return void map.delete(oldest)
}
