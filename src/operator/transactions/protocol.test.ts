import { describe, expect, test } from 'vitest'
import { type StakingTransactionStatus, stakingTransaction, type TransactionAttempt } from '../../resources/staking-transaction.ts'
import {
  backsOffUntil,
  type Counts,
  conclude,
  forgottenPlaces,
  type Hindrance,
  hasRoomForPlace,
  highestPlace,
  holesOf,
  isCancelling,
  isFilled,
  isMissing,
  isOpen,
  type KeyUse,
  type Landing,
  MAX_CALLS,
  MAX_CANCELS,
  MAX_HOLES,
  MAX_REMAKES,
  MAX_VERSIONS,
  mayAttempt,
  mayBeHandedOver,
  mayBePruned,
  mayGoOn,
  mayTakePlace,
  nextPlaces,
  openAttempts,
  PATIENCE_MS,
  type Place,
  recordMayBePruned,
  strayPlace,
  type TransactionRecord,
  takenBack,
  testimony,
  useOf,
  type WitnessedTransaction,
  wish,
  withAttempt,
  withPlace,
} from './protocol.ts'

const AT = '2026-11-28T12:00:00Z'
const UID = 'u1'
const attempt = (nonce: number, hash: string, over: Partial<TransactionAttempt> = {}): TransactionAttempt => ({
  hash,
  kind: 'Call',
  nonce,
  generation: 1,
  at: AT,
  ...over,
})
const record = (status: StakingTransactionStatus = {}, over: Partial<TransactionRecord> = {}): TransactionRecord => ({
  uid: UID,
  generation: 1,
  status,
  ...over,
})
const closed = (nonce: number, by: 'Cancel' | 'Revert' | 'Foreign' = 'Cancel', generation = 1) => ({
  nonce,
  by,
  generation,
  hash: `0xclosed${nonce}`,
  blockNumber: 9,
  blockHash: '0xb',
})
const landed = { is: 'Landed', nonce: 3, hash: '0xa', blockNumber: 9, blockHash: '0xb' } as const
const placeFor = (nonce: number, uid = UID, generation = 1): Place => ({ nonce, transaction: { uid, generation } })
const filler = (nonce: number): Place => ({ nonce, transaction: undefined })
const placesOf = (...numbers: readonly number[]): ReadonlyMap<number, Place> => new Map(numbers.map((nonce) => [nonce, filler(nonce)]))
const counts = (final: number, latest = final, pending = latest, finalEverywhere: number | undefined = final): Counts => ({
  final,
  latest,
  pending,
  finalEverywhere,
})
const alone: KeyUse = { acknowledged: undefined, shared: false }
const shared: KeyUse = { acknowledged: undefined, shared: true }
const acknowledged = (below: number): KeyUse => ({ acknowledged: below, shared: false })

describe('nextPlaces', () => {
  test.each([
    { that: 'an empty lane of an unused key begins at 0', places: [], shown: counts(0), use: alone, gives: { is: 'free', nonces: [0] } },
    {
      that: 'an empty lane of a used key needs a person',
      places: [],
      shown: counts(5),
      use: alone,
      gives: { is: 'unaccounted', from: 0, count: 5 },
    },
    {
      that: 'what a person acknowledged is stepped over once final',
      places: [],
      shown: counts(5),
      use: acknowledged(5),
      gives: { is: 'free', nonces: [5] },
    },
    {
      that: 'what a person acknowledged is waited for until it is final',
      places: [],
      shown: counts(3, 4, 5),
      use: acknowledged(5),
      gives: { is: 'not-final', from: 3, count: 5 },
    },
    {
      that: 'one more than was acknowledged needs a person again',
      places: [],
      shown: counts(6),
      use: acknowledged(5),
      gives: { is: 'unaccounted', from: 5, count: 6 },
    },
    { that: 'places in flight are stepped over', places: [5, 6], shown: counts(5, 5, 7), use: alone, gives: { is: 'free', nonces: [7] } },
    {
      that: 'places that no pool shows are stepped over as well',
      places: [5, 6],
      shown: counts(5),
      use: alone,
      gives: { is: 'free', nonces: [7] },
    },
    {
      that: 'a pool that shows one more than the lane gave out needs a person',
      places: [5, 6],
      shown: counts(5, 5, 8),
      use: alone,
      gives: { is: 'unaccounted', from: 7, count: 8 },
    },
    {
      that: 'with a shared key a pool that shows more is waited for',
      places: [5, 6],
      shown: counts(5, 5, 8),
      use: shared,
      gives: { is: 'not-final', from: 7, count: 8 },
    },
    {
      that: 'with a shared key what others made final is stepped over',
      places: [5],
      shown: counts(8),
      use: shared,
      gives: { is: 'free', nonces: [8] },
    },
    {
      that: "one node's final count does not make what others sent final",
      places: [5],
      shown: counts(8, 8, 8, 6),
      use: shared,
      gives: { is: 'not-final', from: 6, count: 8 },
    },
    {
      that: 'nor does it while a node is silent',
      places: [5],
      shown: { ...counts(8), finalEverywhere: undefined },
      use: shared,
      gives: { is: 'not-final', from: 6, count: 8 },
    },
    {
      that: 'a silent node holds up no lane that accounts for all that is shown',
      places: [5, 6, 7],
      shown: { ...counts(6, 7, 8), finalEverywhere: undefined },
      use: alone,
      gives: { is: 'free', nonces: [8] },
    },
    { that: 'a number below the highest place comes first', places: [5, 7], shown: counts(5), use: alone, gives: { is: 'hole', nonce: 6 } },
    {
      that: 'a number below the highest place that is final is none',
      places: [5, 7],
      shown: counts(7),
      use: alone,
      gives: { is: 'free', nonces: [8] },
    },
  ])('$that', ({ places, shown, use, gives }) => {
    expect(nextPlaces(placesOf(...places), shown, use, 1)).toEqual(gives)
  })

  test('as many are given as are wanted, in a row', () => {
    expect(nextPlaces(placesOf(4), counts(4), alone, 3)).toEqual({ is: 'free', nonces: [5, 6, 7] })
  })
})

