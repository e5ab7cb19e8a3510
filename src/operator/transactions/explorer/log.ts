import type { StakingTransactionSpec } from '../../../resources/staking-transaction.ts'
import type { Conclusion, Counts, Landing, WitnessedTransaction } from '../protocol.ts'
import {
  addressOf,
  CANCEL,
  callOf,
  codeOfId,
  hashOf,
  idOf,
  laneOfId,
  nonceOfId,
  purposeOf,
  revertedPurposeOf,
  transactionId,
} from './codes.ts'
import { type Config, isFor, type Rules } from './config.ts'
import { createLogPlaces, type LogPlaces } from './log-places.ts'
import { createLogRecords, type LogRecords } from './log-records.ts'
import { remembered } from './remembered.ts'

/**
 * The log's objects by number. The product's functions work on records and maps of places; states of the explorer hold their numbers, and what a
 * function says of one is computed once.
 */
export type Log = ReturnType<typeof createLog>

export type Testified = 'none' | 'unknown-submission' | 'done-elsewhere' | number
export type Next = { readonly is: 'free' | 'unaccounted' | 'not-final' | 'hole'; readonly nonce: number }

/** Records as they are written: with a place, another version, what came of them. */
function createWriting(config: Config, rules: Rules, { recordOf, attempt, withStatus }: LogRecords, { lanesOf }: LogPlaces) {
  const byHash = !isFor(config, 'content')
  const named = remembered<number>()
  const attempted = remembered<number>()
  const concluded = remembered<{ readonly is: Conclusion['is']; readonly record: number; readonly isLanded: boolean }>()
  return {
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
  }
}

/** 15 bits. */
const countsKey = ({ final, latest, pending, finalEverywhere }: Counts): number =>
  (((final * 8 + latest) * 8 + pending) * 8 + (finalEverywhere ?? 7)) * 8

/** What the rules say of a record, of the places of a lane, or of both. */
function createJudging(config: Config, rules: Rules, { recordOf, withStatus }: LogRecords, { lanesOf }: LogPlaces) {
  const nexts = remembered<Next>()
  const holes = remembered<readonly number[]>()
  const forgotten = remembered<number>()
  const uses = remembered<'named' | 'free' | 'filler'>()
  const prunes = remembered<boolean>()
  const testified = remembered<Testified>()
  const limited = remembered<boolean>()
  return {
    /** Whether a record says what became of a place that was taken for it. */
    accountsFor: (places: number, nonce: number, number: number): boolean => {
      const { record, isSettled, place } = recordOf(number)
      const taken = lanesOf(places).places.get(nonce)
      return isSettled || place === nonce || taken === undefined || rules.forgottenPlaces(record, [taken], undefined).length === 0
    },
    /** Whether there is room for one more beside what counts of a record. `isClaimed`: a place was taken for it of which it says nothing. */
    isOverLimit: (number: number, isClaimed: boolean): boolean =>
      limited(number * 2 + (isClaimed ? 1 : 0), () => {
        const spec = { purpose: 'Exit', owner: { namespace: 'n' } } as StakingTransactionSpec
        const uses = rules.usesOf({ spec, status: recordOf(number).record.status }, isClaimed)
        const limit = { window: '365d', windowMs: 1, per: 'Signer', maxCount: config.limit, maxTotal: undefined } as const
        return rules.overLimit([limit], uses, { amount: 0n, namespace: 'n' }, { clockMs: 0, blockMs: undefined }) !== undefined
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
  }
}

export function createLog(config: Config, rules: Rules) {
  const records = createLogRecords(config, rules)
  const places = createLogPlaces(config, records.recordOf)
  const { recordOf, create, handOver } = records
  const { lanesOf, withPlaceFor, withLegacyFiller, withoutPlace, useKey, purposeAt } = places
  return {
    record: recordOf,
    places: lanesOf,
    create,
    handOver,
    withPlaceFor,
    withLegacyFiller,
    withoutPlace,
    useKey,
    purposeAt,
    ...createWriting(config, rules, records, places),
    ...createJudging(config, rules, records, places),
    sizes: () => ({ records: records.size(), places: places.size() }),
  }
}
