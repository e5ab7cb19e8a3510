import type { Instant } from '../../lib/clock.ts'
import { OBSERVED, timestamp, withCondition } from '../../resources/conditions.ts'
import { sameJson } from '../kube/merge-patch.ts'
import { say } from './progress.ts'
import type { AnyStatus, Halted } from './saga-kind.ts'

/** Without news, the time of the last look is written once in so long: what is settled costs no writes. */
const REFRESH_MS = 24 * 3_600_000

/** After a look that went well: what was seen, and when. */
export function observed<S extends AnyStatus>(before: S, seen: S, generation: number, now: Instant): S {
  const statement = say('True', 'Succeeded', 'It is looked at, and status shows what was seen.')
  const conditions = withCondition(seen.conditions ?? [], OBSERVED, statement, generation, now)
  const isFresh = before.observedAt !== undefined && now.getTime() - Date.parse(before.observedAt) < REFRESH_MS
  if (isFresh && conditions === before.conditions && sameJson(before, seen)) return before
  return { ...seen, conditions, observedAt: timestamp(now) }
}

/** After looks that have failed: what status shows is as it was. */
export function unobserved<S extends AnyStatus>(status: S, { reason, message }: Halted, generation: number, now: Instant): S {
  const since = status.observedAt === undefined ? '' : ` What status shows was last seen at ${status.observedAt} or later that day.`
  const statement = say('Unknown', reason, `It cannot be looked at: ${message}${since}`)
  return { ...status, conditions: withCondition(status.conditions ?? [], OBSERVED, statement, generation, now) }
}