describe('holesOf', () => {
  test.each([
    { that: 'an empty lane has none', places: [], shown: counts(5), holes: [] },
    { that: 'places in a row have none', places: [5, 6, 7], shown: counts(5), holes: [] },
    { that: 'what is missing below the highest is one', places: [5, 8], shown: counts(5), holes: [6, 7] },
    { that: 'what is missing at the final count is one', places: [7], shown: counts(6), holes: [6] },
    { that: 'what is used already is none', places: [5, 8], shown: counts(5, 7), holes: [7] },
    { that: 'what a pool shows is none', places: [5, 8], shown: counts(5, 6, 8), holes: [] },
    { that: 'nothing above the highest place is one', places: [5], shown: counts(7), holes: [] },
    { that: 'more than a lane can lack are none', places: [5, 5 + MAX_HOLES + 2], shown: counts(5), holes: [] },
    { that: 'the highest number that there is takes no time', places: [5, Number.MAX_SAFE_INTEGER], shown: counts(5), holes: [] },
  ])('$that', ({ places, shown, holes }) => {
    expect(holesOf(placesOf(...places), shown)).toEqual(holes)
  })
})

test('a place is stray beyond more numbers than a lane can lack, however many places there are', () => {
  expect(strayPlace(placesOf(), counts(5))).toBeUndefined()
  expect(strayPlace(placesOf(5, 5 + MAX_HOLES + 1), counts(5))).toBeUndefined()
  expect(strayPlace(placesOf(5, 5 + MAX_HOLES + 2), counts(5))).toBe(5 + MAX_HOLES + 2)
  const many = placesOf(...Array.from({ length: 3 * MAX_HOLES }, (_, nonce) => nonce))
  expect(strayPlace(many, counts(0))).toBeUndefined()
  expect(highestPlace(new Map(Array.from({ length: 300_000 }, (_, nonce) => [nonce, filler(nonce)])))).toBe(299_999)
})

describe('useOf', () => {
  test.each([
    { that: 'a place made as a filler is one', place: filler(3), of: record(), use: 'filler' },
    { that: 'a place whose transaction is gone is a filler', place: placeFor(3), of: undefined, use: 'filler' },
    { that: 'a place of an earlier transaction of that name is a filler', place: placeFor(3, 'u0'), of: record(), use: 'filler' },
    { that: 'a place that its transaction names is named', place: placeFor(3), of: record({ place: 3 }), use: 'named' },
    { that: 'a place stays named when it has settled', place: placeFor(3), of: record({ place: 3, outcome: landed }), use: 'named' },
    { that: 'a place whose transaction has none yet is free', place: placeFor(3), of: record(), use: 'free' },
    { that: 'a place beside the one that its transaction names is a filler', place: placeFor(4), of: record({ place: 3 }), use: 'filler' },
    { that: 'a place beside a settled one is a filler', place: placeFor(4), of: record({ place: 3, outcome: landed }), use: 'filler' },
    {
      that: 'a place that was closed is a filler, though its transaction has none now',
      place: placeFor(3),
      of: record({ attempts: [attempt(3, '0xa')], closed: [closed(3)] }),
      use: 'filler',
    },
    { that: 'a place of before the hand-over is a filler', place: placeFor(3), of: record({}, { generation: 2 }), use: 'filler' },
    {
      that: 'a number that was closed in the lane of before the hand-over is free in this one',
      place: placeFor(3, UID, 2),
      of: record({ attempts: [attempt(3, '0xa')], closed: [closed(3)] }, { generation: 2 }),
      use: 'free',
    },
  ])('$that', ({ place, of, use }) => {
    expect(useOf(place, of)).toBe(use)
  })
})

