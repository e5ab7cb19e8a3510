import { type Reason, warnAfterMs } from '../../resources/reasons.ts'

/** A warning that lasts is repeated after so long: the API server forgets events after an hour. */
const AGAIN_MS = 3_600_000

/**
 * How long resources have waited for something that may need a person, in monotonic ms, by key: only of those that do. Lost on a restart, after which the time
 * counts anew.
 */
export function createReminders() {
  const waiting = new Map<string, { readonly since: number; readonly toldAt: Map<Reason, number> }>()
  return {
    /** It waits, for this reason. @returns whether somebody is to be warned now */
    isDue(key: string, reason: Reason, now: number): boolean {
      const after = warnAfterMs(reason)
      if (after === undefined) {
        waiting.delete(key)
        return false
      }
      // Reasons that take turns, as nodes and API do when all are down, are one wait.
      const wait = waiting.get(key) ?? { since: now, toldAt: new Map<Reason, number>() }
      waiting.set(key, wait)
      const told = wait.toldAt.get(reason)
      if (now - wait.since < after || (told !== undefined && now - told < AGAIN_MS)) return false
      wait.toldAt.set(reason, now)
      return true
    },
    forget(key: string): void {
      waiting.delete(key)
    },
  }
}
export type Reminders = ReturnType<typeof createReminders>
