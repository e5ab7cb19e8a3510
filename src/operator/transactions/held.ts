import { RECORD_FINALIZER } from '../../resources/meta.ts'
import type { TransactionOwner } from '../../resources/staking-transaction.ts'
import type { LaneDeps } from './moment.ts'
import { closedOf } from './protocol.ts'
import { type RecordObject, recordOf, type TransactionStore } from './store.ts'

/** Whether somebody deletes a record that is held. */
export const isBeingDeleted = ({ metadata }: RecordObject): boolean =>
  metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(RECORD_FINALIZER) === true

/**
 * ▸ Who keeps a record that somebody deletes. A resource that is there keeps every record that was ever made for it, so that what is settled stays settled:
 * a record that is gone can't be told from one that never was, and status, which a tenant can write, must not decide which it is.
 */
export function createHolding(deps: {
  readonly store: Pick<TransactionStore, 'writeStatus'>
  readonly ownerExists: LaneDeps['ownerExists']
}) {
  /** Those who have a say: the resource that it is made for, and those that had their answer from it before. */
  const ownersOf = (record: RecordObject): readonly TransactionOwner[] => [
    record.spec.owner,
    ...closedOf(recordOf(record)).flatMap(({ owner }) => owner ?? []),
  ]

  /** The first of them that is still there. By the cache, and past it where that shows none. */
  async function claimant(record: RecordObject, signal: AbortSignal): Promise<TransactionOwner | undefined> {
    const owners = ownersOf(record)
    for (const isFresh of [false, true]) for (const owner of owners) if (await deps.ownerExists(owner, isFresh, signal)) return owner
    return undefined
  }

  return {
    claimant,
    /**
     * Says of a record that waits whether anybody waits for it: the resource of one that was never sent may have been deleted. For people only: nothing
     * is decided by it, and whoever claims it again has it wait again.
     */
    async tellClaim(record: RecordObject, signal: AbortSignal): Promise<void> {
      const { state = 'Waiting', place, outcome } = record.status ?? {}
      if (place !== undefined || outcome !== undefined || (state !== 'Waiting' && state !== 'Unclaimed')) return
      let isClaimed = false
      for (const owner of ownersOf(record)) isClaimed ||= await deps.ownerExists(owner, false, signal)
      if (isClaimed === (state === 'Waiting')) return
      // Past the cache, only where it is about to change something.
      const now = (await claimant(record, signal)) === undefined ? 'Unclaimed' : 'Waiting'
      if (now !== state) await deps.store.writeStatus(record, { ...record.status, state: now }, signal)
    },
    /** Why a resource keeps it; undefined where none does. */
    async claim(record: RecordObject, signal: AbortSignal): Promise<string | undefined> {
      const owner = await claimant(record, signal)
      return (
        owner &&
        `${owner.kind} ${owner.namespace}/${owner.name} is there, and this is the only record of what was signed for it: delete that first.`
      )
    },
    /** Says in its status why it stays. */
    async hold(record: RecordObject, why: string, signal: AbortSignal): Promise<void> {
      const held = `${why} The deletion waits until that has passed.`.slice(0, 512)
      if (record.status?.held !== held) await deps.store.writeStatus(record, { ...record.status, held }, signal)
    },
  }
}