describe('mayGoOn', () => {
  test.each([
    { that: 'a record goes on with its free place', place: placeFor(3), of: record(), shown: counts(2, 3), may: true },
    { that: 'not where a pool shows something under it', place: placeFor(3), of: record(), shown: counts(2, 3, 4), may: false },
    { that: 'not where the nonce is used', place: placeFor(3), of: record(), shown: counts(3, 4), may: false },
    { that: 'not with a filler', place: placeFor(3, 'u0'), of: record(), shown: counts(3), may: false },
    { that: 'not with what it names already', place: placeFor(3), of: record({ place: 3 }), shown: counts(3), may: false },
  ])('$that', ({ place, of, shown, may }) => {
    expect(mayGoOn(place, of, shown)).toBe(may)
  })
})

describe('forgottenPlaces', () => {
  const afterCancel = record({ attempts: [attempt(3, '0xa')], closed: [closed(3)] })
  test.each([
    {
      that: 'a place that was taken for it and not named may hold what the log forgot',
      places: [placeFor(3)],
      of: record(),
      final: 3,
      forgotten: [3],
    },
    { that: 'so may one of before the hand-over', places: [placeFor(3)], of: record({}, { generation: 2 }), final: 2, forgotten: [3] },
    { that: 'history shows what every node counts beyond', places: [placeFor(3)], of: record(), final: 4, forgotten: [] },
    { that: 'while a node is silent nothing is known', places: [placeFor(3)], of: record(), final: undefined, forgotten: [3] },
    { that: 'a closed place is accounted for', places: [placeFor(3)], of: afterCancel, final: 3, forgotten: [] },
    {
      that: 'a closed place accounts for its number in its own lane only',
      places: [placeFor(3, UID, 2)],
      of: { ...afterCancel, generation: 2 },
      final: 3,
      forgotten: [3],
    },
    { that: "others' places and fillers are not its own", places: [placeFor(3, 'u0'), filler(4)], of: record(), final: 0, forgotten: [] },
  ])('$that', ({ places, of, final, forgotten }) => {
    expect(forgottenPlaces(of, places, final)).toEqual(forgotten)
  })
})

describe('isMissing', () => {
  test.each([
    { that: 'a record without a place misses none', of: record(), places: [], missing: false },
    { that: 'a place that is there is not missing', of: record({ place: 3 }), places: [3], missing: false },
    { that: 'the place of an open record is made again', of: record({ place: 3 }), places: [5], missing: true },
    { that: 'the place of a settled record was pruned', of: record({ place: 3, outcome: landed }), places: [5], missing: false },
    {
      that: 'the highest place is never pruned, so that of a settled record is made again',
      of: record({ place: 3, outcome: landed }),
      places: [2],
      missing: true,
    },
    { that: 'in an empty lane as well', of: record({ place: 3, outcome: landed }), places: [], missing: true },
  ])('$that', ({ of, places, missing }) => {
    expect(isMissing(of, placesOf(...places))).toBe(missing)
  })
})

describe('openAttempts, isOpen and isCancelling', () => {
  const cancelled = [attempt(3, '0xa'), attempt(3, '0xc', { kind: 'Cancel' })]
  test.each([
    { that: 'a record without a place has none', of: record({ attempts: cancelled }), open: [], cancelling: false, isOpenNow: false },
    {
      that: 'those under the nonce in use are open',
      of: record({ place: 3, attempts: cancelled }),
      open: ['0xa', '0xc'],
      cancelling: true,
      isOpenNow: true,
    },
    {
      that: 'those under an earlier nonce are not',
      of: record({ place: 4, attempts: [...cancelled, attempt(4, '0xd')] }),
      open: ['0xd'],
      cancelling: false,
      isOpenNow: true,
    },
    {
      that: 'those under the same number of another lane are not',
      of: record({ place: 3, attempts: [...cancelled, attempt(3, '0xd', { generation: 2 })] }, { generation: 2 }),
      open: ['0xd'],
      cancelling: false,
      isOpenNow: true,
    },
    {
      that: 'what has an outcome is not open',
      of: record({ place: 3, attempts: [attempt(3, '0xa')], outcome: landed }),
      open: ['0xa'],
      cancelling: false,
      isOpenNow: false,
    },
  ])('$that', ({ of, open, cancelling, isOpenNow }) => {
    expect(openAttempts(of).map(({ hash }) => hash)).toEqual(open)
    expect(isCancelling(of)).toBe(cancelling)
    expect(isOpen(of)).toBe(isOpenNow)
  })
})

