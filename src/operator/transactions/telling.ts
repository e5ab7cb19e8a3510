import { isGone, StakingApiError } from '../../contract/client-error.ts'
import { DISREGARD_SUBMISSION_ANNOTATION } from '../../resources/meta.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'
import { Halt, wait } from '../engine/verdict.ts'
import { hashIn, senderOf } from './ethereum-texts.ts'
import type { LaneDeps } from './moment.ts'
import { cancelOf, disregardedIn, testimony } from './protocol.ts'
import { type RecordObject, recordOf } from './store.ts'

/**
 * The staking API has forgotten what a transaction was signed for (404), as after a restore of its database: it can't be told, so nothing is sent. What asks for the
 * transaction waits for its place to be given up like anybody behind it: it is asked for anew then.
 */
export class ForgottenHalt extends Halt {
  constructor(hash: string) {
    super({
      kind: 'wait',
      reason: 'ServiceUnavailable',
      message: `The staking API does not know any more what transaction ${hash} was signed for (404): its database was set back, or the operator's API key is another account's now. Nothing is sent that it can't be told of. Bring back the data or the key; if that isn't done soon, the transaction's nonce is cancelled, and it is asked for anew.`,
      afterMs: 12_000,
    })
  }
}

/** It was told of another transaction, which it can't see closed. */
const isHeldUp = (error: unknown): boolean => error instanceof StakingApiError && error.status === 409 && error.code === 'already-submitted'

/** Tells the staking API the hash of an attempt, before it is sent. */
export function createTelling(deps: Pick<LaneDeps, 'kindOf'>) {
  /**
   * Whether what the staking API holds on to is a hash of which a person has said, on the record, that it never lands, and of which no node says otherwise. Of
   * one that was reported without its sender and nonce nothing else ends that: the API can't see it closed. It takes the hash of what has landed.
   */
  async function insistsOnDisregarded(of: RecordObject, signal: AbortSignal): Promise<boolean> {
    const annotation = of.metadata.annotations?.[DISREGARD_SUBMISSION_ANNOTATION]
    const disregarded = disregardedIn(annotation)
    if (disregarded.length === 0) return false
    const witnesses = await deps.kindOf(of).witnesses(of, signal)
    const told = witnesses.told?.hash.toLowerCase()
    if (told === undefined || !disregarded.includes(told)) return false
    return testimony(recordOf(of), { address: senderOf(of) }, witnesses, annotation).is === 'none'
  }

  /**
   * The staking API holds on to an earlier transaction that was cancelled: it is told of the cancel, which has a block, and so shows by its receipt that the other
   * one can't land. Which transaction has used a nonce, nodes can't say without states that are as old, and few keep them. @returns whether it has taken the cancel
   */
  async function tellOfCancel(of: RecordObject, attempt: TransactionAttempt, signal: AbortSignal): Promise<boolean> {
    const kind = deps.kindOf(of)
    const record = recordOf(of)
    const held = (await kind.witnesses(of, signal)).told?.hash
    const cancel = held === undefined ? undefined : cancelOf(record, held)
    if (cancel === undefined || cancel.nonce === attempt.nonce) return false
    try {
      await kind.tell(of, { hash: hashIn(cancel), from: senderOf(of), nonce: cancel.nonce }, signal)
      return true
    } catch (error) {
      if (error instanceof StakingApiError && error.kind === 'problem' && !isGone(error)) return false
      throw error
    }
  }

  /**
   * Nothing is sent that the staking API was not told of. That it refuses a hash now is no reason to take another nonce at once: it is told again.
   * @returns whether it was told. ▸ It was not, and need not be, where it refuses every other hash for the sake of one that a person has disregarded.
   */
  async function tell(of: RecordObject, attempt: TransactionAttempt, signal: AbortSignal): Promise<boolean> {
    const hash = hashIn(attempt)
    const tellIt = () => deps.kindOf(of).tell(of, { hash, from: senderOf(of), nonce: attempt.nonce ?? 0 }, signal)
    try {
      await tellIt().catch(async (error: unknown) => {
        if (!isHeldUp(error) || !(await tellOfCancel(of, attempt, signal))) throw error
        await tellIt()
      })
      return true
    } catch (error) {
      if (isGone(error)) throw new ForgottenHalt(hash)
      if (!(error instanceof StakingApiError) || error.status !== 409) throw error
      if (isHeldUp(error) && (await insistsOnDisregarded(of, signal))) return false
      throw wait(
        'ServiceUnavailable',
        `The staking API does not take transaction ${hash} for this now (409 ${error.code}): it was told of an earlier one, and does not see yet that it came to nothing. It is told again, and nothing is sent before.`,
        error.retryAfterMs ?? 12_000,
      )
    }
  }

  return tell
}
