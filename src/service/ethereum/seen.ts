import type { Logger } from '../../lib/log.ts'

/** Words for the log: a stake is paid, a request is sent. */
type Seen = { readonly what: 'stake'; readonly done: 'paid' } | { readonly what: 'request'; readonly done: 'sent' }

/**
 * Logs that the chain shows what nobody has reported. Of one that counted as failed or cancelled that is an error: somebody may have been told that it is over.
 * `referenceHeldBy`: the resource that has taken its external reference meanwhile.
 */
export function logSeen(
  log: Logger,
  { what, done }: Seen,
  line: object,
  { was, reference, referenceHeldBy }: { readonly was: string; readonly reference: string | null; readonly referenceHeldBy?: string },
): void {
  if (was === 'awaiting_submission' || was === 'submitted') {
    log.info({ ...line, was }, `a ${what} was ${done} by a transaction that nobody has reported`)
    return
  }
  const held = referenceHeldBy === undefined ? {} : { reference, heldBy: referenceHeldBy }
  log.error({ ...line, was, ...held }, `a ${what} that counted as ${was} was ${done}: it counts as submitted again`)
}
