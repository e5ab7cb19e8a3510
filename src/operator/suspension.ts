import { SUSPEND_ANNOTATION } from '../resources/meta.ts'
import { wait } from './engine/verdict.ts'

/** How soon it is looked at again whether the operator may go on, in ms. */
const LOOK_MS = 5_000

/** Whether people have stopped all that the operator signs. Any value counts but `false`: who is in a hurry writes "yes", or "1". */
export const isSuspended = (leaseAnnotations: Readonly<Record<string, string>>): boolean => {
  const value = leaseAnnotations[SUSPEND_ANNOTATION]
  return value !== undefined && value.trim().toLowerCase() !== 'false'
}

/** @returns what throws a Halt while the operator is suspended, and logs once that it came to be, or is no more */
export function createSuspension({
  leaseAnnotations,
  log,
}: {
  readonly leaseAnnotations: () => Readonly<Record<string, string>>
  readonly log: { warn(fields: object, message: string): void }
}): () => void {
  let was = false
  return () => {
    const is = isSuspended(leaseAnnotations())
    if (is !== was) log.warn({}, is ? 'suspended by the annotation of the lease: nothing is signed or sent' : 'not suspended any more')
    was = is
    if (is)
      throw wait(
        'OperatorSuspended',
        `The operator is suspended: its Lease has the annotation ${SUSPEND_ANNOTATION}. Nothing is signed and nothing is sent; what was sent before is followed. It goes on when whoever runs the operator removes the annotation.`,
        LOOK_MS,
      )
  }
}