test('a place is taken only where all of its versions have room in the record, and a few that the chain alone may show', () => {
  const holding = (count: number) => record({ attempts: Array.from({ length: count }, (_, nonce) => attempt(nonce, `0x${nonce}`)) })
  const most = stakingTransaction.status.shape.attempts.unwrap()
  const isWritable = (count: number) => most.safeParse(holding(count).status.attempts).success
  const last = Array.from({ length: 200 }, (_, count) => count).findLast((count) => hasRoomForPlace(holding(count))) ?? 0
  // What a person may allow at most: 25 places of two versions each, twice over.
  expect(last).toBeGreaterThan(90)
  expect(isWritable(last + MAX_VERSIONS + 16)).toBe(true)
  expect(hasRoomForPlace(holding(last + 1))).toBe(false)
})

describe('mayTakePlace', () => {
  const remade = (times: number, by: 'Cancel' | 'Revert' | 'Foreign' = 'Foreign') =>
    record({
      attempts: Array.from({ length: times }, (_, nonce) => attempt(nonce, `0x${nonce}`)),
      closed: Array.from({ length: times }, (_, nonce) => closed(nonce, by)),
    })
  test.each([
    { that: 'a new record may', of: record(), allowed: 0, may: 'yes' },
    { that: 'one with a place has one', of: record({ place: 3, attempts: [attempt(3, '0xa')] }), allowed: 0, may: 'has-place' },
    { that: 'one with an outcome is settled', of: record({ place: 3, outcome: landed }), allowed: 0, may: 'settled' },
    { that: 'one whose place is closed may', of: remade(1), allowed: 0, may: 'yes' },
    { that: 'one may be made again twice', of: remade(MAX_REMAKES), allowed: 0, may: 'yes' },
    { that: 'and not a third time', of: remade(MAX_REMAKES + 1), allowed: 0, may: 'too-many-remakes' },
    { that: 'unless a person allows it', of: remade(MAX_REMAKES + 1), allowed: 1, may: 'yes' },
    { that: 'once for each that a person allows', of: remade(MAX_REMAKES + 2), allowed: 1, may: 'too-many-remakes' },
    { that: 'a revert counts like a foreign use', of: remade(MAX_REMAKES + 1, 'Revert'), allowed: 0, may: 'too-many-remakes' },
    { that: 'an own cancel is no remake', of: remade(MAX_REMAKES + 1, 'Cancel'), allowed: 0, may: 'yes' },
    { that: 'but there is an end to them', of: remade(MAX_CANCELS + 1, 'Cancel'), allowed: 0, may: 'too-many-remakes' },
    {
      that: 'one with an attempt that no closed place accounts for has a place, whatever its status says',
      of: record({ attempts: [attempt(3, '0xa')] }),
      allowed: 9,
      may: 'has-place',
    },
    {
      that: 'a number closed in another lane accounts for none of this one',
      of: record({ attempts: [attempt(3, '0xa'), attempt(3, '0xb', { generation: 2 })], closed: [closed(3)] }, { generation: 2 }),
      allowed: 9,
      may: 'has-place',
    },
  ])('$that', ({ of, allowed, may }) => {
    expect(mayTakePlace(of, allowed)).toBe(may)
  })
})

describe('mayBeHandedOver', () => {
  test.each([
    { that: 'a record of which nothing was signed may', of: record(), may: true },
    {
      that: 'one whose every place is closed may, however many',
      of: record({ attempts: [0, 1, 2, 3].map((n) => attempt(n, `0x${n}`)), closed: [0, 1, 2, 3].map((n) => closed(n)) }),
      may: true,
    },
    { that: 'one of which something may land may not', of: record({ place: 3, attempts: [attempt(3, '0xa')] }), may: false },
    { that: 'one that has landed may not', of: record({ place: 3, outcome: landed }), may: false },
  ])('$that', ({ of, may }) => {
    expect(mayBeHandedOver(of)).toBe(may)
  })
})

