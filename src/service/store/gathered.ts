import { createGathering } from '../../lib/gather.ts'
import { DatabaseUnavailableError } from './guarded-pool.ts'

/** Of a request's five seconds. Who comes while the database is frozen waits for those before, and then for himself. */
const patienceMs = 4_000

/** What many ask the database, or write there, at the same time is one statement: one way there and back for all of them, and one commit. */
export function gathered<K, T>(
  ask: (keys: readonly K[]) => Promise<T>,
  limits: { readonly atMost: number; readonly atOnce: number },
): (key: K) => Promise<T> {
  const gather = createGathering(ask, limits)
  return async (key) => {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => late.reject(new DatabaseUnavailableError('away', `the database gave no answer in ${patienceMs} ms`)),
      patienceMs,
    )
    try {
      return await Promise.race([gather([key]), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }
}
