import { abortable } from '../lib/shared-call.ts'

/** Whoever asks for the same thing waits for its turn; the first is served first. Of one process. */
export type InTurn = <T>(what: string, work: () => Promise<T>, signal: AbortSignal) => Promise<T>

/** @throws the signal's reason when it is aborted before the turn comes, or what the work throws */
export function createTurns(): InTurn {
  const last = new Map<string, Promise<void>>()
  return async (what, work, signal) => {
    const before = last.get(what)
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const mine = (before ?? Promise.resolve()).then(() => over)
    last.set(what, mine)
    try {
      if (before !== undefined) await abortable(before, signal)
      signal.throwIfAborted()
      return await work()
    } finally {
      end()
      if (last.get(what) === mine) last.delete(what)
    }
  }
}