describe('withPlace and withAttempt', () => {
  test('a place is named with its first version, of this generation, after all earlier ones', () => {
    const before = record({ state: 'Waiting', attempts: [attempt(3, '0xa')], closed: [closed(3)] }, { generation: 2 })
    expect(withPlace(before, 4, { hash: '0xd', kind: 'Call', nonce: 4, at: AT })).toEqual({
      state: 'Open',
      place: 4,
      attempts: [attempt(3, '0xa'), attempt(4, '0xd', { generation: 2 })],
      closed: [closed(3)],
    })
  })
  test('a further version is added, and none forgotten', () => {
    const before = record({ place: 3, attempts: [attempt(3, '0xa')] })
    expect(withAttempt(before, { hash: '0xc', kind: 'Cancel', nonce: 3, at: AT })).toEqual({
      state: 'Open',
      place: 3,
      attempts: [attempt(3, '0xa'), attempt(3, '0xc', { kind: 'Cancel' })],
    })
    expect(before.status.attempts).toHaveLength(1)
  })
})

describe('mayAttempt', () => {
  const versions = (calls: number, cancels = 0, earlier = 0) =>
    record({
      place: 3,
      attempts: [
        ...Array.from({ length: earlier }, (_, index) => attempt(2, `0xe${index}`)),
        ...Array.from({ length: calls }, (_, index) => attempt(3, `0xa${index}`)),
        ...Array.from({ length: cancels }, (_, index) => attempt(3, `0xc${index}`, { kind: 'Cancel' })),
      ],
    })
  test.each([
    { that: 'a call may be bumped', of: versions(1), kind: 'Call', may: 'yes' },
    { that: 'its last four versions are the cancel’s', of: versions(MAX_CALLS), kind: 'Call', may: 'only-cancel' },
    { that: 'a cancel takes the thirteenth', of: versions(MAX_CALLS), kind: 'Cancel', may: 'yes' },
    { that: 'versions under an earlier nonce do not count', of: versions(MAX_CALLS - 1, 0, MAX_VERSIONS), kind: 'Call', may: 'yes' },
    { that: 'after the cancel no call follows', of: versions(1, 1), kind: 'Call', may: 'cancelling' },
    { that: 'a cancel may be bumped', of: versions(1, 1), kind: 'Cancel', may: 'yes' },
    { that: 'sixteen versions are all', of: versions(MAX_CALLS, 4), kind: 'Cancel', may: 'none-left' },
  ] as const)('$that', ({ of, kind, may }) => {
    expect(mayAttempt(of, kind)).toBe(may)
  })
})

