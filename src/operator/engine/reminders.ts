import { type Reason, warnAfterMs } from '../../resources/reasons.ts'

/** A wait that is over by then was on the way, as a node that does not answer once: nobody hears of it. */
const BEGUN_MS = 60_000
/** A warning that lasts is repeated after so long: the API server forgets events after an hour. */
const AGAIN_MS = 3_600_000

/**
 * How long resources have waited for something that may need a person, in monotonic ms, by key: only of those that do. Lost on a restart, after which the time
 * counts anew.
 */
export function createReminders() {
  const waiting = new Map<string, { readonly since: number; readonly begun: Set<Reason>; readonly warnedAt: Map<Reason, number> }>()
  return {
    /** It waits, for this reason. @returns what is to be told now: that it waits (`begun`, once for each reason), or that it has waited for `long` */
    due(key: string, reason: Reason, now: number): 'begun' | 'long' | undefined {
      const after = warnAfterMs(reason)
      if (after === undefined) {
        waiting.delete(key)
        return undefined
      }
      // Reasons that take turns, as nodes and API do when all are down, are one wait.
      const wait = waiting.get(key) ?? { since: now, begun: new Set<Reason>(), warnedAt: new Map<Reason, number>() }
      waiting.set(key, wait)
      const lasted = now - wait.since
      if (lasted >= after) {
        const warnedAt = wait.warnedAt.get(reason)
        if (warnedAt !== undefined && now - warnedAt < AGAIN_MS) return undefined
        wait.begun.add(reason)
        wait.warnedAt.set(reason, now)
        return 'long'
      }
      if (lasted < BEGUN_MS || wait.begun.has(reason)) return undefined
      wait.begun.add(reason)
      return 'begun'
    },
    forget(key: string): void {
      waiting.delete(key)
    },
  }
}
export type Reminders = ReturnType<typeof createReminders>
