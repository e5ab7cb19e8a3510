import { sameHex } from '../../lib/hex.ts'
import { timestamp } from '../../resources/conditions.ts'
import { transactionPurposes } from '../../resources/staking-transaction.ts'
import { classify } from '../engine/classify.ts'
import { forgottenBy } from './forgotten.ts'
import { createHolding, isBeingDeleted } from './held.ts'
import type { LaneDeps, Moment } from './moment.ts'
import type { LaneId } from './names.ts'
import { mayBePruned, type Place, recordMayBePruned } from './protocol.ts'
import { type RecordObject, recordOf } from './store.ts'
import { createStrangers } from './strangers.ts'

/** Objects deleted in one look at a lane. */
const PRUNE_AT_ONCE = 50

/**
 * Deletes places that nothing needs any more: below the final count of all nodes, and named by no transaction that is open.
 * @returns whether there are more than one look deletes
 */
export async function prunePlaces(deps: LaneDeps, moment: Moment): Promise<boolean> {
  const { store, onPruned } = deps
  const { lane, network, counts, places, signal } = moment
  /** The record that a place was taken for, as long as it uses this lane. */
  const ownerOf = ({ transaction }: Place): RecordObject | undefined => {
    const record = transaction?.name === undefined ? undefined : store.record(transaction.name)
    if (record === undefined || record.metadata.uid !== transaction?.uid) return undefined
    return record.spec.chainId === lane.chainId && sameHex(record.spec.from, lane.address) ? record : undefined
  }
  const spent = [...places.values()].filter((place) => {
    const owner = ownerOf(place)
    return mayBePruned(place, places, owner && recordOf(owner), counts.finalEverywhere)
  })
  let pruned = 0
  for await (const { nonce } of createStrangers(deps)(moment, spent)) {
    if (pruned === PRUNE_AT_ONCE) return true
    pruned += 1
    await store.prunePlace(lane, nonce, signal)
    onPruned?.(network.config.name, 'SignerNonce')
  }
  return false
}

/**
 * How records of a lane end. A resource that is there keeps every record that was ever made for it (`held.ts`).
 *
 * One that nobody claims any more goes `retentionMs` later, if its kind does not keep it for good; one that somebody deletes goes at once, whatever its
 * kind. Neither goes while something of it may land, ▸ or while a limit of its signer counts it.
 */
export function createRecordEnd(deps: LaneDeps) {
  const { store, memory, clock } = deps

  const { claim, claimant, hold, tellClaim } = createHolding(deps)

  /** ▸ Why something of it may land, or is not proven to be over; undefined where nothing can. */
  async function openEnd(moment: Moment, record: RecordObject): Promise<string | undefined> {
    const { metadata, status } = record
    if (!recordMayBePruned(recordOf(record), moment.counts.finalEverywhere))
      return status?.outcome === undefined
        ? `A transaction of it may still land under nonce ${status?.place ?? '(an earlier one)'}.`
        : `Its nonce ${status.outcome.nonce ?? ''} is not final on every configured RPC node.`
    const [forgotten] = await forgottenBy(deps, moment, record)
    return forgotten && `Nonce ${forgotten.nonce} was taken for it, and ${metadata.name} does not say what became of that.`
  }

  /** Somebody deletes it. */
  async function letGo(moment: Moment, record: RecordObject): Promise<void> {
    const { signal, network } = moment
    const why = (await claim(record, signal)) ?? (await openEnd(moment, record)) ?? deps.limiter.countedUntil(record, moment.blockSeconds)
    if (why !== undefined) return hold(record, why, signal)
    await store.releaseRecord(record, signal)
    memory.forget(record)
    deps.onPruned?.(network.config.name, record.spec.purpose)
  }

  /** Nobody deletes it: it goes by itself when nobody has claimed it for long. */
  async function retire(moment: Moment, record: RecordObject): Promise<void> {
    const { signal, network } = moment
    const { unclaimedSince: since, ...rest } = record.status ?? {}
    const isDue =
      since !== undefined &&
      clock.now().getTime() - Date.parse(since) >= deps.retentionMs &&
      !deps.limiter.mayBeCounted(record, moment.blockSeconds)
    // Past the cache only where it is about to change something.
    if (since !== undefined && !isDue && !(await deps.ownerExists(record.spec.owner, false, signal))) return
    if ((await claimant(record, signal)) !== undefined) {
      if (since !== undefined) await store.writeStatus(record, rest, signal)
      return
    }
    if ((await openEnd(moment, record)) !== undefined) return
    if (since === undefined) {
      await store.writeStatus(record, { ...rest, unclaimedSince: timestamp(clock.now()) }, signal)
      return
    }
    await store.pruneRecord(record, signal)
    memory.forget(record)
    deps.onPruned?.(network.config.name, record.spec.purpose)
  }

  const isKept = (record: RecordObject): boolean => {
    try {
      return deps.kindOf(record).keepsRecords
    } catch {
      // Of a purpose that isn't known here nothing is deleted.
      return true
    }
  }
  /** Those of a lane that go by themselves, as nothing of them can land. Of those that are kept there are thousands: only one is looked at. */
  function* goingByThemselves(lane: LaneId): Generator<RecordObject> {
    for (const record of store.liveIn(lane))
      if (record.status?.outcome === undefined && record.status?.place === undefined && !isKept(record)) yield record
    for (const purpose of transactionPurposes)
      for (const record of store.concludedIn(lane, purpose)) {
        if (isKept(record)) break
        yield record
      }
  }

  async function guarded(moment: Moment, record: RecordObject, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      moment.signal.throwIfAborted()
      // What can't be proven now is looked at again; what changed meanwhile is read.
      if (classify(error).kind === 'conflict') await store.read(record.metadata.name, moment.signal)
    }
  }

  return {
    /** Whether there are records in a lane that go by themselves at some time. */
    isAnyGoing: (lane: LaneId): boolean => goingByThemselves(lane).next().done !== true,
    async letGo(moment: Moment): Promise<void> {
      for (const record of store.liveIn(moment.lane).filter(isBeingDeleted)) await guarded(moment, record, () => letGo(moment, record))
    },
    /** Of those that wait, which nobody waits for any more. */
    async tellClaims(moment: Moment): Promise<void> {
      for (const record of store.liveIn(moment.lane).filter((one) => !isBeingDeleted(one)))
        await guarded(moment, record, () => tellClaim(record, moment.signal))
    },
    async retire(moment: Moment): Promise<void> {
      const over = [...goingByThemselves(moment.lane)].filter((record) => !isBeingDeleted(record))
      for (const record of over) await guarded(moment, record, () => retire(moment, record))
    },
    /** Nothing can be proven of a chain that is not configured. */
    async holdAll(records: readonly RecordObject[], why: string, signal: AbortSignal): Promise<void> {
      for (const record of records.filter(isBeingDeleted)) await hold(record, why, signal)
    },
  }
}