describe('conclude', () => {
  const open = record({ state: 'Open', place: 3, attempts: [attempt(3, '0xa')] })
  const where = { hash: '0xa', blockNumber: 9, blockHash: '0xb' }
  const landing = (over: Partial<Landing> = {}): Landing => ({
    ...where,
    nonce: 3,
    is: 'call',
    success: true,
    did: 'it',
    proven: false,
    foundAt: AT,
    ...over,
  })
  const foreign = { hash: '0xf', is: 'foreign', did: 'nothing' } as const
  const cancel = { hash: '0xc', is: 'cancel', did: 'nothing' } as const
  const reverted = { success: false, did: 'nothing' } as const

  test('what did what it is for has landed, by one view that nobody contradicts', () => {
    expect(conclude(open, landing(), true)).toEqual({
      is: 'outcome',
      outcome: 'Landed',
      status: { state: 'Landed', place: 3, attempts: [attempt(3, '0xa')], outcome: { is: 'Landed', nonce: 3, ...where } },
    })
  })
  test('the same call by a hash that the log does not know has landed, and is written down as found', () => {
    const concluded = conclude(open, landing({ hash: '0xother' }), true)
    expect(concluded).toMatchObject({ is: 'outcome', outcome: 'Landed', status: { outcome: { hash: '0xother' } } })
    expect(concluded.is === 'outcome' && concluded.status.attempts).toEqual([attempt(3, '0xa'), attempt(3, '0xother', { found: true })])
  })
  test('a hash in other letters is the same hash', () => {
    const concluded = conclude(open, landing({ hash: '0xA' }), true)
    expect(concluded.is === 'outcome' && concluded.status.attempts).toHaveLength(1)
  })
  test.each([
    {
      that: 'second to somebody else is paid and front-run',
      land: { did: 'second' },
      remake: true,
      gives: { is: 'outcome', outcome: 'FrontRun' },
    },
    {
      that: "another's transaction closes the place",
      land: { ...foreign, proven: true },
      remake: false,
      gives: { is: 'closed', by: 'Foreign' },
    },
    { that: "another's transaction closes nothing before all nodes have it", land: foreign, remake: false, gives: { is: 'unproven' } },
    { that: 'a cancel closes the place', land: { ...cancel, proven: true }, remake: false, gives: { is: 'closed', by: 'Cancel' } },
    { that: 'a cancel closes nothing before all nodes have it', land: cancel, remake: false, gives: { is: 'unproven' } },
    {
      that: 'a revert closes the place of what may be made again',
      land: { ...reverted, proven: true },
      remake: true,
      gives: { is: 'closed', by: 'Revert' },
    },
    {
      that: 'a revert settles what may not',
      land: { ...reverted, proven: true },
      remake: false,
      gives: { is: 'outcome', outcome: 'Reverted' },
    },
    { that: 'a revert is nothing before all nodes have it', land: reverted, remake: false, gives: { is: 'unproven' } },
    { that: 'nor where it may be made again', land: reverted, remake: true, gives: { is: 'unproven' } },
    {
      that: 'a call that succeeds and does nothing counts as reverted',
      land: { did: 'nothing', proven: true },
      remake: true,
      gives: { is: 'closed', by: 'Revert' },
    },
  ] as const)('$that', ({ land, remake, gives }) => {
    expect(conclude(open, landing(land), remake)).toMatchObject(gives)
  })
  test('a closed place says what closed it, and the record may take another', () => {
    const concluded = conclude(open, landing({ ...foreign, proven: true }), false)
    expect(concluded.is === 'closed' && concluded.status).toEqual({
      state: 'Waiting',
      attempts: [attempt(3, '0xa')],
      closed: [{ nonce: 3, generation: 1, by: 'Foreign', hash: '0xf', blockNumber: 9, blockHash: '0xb' }],
    })
    expect(mayTakePlace(record(concluded.is === 'closed' ? concluded.status : {}), 0)).toBe('yes')
  })

  const settled = record({ state: 'Landed', place: 3, attempts: [attempt(3, '0xa')], outcome: landed })
  test('an outcome that is seen again stays as it is, the same object', () => {
    const concluded = conclude(settled, landing(), true)
    expect(concluded.is === 'outcome' && concluded.status).toBe(settled.status)
  })
  test('an outcome in another block is written anew', () => {
    expect(conclude(settled, landing({ blockHash: '0xb2' }), true)).toMatchObject({
      status: { outcome: { is: 'Landed', blockHash: '0xb2' } },
    })
  })
  test('an outcome gives way to what every node has as final', () => {
    const concluded = conclude(settled, landing({ ...foreign, proven: true }), true)
    expect(concluded).toMatchObject({ is: 'closed', by: 'Foreign' })
    expect(concluded.is === 'closed' && concluded.status).not.toHaveProperty('outcome')
  })
  test('a receipt that says Reverted in the very same block outranks Landed, once every node says so', () => {
    expect(conclude(settled, landing({ ...reverted, proven: true }), true)).toMatchObject({ is: 'closed', by: 'Revert' })
    expect(conclude(settled, landing({ ...reverted, proven: true }), false)).toMatchObject({ is: 'outcome', outcome: 'Reverted' })
  })
  test('an outcome does not give way to less', () => {
    expect(conclude(settled, landing(foreign), true)).toEqual({ is: 'unproven' })
  })
})

describe('takenBack', () => {
  const settled = record({ state: 'Landed', place: 3, attempts: [attempt(3, '0xa')], outcome: landed })
  test('an outcome that no node has as final is taken back, and the record is open under the same nonce', () => {
    expect(takenBack(settled, counts(3))).toEqual({ state: 'Open', place: 3, attempts: [attempt(3, '0xa')] })
  })
  test.each([
    { that: 'stands while a node has it', of: settled, shown: counts(4, 4, 4, 3) },
    { that: 'stands while a node is silent', of: settled, shown: { ...counts(3), finalEverywhere: undefined } },
    { that: 'is not there in an open record', of: record({ place: 3, attempts: [attempt(3, '0xa')] }), shown: counts(3) },
  ])('an outcome $that', ({ of, shown }) => {
    expect(takenBack(of, shown)).toBeUndefined()
  })
})

