import { jitter } from '../../lib/clock.ts'
import { sameHex } from '../../lib/hex.ts'
import { RECORD_FINALIZER } from '../../resources/meta.ts'
import { classify } from '../engine/classify.ts'
import type { Result } from '../kube/controller.ts'
import { Priority } from '../kube/queue.ts'
import { createDrive } from './drive.ts'
import { each } from './each.ts'
import { createFinalityWatch, type FinalityWatch } from './finality.ts'
import { createFollow } from './follow.ts'
import { isBeingDeleted } from './held.ts'
import { type LaneDeps, lookAt, type Moment } from './moment.ts'
import { type LaneId, laneKey, parseLaneKey } from './names.ts'
import { isOpen } from './protocol.ts'
import { createRecordEnd, prunePlaces } from './prune.ts'
import { restore } from './restore.ts'
import { type RecordObject, recordOf } from './store.ts'
import { createTake } from './take.ts'
import { createTend } from './tend.ts'

/** Records that are followed at once. */
const AT_ONCE = 16
/** How often a lane is looked at for what may go; where that was more than one look deletes; and where somebody deletes a record that is held. */
const PRUNE_EVERY_MS = 600_000
const PRUNE_MORE_MS = 30_000
const HELD_EVERY_MS = 60_000

const byAge = (a: RecordObject, b: RecordObject): number => {
  const key = ({ metadata }: RecordObject) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`
  return key(a) < key(b) ? -1 : 1
}

/**
 * One look at a lane, the sequence of nonces of one address: what landed is concluded, what is open is sent and replaced, holes are filled, and what waits
 * takes places. All decisions are `protocol.ts`'s; each is written, fenced, before anything is sent.
 */
export function createLane(deps: LaneDeps): (key: string, signal: AbortSignal) => Promise<Result> {
  const { store, memory } = deps
  const follow = createFollow(deps)
  const drive = createDrive(deps)
  const take = createTake(deps, drive)
  const tend = createTend(deps)
  const end = createRecordEnd(deps)
  /** By lane, monotonic ms. */
  const pruneAt = new Map<string, number>()
  const finality = createFinalityWatch(deps.clock)

  const unfinished = (lane: LaneId): readonly RecordObject[] =>
    store
      .liveIn(lane)
      .filter(({ status }) => status?.outcome === undefined)
      .toSorted(byAge)

  /** What befalls one record holds up none of the others. */
  async function work(moment: Moment, record: RecordObject): Promise<void> {
    const { metadata } = record
    try {
      if ((await follow(moment, record)) === 'unmined') await drive.drive(moment, store.record(metadata.name) ?? record)
    } catch (error) {
      moment.signal.throwIfAborted()
      const verdict = classify(error)
      if (verdict.kind === 'conflict') await store.read(metadata.name, moment.signal)
      else memory.stand(record, verdict)
    }
  }

  /** Nothing can be asked: everybody who waits is told. */
  function standAll(lane: LaneId, error: unknown): void {
    const verdict = classify(error)
    if (verdict.kind === 'conflict') return
    for (const record of unfinished(lane)) memory.stand(record, verdict)
  }

  /** Deletes what nothing needs any more, now and then. What somebody else deletes, and what nobody waits for, is looked at each time. */
  async function prune(moment: Moment): Promise<void> {
    await end.letGo(moment)
    await end.tellClaims(moment)
    const key = laneKey(moment.lane)
    const now = deps.clock.monotonicMs()
    if (now < (pruneAt.get(key) ?? Number.NEGATIVE_INFINITY)) return
    pruneAt.set(key, now + PRUNE_EVERY_MS)
    if (await prunePlaces(deps, moment)) pruneAt.set(key, now + PRUNE_MORE_MS)
    await end.retire(moment)
  }

  /** When a lane is looked at again in which nothing is open and nothing waits. */
  function rest(lane: LaneId): Result {
    const isHeld = store.liveIn(lane).some(isBeingDeleted)
    // The highest place stays.
    if (!isHeld && store.placesIn(lane).size <= 1 && !end.isAnyGoing(lane)) return { kind: 'done' }
    const pruneInMs = Math.max(1_000, (pruneAt.get(laneKey(lane)) ?? 0) - deps.clock.monotonicMs())
    return { kind: 'wait', afterMs: jitter(Math.min(isHeld ? HELD_EVERY_MS : PRUNE_EVERY_MS, pruneInMs)), priority: Priority.low }
  }

  return async function reconcile(key, signal): Promise<Result> {
    const lane = parseLaneKey(key)
    const records = unfinished(lane)
    const places = store.placesIn(lane)
    const isHeld = store.liveIn(lane).some(isBeingDeleted)
    if (records.length === 0 && places.size === 0 && rest(lane).kind === 'done') return { kind: 'done' }
    const network = deps.network(lane.chainId)
    if (network === undefined) {
      for (const record of records)
        memory.stand(record, {
          kind: 'wait',
          reason: 'ChainUnavailable',
          message: `The operator's networks file has no network with chain id ${lane.chainId} any more, where StakingTransaction ${record.metadata.name} was made. It is followed to its end once there is one.`,
          afterMs: 30_000,
        })
      await end.holdAll(
        store.liveIn(lane),
        `The operator's networks file has no network with chain id ${lane.chainId}, so that nothing is proven of it: add one, or remove the finalizer ${RECORD_FINALIZER} when you are certain that nothing of it can land.`,
        signal,
      )
      return records.length === 0 && !isHeld ? { kind: 'done' } : { kind: 'wait', afterMs: 30_000 }
    }
    // ▸ A lane that is taken over by half signs nothing.
    const importing = deps.importing(lane)
    if (importing !== undefined) {
      for (const record of records) memory.stand(record, importing)
      return { kind: 'wait', afterMs: jitter(2_000), priority: Priority.high }
    }
    const poll = network.config.pollIntervalMs
    let moment: Moment
    try {
      moment = await lookAt(lane, network, {
        finality,
        inLog: () => ({ places: store.placesIn(lane), records: unfinished(lane) }),
        onMarket: deps.onMarket,
        signal,
      })
    } catch (error) {
      signal.throwIfAborted()
      standAll(lane, error)
      return { kind: 'wait', afterMs: jitter(poll), priority: Priority.high }
    }
    const lacking = await restore(store, moment)
    await each(
      moment.records.filter((record) => isOpen(recordOf(record))),
      AT_ONCE,
      (record) => work(moment, record),
    )
    tellOfFinality(deps, finality, moment)
    let isFilling = true
    let isCut = false
    if (lacking === undefined) {
      isFilling = (await tend(moment)).isOpen
      isCut = await take({ ...moment, records: unfinished(lane), places: store.placesIn(lane) })
    } else for (const record of unfinished(lane)) if (record.status?.place === undefined) memory.stand(record, lacking)
    await prune({ ...moment, places: store.placesIn(lane) })
    if (isCut) return { kind: 'again', priority: Priority.high }
    const left = unfinished(lane)
    if (left.length === 0 && !isFilling) return rest(lane)
    return { kind: 'wait', afterMs: jitter(poll), priority: Priority.high }
  }
}

/** Finality has stopped while a transaction waits for it: told once on the signer, whose owner runs the nodes or knows who does. */
function tellOfFinality(
  { memory, signers, onAlarm }: Pick<LaneDeps, 'memory' | 'signers' | 'onAlarm'>,
  finality: FinalityWatch,
  { lane, network, final, isStuck, records }: Moment,
): void {
  if (!isStuck || !records.some((record) => memory.standing(record.metadata.name)?.reason === 'NoFinality')) return
  if (!finality.isNews(laneKey(lane), final)) return
  const { name } = network.config
  for (const signer of signers())
    if (signer.spec.chain === 'Ethereum' && sameHex(signer.spec.address, lane.address))
      onAlarm?.(signer, name, {
        reason: 'NoFinality',
        message: `The final block of ${name} has been ${final} for more than 30 minutes, and transactions of ${lane.address} wait for a later one. Nothing is concluded before: look at the chain's finality and at the RPC nodes.`,
      })
}
