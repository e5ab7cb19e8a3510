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
/** An API whose every answer is another one is not asked without an end. */
const atLeastMs = 5_000

/**
 * Waits at the API beside the workers of the queues, for states that were read of it. A wait that fails is over: nothing depends on it, since whoever follows
 * something goes on asking now and then.
 */
export function createFollower({ clock, max = defaultMax }: { readonly clock: Clock; readonly max?: number }): Follower {
  const noted = new Map<string, { readonly state: string; readonly awaitChange: AwaitChange }>()
  const following = new Set<string>()

  async function run(id: string, first: string, awaitChange: AwaitChange, onChange: () => void, signal: AbortSignal): Promise<void> {
    const begun = clock.monotonicMs()
    try {
      for (let round = 0; round < maxRounds && !signal.aborted; round++) {
        const outcome = await awaitChange({ state: first, waitMs }, signal)
        if (outcome === 'refused') return
        if (outcome === 'changed') {
          await clock.sleep(Math.max(0, begun + atLeastMs - clock.monotonicMs()), signal)
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
      if (noted.size > maxNoted) for (const oldest of noted.keys()) return void noted.delete(oldest)
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