describe('testimony', () => {
  const lane = { address: '0xAbC' }
  const ours = (hash: string, over: Partial<WitnessedTransaction> = {}): WitnessedTransaction => ({
    hash,
    from: '0xabc',
    nonce: 3,
    sameCall: true,
    ...over,
  })
  const after = record({ attempts: [attempt(3, '0xa')], closed: [closed(3)] })
  test.each([
    { that: 'nobody knows of anything', told: undefined, done: undefined, gives: { is: 'none' } },
    {
      that: 'history shows the call from this address: it is followed',
      told: undefined,
      done: ours('0x1'),
      gives: { is: 'follow', transaction: ours('0x1') },
    },
    {
      that: 'history shows it from another address',
      told: undefined,
      done: ours('0x1', { from: '0xother' }),
      gives: { is: 'done-elsewhere', hash: '0x1' },
    },
    {
      that: 'history shows another call for it',
      told: undefined,
      done: ours('0x1', { sameCall: false }),
      gives: { is: 'done-elsewhere', hash: '0x1' },
    },
    {
      that: 'a told hash is known to a node: it is followed',
      told: { hash: '0x1', transaction: ours('0x1') },
      done: undefined,
      gives: { is: 'follow', transaction: ours('0x1') },
    },
    {
      that: 'a told hash is known to nobody',
      told: { hash: '0x1', transaction: undefined },
      done: undefined,
      gives: { is: 'unknown-submission', hash: '0x1' },
    },
    {
      that: "a told hash is another sender's",
      told: { hash: '0x1', transaction: ours('0x1', { from: '0xother' }) },
      done: undefined,
      gives: { is: 'done-elsewhere', hash: '0x1' },
    },
    {
      that: 'a told hash is one of those that are closed',
      told: { hash: '0xA', transaction: undefined },
      done: undefined,
      gives: { is: 'none' },
    },
    {
      that: 'a told hash was disregarded by a person',
      told: { hash: '0xD', transaction: undefined },
      done: undefined,
      gives: { is: 'none' },
    },
    {
      that: 'what a person disregarded waits in a pool, and makes the call: it is followed',
      told: { hash: '0xd', transaction: ours('0xd', { pending: true }) },
      done: undefined,
      gives: { is: 'follow', transaction: ours('0xd', { pending: true }) },
    },
    {
      that: 'what a person disregarded is final by the staking API’s word, and no node shows it yet',
      told: { hash: '0xd', transaction: undefined, landed: true },
      done: undefined,
      gives: { is: 'unknown-submission', hash: '0xd' },
    },
    {
      that: 'what a person disregarded waits in a pool, from another address',
      told: { hash: '0xd', transaction: ours('0xd', { from: '0xother', pending: true }) },
      done: undefined,
      gives: { is: 'done-elsewhere', hash: '0xd' },
    },
    {
      that: 'what a person disregarded waits in a pool, and does something else',
      told: { hash: '0xd', transaction: ours('0xd', { sameCall: false, pending: true }) },
      done: undefined,
      gives: { is: 'none' },
    },
    {
      that: 'what a person disregarded is in a block, and did nothing by history: it was reverted',
      told: { hash: '0xd', transaction: ours('0xd', { pending: false }) },
      done: undefined,
      gives: { is: 'none' },
    },
    {
      that: 'a told hash is one of several that were disregarded',
      told: { hash: '0xE', transaction: undefined },
      done: undefined,
      gives: { is: 'none' },
    },
    {
      that: 'history outranks what was told',
      told: { hash: '0xa', transaction: undefined },
      done: ours('0x2'),
      gives: { is: 'follow', transaction: ours('0x2') },
    },
    {
      that: 'what a person disregarded is in history',
      told: { hash: '0xd', transaction: undefined },
      done: ours('0xd'),
      gives: { is: 'follow', transaction: ours('0xd') },
    },
  ])('$that', ({ told, done, gives }) => {
    expect(testimony(after, lane, { told, done }, '0xd, 0xe')).toEqual(gives)
  })
})

describe('wish', () => {
  const call = record({ place: 3, attempts: [attempt(3, '0xa')] })
  const cancelling = record({ place: 3, attempts: [attempt(3, '0xa'), attempt(3, '0xc', { kind: 'Cancel' })] })
  const late = PATIENCE_MS
  const cases: readonly [string, TransactionRecord, Hindrance, boolean, boolean, number, 'send' | 'cancel' | 'hold'][] = [
    ['what nothing hinders is sent', call, 'none', true, true, late, 'send'],
    ['what is being cancelled is cancelled to its end, though nothing hinders it any more', cancelling, 'none', true, false, 0, 'cancel'],
    ['what was never sent gives way at once', call, 'lasting', false, false, 0, 'cancel'],
    ['what was sent is held while nobody waits', call, 'lasting', true, false, late, 'hold'],
    ['what was sent gives way as soon as somebody waits', call, 'lasting', true, true, 0, 'cancel'],
    ['a missing answer is waited for', call, 'passing', false, true, late - 1, 'hold'],
    ['a missing answer is not waited for longer than others have patience', call, 'passing', false, true, late, 'cancel'],
    ['a missing answer is waited for as long as nobody minds', call, 'passing', true, false, late * 100, 'hold'],
  ]
  test.each(cases)('%s', (_that, of, hindrance, maybeSent, somebodyWaits, hinderedMs, what) => {
    expect(wish(of, { hindrance, maybeSent, somebodyWaits, hinderedMs })).toBe(what)
  })
})

