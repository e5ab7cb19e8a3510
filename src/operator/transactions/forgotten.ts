import type { LaneDeps, Moment } from './moment.ts'
import { laneKey, parseLaneKey } from './names.ts'
import { forgottenPlaces, mayGoOn } from './protocol.ts'
import { type RecordObject, recordOf } from './store.ts'

export interface ForgottenPlace {
  readonly nonce: number
  /** It is of this lane, and the record may go on with it. */
  readonly mayGoOn: boolean
}

/** ▸ Places of any lane that were taken for a record, or may have been used for the same, and of which the log does not say what became of them. */
export async function forgottenBy(
  { store, network }: Pick<LaneDeps, 'store' | 'network'>,
  { lane, counts, signal }: Pick<Moment, 'lane' | 'counts' | 'signal'>,
  record: RecordObject,
): Promise<readonly ForgottenPlace[]> {
  const byLane = Map.groupBy(store.placesFor(recordOf(record)), (one) => laneKey(one.lane))
  const found: ForgottenPlace[] = []
  for (const [key, taken] of byLane) {
    const isHere = key === laneKey(lane)
    const other = parseLaneKey(key)
    const everywhere = isHere
      ? counts.finalEverywhere
      : (await network(other.chainId)?.chain.laneCounts(other.address, signal))?.finalEverywhere
    const places = taken.map(({ place }) => place)
    for (const nonce of forgottenPlaces(recordOf(record), places, everywhere)) {
      const place = places.find((one) => one.nonce === nonce)
      found.push({ nonce, mayGoOn: isHere && place !== undefined && mayGoOn(place, recordOf(record), counts) })
    }
  }
  return found
}
