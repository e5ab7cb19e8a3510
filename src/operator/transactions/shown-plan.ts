import type { ShownPlan } from '../../resources/plan.ts'
import type { TransactionLog } from './log.ts'
import type { RecordObject } from './store.ts'

/** What of a record has to be approved, for its owner's status; nothing where it has not been looked at, or nothing has. */
export function awaitingApproval(log: Pick<TransactionLog, 'planOf'>, record: RecordObject): { readonly plan?: ShownPlan } {
  const plan = record.status?.outcome === undefined ? log.planOf(record) : undefined
  return plan === undefined || plan === null ? {} : { plan }
}
