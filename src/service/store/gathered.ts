import { createGathering } from '../../lib/gather.ts'
import { inTime } from './guarded-pool.ts'

/** Of a request's five seconds. Who comes while the database is frozen waits for those before, and then for himself. */
const defaultPatienceMs = 4_000

/** What many ask the database, or write there, at the same time is one statement: one way there and back for all of them, and one commit. */
export function gathered<K, T>(
  ask: (keys: readonly K[]) => Promise<T>,
  { patienceMs = defaultPatienceMs, ...limits }: { readonly atMost: number; readonly atOnce: number; readonly patienceMs?: number },
): (key: K) => Promise<T> {
  const gather = createGathering(ask, limits)
  return (key) => inTime(gather([key]), patienceMs)
}
