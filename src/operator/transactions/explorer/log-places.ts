import type { Place } from '../protocol.ts'
import { MAY_DO, subjectOf } from './codes.ts'
import { type Config, isFor } from './config.ts'
import { type LogRecords, uidOf } from './log-records.ts'
import { remembered } from './remembered.ts'

/** The places of one lane. */
export interface LanePlaces {
  readonly number: number
  readonly places: ReadonlyMap<number, Place>
  readonly highest: number
}

/** The places of a lane by number: each map that ever comes up once. */
export type LogPlaces = ReturnType<typeof createLogPlaces>

export function createLogPlaces(config: Config, recordOf: LogRecords['recordOf']) {
  const nobody: LanePlaces = { number: 0, places: new Map(), highest: -1 }
  const lanes: LanePlaces[] = [nobody]
  const laneNumbers = new Map<string, number>([['', 0]])
  const placed = remembered<number>()

  /** A map of places by number, from the codes under nonces 0 to 3. Code 0: none, 1: a filler, otherwise purpose, uid and generation. */
  const internPlaces = (codes: readonly number[]): number => {
    const key = codes.some((code) => code !== 0) ? codes.join() : ''
    const known = laneNumbers.get(key)
    if (known !== undefined) return known
    const places = new Map<number, Place>()
    codes.forEach((code, nonce) => {
      if (code === 0) return
      if (code >= MAY_DO) {
        places.set(nonce, { nonce, transaction: undefined, subjects: [subjectOf(code - MAY_DO)] })
        return
      }
      const transaction = code === 1 ? undefined : { uid: uidOf((code - 2) >> 6, ((code - 2) >> 3) & 7), generation: (code - 2) & 7 }
      places.set(nonce, { nonce, transaction })
    })
    const number = lanes.length
    lanes.push({ number, places, highest: Math.max(...places.keys()) })
    laneNumbers.set(key, number)
    return number
  }
  const codesOf = (number: number): number[] => [0, 1, 2, 3].map((nonce) => placeCode(lanesOf(number).places.get(nonce)))
  const placeCode = (place: Place | undefined): number => {
    if (place === undefined) return 0
    const { transaction, subjects: [subject] = [] } = place
    if (transaction === undefined) return subject === undefined ? 1 : MAY_DO + Number(subject.slice('purpose'.length))
    const [purpose = '0', uid = '0'] = transaction.uid.slice('purpose'.length).split('-')
    return 2 + ((Number(purpose) * 8 + Number(uid)) << 3) + transaction.generation
  }
  const lanesOf = (number: number): LanePlaces => {
    const lane = lanes[number]
    if (lane === undefined) throw new Error(`no places ${number}`)
    return lane
  }

  return {
    lanesOf,
    /** @returns the places with another one. `record`: whom it is for, 0 for a filler. */
    withPlaceFor: (places: number, nonce: number, record: number): number =>
      placed((places * 4 + nonce) * 0x10000 + record, () => {
        const codes = codesOf(places)
        const of = record === 0 ? undefined : recordOf(record)
        codes[nonce] = of === undefined ? 1 : 2 + ((of.purpose * 8 + of.uid) << 3) + of.record.generation
        return internPlaces(codes)
      }),
    /** A filler's place under which an earlier version may have done a purpose. */
    withLegacyFiller: (places: number, nonce: number, purpose: number): number =>
      internPlaces(codesOf(places).map((code, at) => (at === nonce ? MAY_DO + (isFor(config, 'legacyFillers') ? purpose : -129) : code))),
    withoutPlace: (places: number, nonce: number): number => internPlaces(codesOf(places).map((code, at) => (at === nonce ? 0 : code))),
    /** Whom a place was taken for, as a number; 0 without a place. */
    useKey: (places: number, nonce: number): number => placeCode(lanesOf(places).places.get(nonce)),
    /** The purpose that a place was taken for; -1 for a filler. */
    purposeAt: (places: number, nonce: number): number => {
      const code = placeCode(lanesOf(places).places.get(nonce))
      return code < 2 || code >= MAY_DO ? -1 : (code - 2) >> 6
    },
    size: () => lanes.length,
  }
}
