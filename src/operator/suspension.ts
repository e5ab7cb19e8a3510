import { SUSPEND_ANNOTATION } from '../resources/meta.ts'
import { wait } from './engine/verdict.ts'

/** How soon it is looked at again whether the operator may go on, in ms. */
const LOOK_MS = 5_000

/** Whether people have stopped all that the operator signs. Any value counts but `false`: who is in a hurry writes "yes", or "1". */
export const isSuspended = (leaseAnnotations: Readonly<Record<string, string>>): boolean => {
  const value = leaseAnnotations[SUSPEND_ANNOTATION]
  return value !== undefined && value.trim().toLowerCase() !== 'false'
}

/** @throws Halt while the operator is suspended */
export function assertNotSuspended(leaseAnnotations: Readonly<Record<string, string>>): void {
  if (isSuspended(leaseAnnotations))
    throw wait(
      'OperatorSuspended',
      `The operator is suspended: its Lease has the annotation ${SUSPEND_ANNOTATION}. Nothing is signed and nothing is sent; what was sent before is followed. It goes on when whoever runs the operator removes the annotation.`,
      LOOK_MS,
    )
}
