import type { TransactionAttempt } from '../../../resources/staking-transaction.ts'
import {
  type Conclusion,
  type Counts,
  type Landing,
  MAX_REMAKES,
  type Place,
  type TransactionRecord,
  type WitnessedTransaction,
} from '../protocol.ts'
import { type Config, isFor, type Rules } from './config.ts'

/**
 * The log's objects by number. The product's functions work on records and maps of places; states of the explorer hold their numbers, and what a
 * function says of one is computed once.
 */

/** What may use a nonce: version 0 to 2 of the call of purpose 0 or 1, a cancel, another user's, and a call that reverts. 0: nothing. */
export const CANCEL = 7
export const FOREIGN = 8
export const callOf = (purpose: number, version: number): number => 1 + 3 * purpose + version
export const revertOf = (purpose: number): number => 9 + purpose
export const purposeOf = (code: number): number => (code >= 1 && code <= 6 ? Math.floor((code - 1) / 3) : -1)
const revertedPurposeOf = (code: number): number => (code >= 9 ? code - 9 : -1)

/** One transaction: lane, nonce and code in one number, never 0. */
export const transactionId = (lane: number, nonce: number, code: number): number => 1 + ((lane * 4 + nonce) << 4) + code
export const laneOfId = (id: number): number => (id - 1) >> 6
export const nonceOfId = (id: number): number => ((id - 1) >> 4) & 3
export const codeOfId = (id: number): number => (id - 1) & 15
/** What an earlier version has signed, by nonce: the purpose of each, in the other order than it comes to the log. */
export const LEDGER: readonly { readonly nonce: number; readonly purpose: number; readonly code: number }[] = [
  { nonce: 0, purpose: 1, code: callOf(1, 0) },
  { nonce: 1, purpose: 0, code: callOf(0, 0) },
]
const subjectOf = (purpose: number): string => `purpose${purpose}`
/** A filler under which an earlier version may have done a purpose: 130 and 131. */
const MAY_DO = 130
const hashOf = (id: number): string => `0x${id}`
const idOf = (hash: string): number => Number(hash.slice(2))
const addressOf = (lane: number): string => `0xlane${lane}`

export interface LogRecord {
  readonly number: number
  readonly purpose: number
  /** Counts records that were made for this purpose. */
  readonly uid: number
  readonly owner: number
  readonly lane: number
  readonly record: TransactionRecord
  readonly place: number
  /** Something of it may land. */
  readonly isOpen: boolean
  readonly isLanded: boolean
  readonly isSettled: boolean
  readonly isCancelling: boolean
  /** Codes of the versions under the place in use: a set of bits, and the one that is sent: the cancel, or the last call. */
  readonly versions: number
  readonly last: number
  readonly mayTake: 'yes' | 'has-place' | 'settled' | 'too-many-remakes'
  readonly mayBeHandedOver: boolean
  readonly mayBump: boolean
  readonly mayCancel: boolean
}

/** The places of one lane. */
export interface LanePlaces {
  readonly number: number
  readonly places: ReadonlyMap<number, Place>
  readonly highest: number
}

export type Testified = 'none' | 'unknown-submission' | 'done-elsewhere' | number
export type Next = { readonly is: 'free' | 'unaccounted' | 'not-final' | 'hole'; readonly nonce: number }

