import { ProblemError } from './errors.ts'
import { isUniqueViolation } from './store/database.ts'

/** A resource of this very request is there already. */
export class MadeBeforeError extends Error {
  override readonly name = 'MadeBeforeError'
}

/** Their unique indices over account and Idempotency-Key. */
const requestIndices = ['ethereum_stakes_request', 'ethereum_requests_request', 'solana_stakes_request'] as const

/** What a resource that is there already may make of its own request when that comes again: it holds the reference, or what is available. */
const mayComeOfIt = (error: unknown): boolean =>
  error instanceof MadeBeforeError ||
  isUniqueViolation(error, ...requestIndices) ||
  (error instanceof ProblemError && (error.code === 'reference-exists' || error.code === 'validation-failed'))

/**
 * Does work that makes a resource. Should that fail, it is looked whether the request has made it before: the record of its answer may be lost while the resource is
 * there, by a restore of some tables or by hand. Whoever asks again must not get a second one.
 * @param found The answer of the resource that was made under the same Idempotency-Key; undefined when there is none. @throws ProblemError `idempotency-key-reused`
 */
export async function orMadeBefore<T>(work: () => Promise<T>, found: () => Promise<T | undefined>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const made = mayComeOfIt(error) ? await found() : undefined
    if (made === undefined) throw error
    return made
  }
}

/** @throws ProblemError */
export function refuseReused(isSame: boolean): void {
  if (!isSame)
    throw new ProblemError('idempotency-key-reused', 'the Idempotency-Key belongs to a request with another method, path or body')
}
