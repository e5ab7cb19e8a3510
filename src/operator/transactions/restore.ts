import { transactionPurposes } from '../../resources/staking-transaction.ts'
import { standingOf } from './hindrance.ts'
import type { Standing } from './memory.ts'
import type { Moment } from './moment.ts'
import { highestPlace, isMissing, takenBack } from './protocol.ts'
import { type RecordObject, recordOf, type TransactionStore } from './store.ts'

/**
 * What a record names is made again where it is missing; an outcome that is not there is taken back.
 * @returns why a place can't be made, as while its definition is being deleted: that keeps nothing from being followed, but no number is given out
 * beside it
 */
export async function restore(
  store: TransactionStore,
  { lane, counts, places, signal }: Pick<Moment, 'lane' | 'counts' | 'places' | 'signal'>,
): Promise<Standing | undefined> {
  let lacking: Standing | undefined
  for (const record of concerned(store, { lane, counts, places })) {
    const { metadata, status } = record
    try {
      if (status?.place !== undefined && isMissing(recordOf(record), places))
        await store.takePlace(lane, status.place, { ...recordOf(record), name: metadata.name }, signal)
    } catch (error) {
      signal.throwIfAborted()
      lacking = standingOf(error)
    }
    const back = takenBack(recordOf(record), counts)
    if (back !== undefined) await store.writeStatus(record, back, signal)
  }
  return lacking
}

/** Those without an outcome; and of those with one, of which a lane has thousands, the ones that the chain or the places may have fallen behind. */
function* concerned(
  store: TransactionStore,
  { lane, counts, places }: Pick<Moment, 'lane' | 'counts' | 'places'>,
): Generator<RecordObject> {
  for (const record of store.liveIn(lane)) if (record.status?.outcome === undefined) yield record
  const from = Math.min(counts.final, (highestPlace(places) ?? -1) + 1)
  for (const purpose of transactionPurposes) yield* [...store.concludedIn(lane, purpose, from)]
}