describe('isFilled', () => {
  const cases: readonly [string, 'named' | 'free' | 'filler', Hindrance, boolean, number, boolean][] = [
    ['a filler is', 'filler', 'none', false, 0, true],
    ['a place that is named is not, whatever hinders its transaction', 'named', 'lasting', true, PATIENCE_MS, false],
    ['a place that its transaction goes on with is not', 'free', 'none', true, PATIENCE_MS, false],
    ['a place that its transaction may not use is, at once', 'free', 'lasting', false, 0, true],
    ['a place that waits for an answer is not, for a while', 'free', 'passing', true, PATIENCE_MS - 1, false],
    ['nor for longer while nobody waits', 'free', 'passing', false, PATIENCE_MS * 100, false],
    ['but is when others have lost their patience', 'free', 'passing', true, PATIENCE_MS, true],
  ]
  test.each(cases)('%s', (_that, use, hindrance, somebodyWaits, hinderedMs, filled) => {
    expect(isFilled(use, { hindrance, somebodyWaits, hinderedMs })).toBe(filled)
  })
})

describe('backsOffUntil', () => {
  const after = (...by: readonly ('Cancel' | 'Foreign' | 'Revert' | 'Dropped')[]) =>
    backsOffUntil(record({ closed: by.map((one, nonce) => ({ ...closed(nonce), by: one, blockNumber: 100 })) }))
  test.each([
    { that: 'nothing was closed', by: [], block: undefined },
    { that: 'it was cancelled once: that may be a chance', by: ['Cancel'], block: undefined },
    { that: 'twice', by: ['Cancel', 'Cancel'], block: 104 },
    { that: 'a third time', by: ['Cancel', 'Cancel', 'Cancel'], block: 108 },
    { that: 'for long, which has an end', by: Array.from({ length: 20 }, () => 'Cancel' as const), block: 612 },
    { that: 'the last time something else used its nonce', by: ['Cancel', 'Cancel', 'Foreign'], block: undefined },
    { that: 'what was before it was dropped does not count', by: ['Cancel', 'Cancel', 'Dropped', 'Cancel'], block: undefined },
  ] as const)('$that: $block', ({ by, block }) => {
    expect(after(...by)).toBe(block)
  })
})

describe('mayBePruned', () => {
  test.each([
    { that: 'a filler that all nodes count beyond may', place: filler(3), of: undefined, everywhere: 4, may: true },
    { that: 'not while a node does not', place: filler(3), of: undefined, everywhere: 3, may: false },
    { that: 'not while a node is silent', place: filler(3), of: undefined, everywhere: undefined, may: false },
    { that: 'the highest never', place: filler(5), of: undefined, everywhere: 9, may: false },
    { that: 'one that an open record names may not', place: placeFor(3), of: record({ place: 3 }), everywhere: 4, may: false },
    { that: 'one of a settled record may', place: placeFor(3), of: record({ place: 3, outcome: landed }), everywhere: 4, may: true },
    {
      that: 'one that its record does not name any more may',
      place: placeFor(3),
      of: record({ closed: [closed(3)] }),
      everywhere: 4,
      may: true,
    },
  ])('$that', ({ place, of, everywhere, may }) => {
    expect(mayBePruned(place, placesOf(3, 4, 5), of, everywhere)).toBe(may)
  })
})

describe('recordMayBePruned', () => {
  const settled = record({ place: 3, attempts: [attempt(3, '0xa')], outcome: landed })
  test.each([
    { that: 'a settled record that all nodes count beyond may', of: settled, everywhere: 4, may: true },
    { that: 'not while a node does not: its outcome may be taken back', of: settled, everywhere: 3, may: false },
    { that: 'not while a node is silent', of: settled, everywhere: undefined, may: false },
    { that: 'an open one may not', of: record({ place: 3 }), everywhere: 9, may: false },
    { that: 'one whose places are closed may', of: record({ closed: [closed(3)] }), everywhere: undefined, may: true },
    { that: 'one that never had a place may', of: record({}), everywhere: undefined, may: true },
    {
      that: 'one with an attempt under a nonce that is not closed may not',
      of: record({ attempts: [attempt(4, '0xb')], closed: [closed(3)] }),
      everywhere: 9,
      may: false,
    },
  ])('$that', ({ of, everywhere, may }) => {
    expect(recordMayBePruned(of, everywhere)).toBe(may)
  })
})