export function createLog(config: Config, rules: Rules) {
  const records: (LogRecord | undefined)[] = [undefined]
  const numbers = new Map<string, number>()
  const uidOf = (purpose: number, uid: number): string => `purpose${purpose}-${uid}`
  const byHash = !isFor(config, 'content')
  const nobody: LanePlaces = { number: 0, places: new Map(), highest: -1 }
  const lanes: LanePlaces[] = [nobody]
  const laneNumbers = new Map<string, number>([['', 0]])

  /** After so many own cancels the product only waits, each time longer: here a world ends with them, and one that needed none of them is found out. */
  const mayTake = (record: TransactionRecord): LogRecord['mayTake'] => {
    const may = rules.mayTakePlace(record, 0)
    return may === 'yes' && (record.status.closed?.length ?? 0) > MAX_REMAKES ? 'too-many-remakes' : may
  }

  const intern = (
    made: Pick<LogRecord, 'purpose' | 'uid' | 'owner' | 'lane'> & { generation: number; status: TransactionRecord['status'] },
  ) => {
    const { purpose, uid, owner, lane, generation, status } = made
    const key = JSON.stringify([purpose, uid, owner, lane, generation, status.place, status.attempts, status.closed, status.outcome])
    const known = numbers.get(key)
    if (known !== undefined) return known
    const record: TransactionRecord = { uid: uidOf(purpose, uid), subject: subjectOf(purpose), generation, status }
    const open = rules.mayAttempt(record, 'Call')
    const versions = rules.openAttempts(record)
    const number = records.length
    if (number > 0xffff) throw new Error('more than 65,535 different records: the world is too large for states of 16-bit words')
    records.push({
      number,
      purpose,
      uid,
      owner,
      lane,
      record,
      place: status.place ?? -1,
      isOpen: status.place !== undefined && status.outcome === undefined,
      isLanded: status.outcome?.is === 'Landed',
      isSettled: status.outcome !== undefined,
      isCancelling: rules.isCancelling(record),
      versions: versions.reduce((bits, { hash }) => bits | (1 << codeOfId(idOf(hash))), 0),
      last: rules.isCancelling(record) ? CANCEL : versions.length === 0 ? 0 : codeOfId(idOf(versions[versions.length - 1]?.hash ?? '0x1')),
      mayTake: mayTake(record),
      mayBeHandedOver: !isFor(config, 'handOverClosed') || rules.mayBeHandedOver(record),
      mayBump: open === 'yes',
      mayCancel: rules.mayAttempt(record, 'Cancel') === 'yes',
    })
    numbers.set(key, number)
    return number
  }
  const recordOf = (number: number): LogRecord => {
    const record = records[number]
    if (record === undefined) throw new Error(`no record ${number}`)
    return record
  }
  const attempt = (lane: number, nonce: number, code: number, found: boolean): TransactionAttempt => ({
    hash: hashOf(transactionId(lane, nonce, code)),
    kind: code === CANCEL ? 'Cancel' : 'Call',
    nonce,
    ...(found ? { found } : {}),
    at: '',
  })
  const withStatus = (of: LogRecord, status: TransactionRecord['status']): number => {
    if (status === of.record.status) return of.number
    const { purpose, uid, owner, lane, record } = of
    const written = isFor(config, 'versionsOfLane') ? status : { ...status, attempts: withoutGeneration(status.attempts) }
    return intern({ purpose, uid, owner, lane, generation: record.generation, status: written })
  }
  const withoutGeneration = (attempts: readonly TransactionAttempt[] | undefined): TransactionAttempt[] =>
    (attempts ?? []).map(({ generation: _generation, ...attempt }) => attempt)

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

  const remembered = <T>() => {
    const answers = new Map<number, T>()
    return (key: number, compute: () => T): T => {
      const known = answers.get(key)
      if (known !== undefined) return known
      const answer = compute()
      answers.set(key, answer)
      return answer
    }
  }
  /** 15 bits. */
  const countsKey = ({ final, latest, pending, finalEverywhere }: Counts): number =>
    (((final * 8 + latest) * 8 + pending) * 8 + (finalEverywhere ?? 7)) * 8
  const placed = remembered<number>()
  const named = remembered<number>()
  const attempted = remembered<number>()
  const concluded = remembered<{ readonly is: Conclusion['is']; readonly record: number; readonly isLanded: boolean }>()
  const nexts = remembered<Next>()
  const holes = remembered<readonly number[]>()
  const forgotten = remembered<number>()
  const uses = remembered<'named' | 'free' | 'filler'>()
  const prunes = remembered<boolean>()
  const testified = remembered<Testified>()

  return {
    record: recordOf,
    places: lanesOf,
    create: (purpose: number, uid: number, owner: number, lane: number): number =>
      intern({ purpose, uid, owner, lane, generation: 1, status: {} }),
    handOver: (number: number, owner: number, lane: number): number => {
      const { purpose, uid, record } = recordOf(number)
      return intern({ purpose, uid, owner, lane, generation: Math.min(record.generation + 1, 7), status: record.status })
    },
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
    /** The record names a place, with its first version. */
    name: (number: number, nonce: number, code: number, found: boolean): number =>
      named(((number * 4 + nonce) * 16 + code) * 2 + (found ? 1 : 0), () => {
        const of = recordOf(number)
        return withStatus(of, rules.withPlace(of.record, nonce, attempt(of.lane, nonce, code, found)))
      }),
    /** What an earlier version has signed for the record under its place; 0 where the record has begun. */
    takeOver: (number: number, places: number, nonce: number, code: number): number => {
      const of = recordOf(number)
      const place = lanesOf(places).places.get(nonce)
      if (place === undefined) throw new Error(`no place ${nonce}`)
      const status = rules.takenOver(of.record, place, [{ ...attempt(of.lane, nonce, code, false), generation: of.record.generation }])
      return status === undefined ? 0 : withStatus(of, status)
    },
    attempt: (number: number, code: number): number =>
      attempted(number * 16 + code, () => {
        const of = recordOf(number)
        return withStatus(of, rules.withAttempt(of.record, attempt(of.lane, of.place, code, false)))
      }),
    conclude: (number: number, code: number, proven: boolean) =>
      concluded((number * 16 + code) * 2 + (proven ? 1 : 0), () => {
        const of = recordOf(number)
        const reverted = revertedPurposeOf(code)
        const id = transactionId(of.lane, of.place, reverted >= 0 ? callOf(reverted, 0) : code)
        const isKnown = (of.record.status.attempts ?? []).some(({ hash }) => hash === hashOf(id))
        const isCall = (purposeOf(code) === of.purpose || reverted === of.purpose) && (isKnown || !byHash)
        const isCancel = code === CANCEL && (isKnown || !byHash)
        const landing: Landing = {
          hash: hashOf(id),
          nonce: of.place,
          blockNumber: 1,
          blockHash: '0xblock',
          is: isCall ? 'call' : isCancel ? 'cancel' : 'foreign',
          success: reverted < 0,
          did: reverted < 0 ? 'it' : 'nothing',
          proven,
          foundAt: '',
        }
        const conclusion = rules.conclude(of.record, landing, config.remakeAfterRevert === true)
        if (conclusion.is === 'unproven') return { is: 'unproven', record: number, isLanded: false }
        return {
          is: conclusion.is,
          record: withStatus(of, conclusion.status),
          isLanded: conclusion.is === 'outcome' && conclusion.outcome === 'Landed',
        }
      }),
    next: (places: number, shown: Counts, acknowledged: number): Next =>
      nexts((places * 8 + acknowledged) * 0x8000 + countsKey(shown), () => {
        const { places: map, highest } = lanesOf(places)
        const { final } = shown
        if (!isFor(config, 'lowestPlace')) return { is: 'free', nonce: Math.max(highest + 1, shown.pending) }
        const finalEverywhere = isFor(config, 'finalByAll') ? shown.finalEverywhere : final
        const counts = isFor(config, 'waitForPools')
          ? { ...shown, finalEverywhere }
          : { final, latest: final, pending: final, finalEverywhere }
        const use = { acknowledged: acknowledged === 0 ? undefined : acknowledged, shared: config.shared === true }
        const next = rules.nextPlaces(map, counts, use, 1)
        return { is: next.is, nonce: next.is === 'free' ? (next.nonces[0] ?? 0) : next.is === 'hole' ? next.nonce : next.from }
      }),
    holes: (places: number, shown: Counts): readonly number[] =>
      holes(places * 0x8000 + countsKey(shown), () => rules.holesOf(lanesOf(places).places, shown)),
    mayGoOn: (places: number, nonce: number, record: number, shown: Counts): boolean => {
      const place = lanesOf(places).places.get(nonce)
      if (place === undefined) return false
      const counts = isFor(config, 'shownPlaces') ? shown : { latest: 0, pending: 0 }
      return rules.mayGoOn(place, recordOf(record).record, counts)
    },
    /** How many places of this lane were taken for the record and may hold what the log forgot. */
    forgotten: (places: number, record: number, finalEverywhere: number | undefined): number =>
      isFor(config, 'forgottenPlaces')
        ? forgotten(
            (places * 8 + (finalEverywhere ?? 7)) * 0x10000 + record,
            () => rules.forgottenPlaces(recordOf(record).record, lanesOf(places).places.values(), finalEverywhere).length,
          )
        : 0,
    isMissing: (places: number, record: number): boolean => rules.isMissing(recordOf(record).record, lanesOf(places).places),
    /** @returns the record without its outcome; itself, where that stands. */
    takenBack: (record: number, shown: Counts): number => {
      if (!isFor(config, 'takenBack')) return record
      const status = rules.takenBack(recordOf(record).record, shown)
      return status === undefined ? record : withStatus(recordOf(record), status)
    },
    /** `record` 0: there is none. */
    use: (places: number, nonce: number, record: number, isFollowed: boolean): 'named' | 'free' | 'filler' =>
      uses(((places * 4 + nonce) * 2 + (isFollowed ? 1 : 0)) * 0x10000 + record, () => {
        const place = lanesOf(places).places.get(nonce)
        if (place === undefined) throw new Error(`no place ${nonce}`)
        return rules.useOf(place, record === 0 ? undefined : recordOf(record).record, isFollowed)
      }),
    /** Whom a place was taken for, as a number; 0 without a place. */
    useKey: (places: number, nonce: number): number => placeCode(lanesOf(places).places.get(nonce)),
    /** The purpose that a place was taken for; -1 for a filler. */
    purposeAt: (places: number, nonce: number): number => {
      const code = placeCode(lanesOf(places).places.get(nonce))
      return code < 2 || code >= MAY_DO ? -1 : (code - 2) >> 6
    },
    mayPrune: (places: number, nonce: number, record: number, finalEverywhere: number): boolean =>
      prunes(((places * 4 + nonce) * 8 + finalEverywhere) * 0x10000 + record, () => {
        const { places: map } = lanesOf(places)
        const place = map.get(nonce)
        if (place === undefined) return false
        return rules.mayBePruned(place, map, record === 0 ? undefined : recordOf(record).record, finalEverywhere)
      }),
    /** `told`, `done`: transactions, 0 for none. @returns the transaction to follow, or what the testimony is. */
    testimony: (number: number, told: number, toldIsKnown: boolean, done: number): Testified =>
      testified(((number * 256 + told) * 256 + done) * 2 + (toldIsKnown ? 1 : 0), () => {
        const of = recordOf(number)
        if (!isFor(config, 'witnesses')) return 'none'
        if (!isFor(config, 'witnessesEach') && (of.record.status.closed ?? []).length > 0) return 'none'
        const witnessed = (id: number): WitnessedTransaction => ({
          hash: hashOf(id),
          from: addressOf(laneOfId(id)),
          nonce: nonceOfId(id),
          sameCall: purposeOf(codeOfId(id)) === of.purpose,
        })
        const words = rules.testimony(
          of.record,
          { address: addressOf(of.lane) },
          {
            told: told === 0 ? undefined : { hash: hashOf(told), transaction: toldIsKnown ? witnessed(told) : undefined },
            done: done === 0 ? undefined : witnessed(done),
          },
          undefined,
        )
        return words.is === 'follow' ? idOf(words.transaction.hash) : words.is
      }),
    sizes: () => ({ records: records.length - 1, places: lanes.length }),
  }
}
export type Log = ReturnType<typeof createLog>
