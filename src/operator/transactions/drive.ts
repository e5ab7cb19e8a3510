import { createCalls } from './call.ts'
import { createCancel } from './cancel.ts'
import { createDelivery } from './delivery.ts'
import { createFoundWatch } from './found.ts'
import { hindranceOf, isHeldBack, standingOf } from './hindrance.ts'
import type { Admission } from './kind.ts'
import type { Standing } from './memory.ts'
import { type LaneDeps, type Moment, somebodyWaits } from './moment.ts'
import { isCancelling, wish } from './protocol.ts'
import { createRivals } from './rivals.ts'
import { UnrepeatableError } from './signing.ts'
import { type RecordObject, recordOf } from './store.ts'
import { ForgottenHalt } from './telling.ts'

export type Drive = ReturnType<typeof createDrive>

/** Sends what a record says under its place, or its cancel, where it can't go. */
export function createDrive(deps: LaneDeps) {
  const { store, memory, clock } = deps
  const delivery = createDelivery(deps)
  const calls = createCalls(deps, delivery)
  const cancel = createCancel(deps, delivery)
  const followed = createFoundWatch(clock)
  const rivals = createRivals(deps)

  const isSignerLeaving = ({ spec }: RecordObject): boolean =>
    [...deps.signers()].some(({ metadata }) => metadata.name === spec.signer && metadata.deletionTimestamp !== undefined)

  /** Why nothing of the call is to be sent; undefined where it may be. */
  async function hindrance(
    moment: Moment,
    of: RecordObject,
  ): Promise<{ readonly overtaken: boolean; readonly standing: Standing } | Admission> {
    const kind = deps.kindOf(of)
    try {
      const overtaken = await rivals.look(of, moment.signal)
      if (overtaken !== undefined) return { overtaken: true, standing: standingOf(overtaken) }
      const admission = await kind.mayBeSigned(of, false, moment.signal)
      return await deps.approvals.within(of, admission, () => moment.blockSeconds, moment.signal)
    } catch (error) {
      moment.signal.throwIfAborted()
      return { overtaken: false, standing: standingOf(error) }
    }
  }

  /** What to do with an open place whose nonce is not used yet. */
  async function drive(moment: Moment, of: RecordObject): Promise<void> {
    const known = memory.of(of)
    const found = await hindrance(moment, of)
    let standing: Standing
    let isOvertaken = false
    let isForgotten = false
    if ('signer' in found) {
      // Once its cancel is written down, nothing else of it is sent under this nonce.
      if (isCancelling(recordOf(of))) return cancel(moment, of, undefined)
      try {
        await calls.driveCall(moment, of, found)
        // As long as a key that another version needs is away, it is hindered, whether or not it was asked in this very look.
        if (known.unsigned === undefined) known.hinderedSince = undefined
        return
      } catch (error) {
        moment.signal.throwIfAborted()
        standing = standingOf(error)
        isForgotten = error instanceof ForgottenHalt || (error instanceof UnrepeatableError && error.isFinal)
      }
    } else {
      standing = found.standing
      isOvertaken = found.overtaken
    }
    known.hinderedSince ??= clock.monotonicMs()
    // Its newest version may have been written in this very look.
    const now = store.record(of.metadata.name) ?? of
    const nonce = now.status?.place
    if (nonce === undefined || now.metadata.uid !== of.metadata.uid) return
    const decision = wish(recordOf(now), {
      hindrance: hindranceOf(standing),
      maybeSent: !known.freshPlace,
      somebodyWaits:
        isOvertaken ||
        isForgotten ||
        // Another resource of the same purpose gets the record once nothing of it can land; a signer that is being deleted waits for its lane.
        standing.reason === 'OwnerGone' ||
        isSignerLeaving(now) ||
        followed.isLost(known, moment) ||
        somebodyWaits(moment, nonce, (other) => isHeldBack(memory.standing(other.metadata.name))),
      hinderedMs: clock.monotonicMs() - known.hinderedSince,
    })
    if (decision === 'cancel') await cancel(moment, now, standing)
    else memory.stand(now, standing)
  }

  return { drive, sendCall: calls.sendCall, sentSoFar: calls.sentSoFar }
}
