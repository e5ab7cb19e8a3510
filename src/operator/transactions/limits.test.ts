import { describe, expect, test } from 'vitest'
import type { StakingTransactionSpec, StakingTransactionStatus, TransactionPurpose } from '../../resources/staking-transaction.ts'
import {
  amountOf,
  countedUntilMs,
  inTurn,
  type Limit,
  limitsOf,
  overLimit,
  presentOf,
  sinceMs,
  type Use,
  usedOf,
  usesOf,
} from './limits.ts'

/** What counts for a limit, and whether one more fits. */

const HOUR = 3_600_000
const at = (hours: number) => new Date(hours * HOUR).toISOString()
const spec = (change: Partial<StakingTransactionSpec> = {}) =>
  ({
    purpose: 'Exit',
    chainId: 1,
    from: '0x0',
    amount: '',
    owner: { namespace: 'team-a' },
    generation: 0,
    ...change,
  }) as StakingTransactionSpec
const record = (status: StakingTransactionStatus, change: Partial<StakingTransactionSpec> = {}) => ({ spec: spec(change), status })
const call = (nonce: number, hours: number, more: object = {}) =>
  ({ hash: `0x${nonce}${hours}`, kind: 'Call', nonce, generation: 0, at: at(hours), ...more }) as const

describe('of a record', () => {
  test.each<{ what: string; status: StakingTransactionStatus; isClaimed?: boolean; expected: readonly object[] }>([
    { what: 'nothing was signed', status: {}, expected: [] },
    { what: 'a place was taken, and nothing is signed', status: {}, isClaimed: true, expected: [{ isOpen: true }] },
    {
      what: 'several versions are open: once, from the first',
      status: { place: 3, attempts: [call(3, 1), call(3, 2, { hash: '0xb' }), call(3, 3, { kind: 'Cancel', hash: '0xc' })] },
      expected: [{ atMs: HOUR, isOpen: true }],
    },
    {
      what: 'its cancel is final: nothing',
      status: { attempts: [call(3, 1)], closed: [{ nonce: 3, generation: 0, by: 'Cancel', hash: '0xc', blockNumber: 1 }] },
      expected: [],
    },
    {
      what: 'it was made again after that: once, from then on',
      status: {
        place: 5,
        attempts: [call(3, 1), call(5, 9)],
        closed: [{ nonce: 3, generation: 0, by: 'Cancel', hash: '0xc', blockNumber: 1 }],
      },
      expected: [{ atMs: 9 * HOUR, isOpen: true }],
    },
    {
      what: 'a raised version of it landed: from the first',
      status: {
        place: 3,
        attempts: [call(3, 1), call(3, 2, { hash: '0xb' })],
        outcome: { is: 'Landed', nonce: 3, hash: '0xB', blockNumber: 9 },
      },
      expected: [{ atMs: HOUR, isOpen: false }],
    },
    {
      what: 'it was reverted for good: nothing was moved',
      status: { place: 3, attempts: [call(3, 1)], outcome: { is: 'Reverted', nonce: 3, hash: '0x31', blockNumber: 9 } },
      expected: [],
    },
    {
      what: 'it was paid, second to somebody else',
      status: { place: 3, attempts: [call(3, 1)], outcome: { is: 'FrontRun', nonce: 3, hash: '0x31', blockNumber: 9 } },
      expected: [{ atMs: HOUR, isOpen: false }],
    },
    {
      what: 'its landing was dropped, and it was asked for once more: twice',
      status: {
        place: 7,
        attempts: [call(3, 1, { namespace: 'team-b' }), call(7, 4, { generation: 1 })],
        closed: [{ nonce: 3, generation: 0, by: 'Dropped', hash: '0x31', blockNumber: 1 }],
      },
      expected: [
        { atMs: HOUR, isOpen: false, namespace: 'team-b' },
        { atMs: 4 * HOUR, isOpen: true, namespace: 'team-a' },
      ],
    },
    {
      what: 'its time cannot be read: it counts as what may land',
      status: { place: 3, attempts: [call(3, 1, { at: 'never' })] },
      expected: [{ isOpen: true }],
    },
    {
      what: 'it was done, and nobody here has signed for it',
      status: { outcome: { is: 'Landed', hash: '', blockNumber: 1 } },
      expected: [],
    },
    {
      what: 'an attempt on Solana has expired, and another may land',
      status: {
        attempts: [
          { hash: 'a', kind: 'Call', at: at(1) },
          { hash: 'b', kind: 'Call', at: at(2) },
        ],
        closed: [{ nonce: 0, by: 'Expired', hash: 'a', blockNumber: 1 }],
      },
      expected: [{ atMs: 2 * HOUR, isOpen: true }],
    },
  ])('$what', ({ status, isClaimed = false, expected }) => {
    expect(usesOf(record(status), isClaimed)).toMatchObject(expected)
    expect(usesOf(record(status), isClaimed)).toHaveLength(expected.length)
  })

  test('what was signed counts for the namespace that it was signed for, whoever has it now', () => {
    const passed = record({ place: 3, attempts: [call(3, 1, { namespace: 'team-b' })] }, { generation: 1 })
    expect(usesOf(passed, false)).toMatchObject([{ namespace: 'team-b' }])
  })

  const key = '11'.repeat(48)
  test.each<[TransactionPurpose, Partial<StakingTransactionSpec>, bigint | undefined]>([
    ['Deposit', { call: { to: '0x0', data: '0x', valueWei: '32000000000000000000' } }, 32_000_000_000n],
    ['Exit', { call: { to: '0x0', data: `0x${key}${'0'.repeat(16)}` } }, 32_000_000_000n],
    ['Withdrawal', { call: { to: '0x0', data: `0x${key}000000003b9aca00` } }, 1_000_000_000n],
    ['Withdrawal', { call: { to: '0x0', data: '0x12' } }, 1n << 64n],
    ['SolanaStake', { amount: '5.5 SOL' }, 5_500_000_000n],
    ['SolanaStake', { amount: 'some' }, 1n << 64n],
    ['SolanaDeactivation', { amount: '5.5 SOL' }, undefined],
    ['SolanaWithdrawal', { amount: '5.5 SOL' }, undefined],
  ])('%s %# moves so much', (purpose, change, expected) => {
    expect(amountOf({ spec: spec({ purpose, ...change }) })).toBe(expected)
  })
})

const limit = (change: Partial<Limit> = {}): Limit => ({
  window: '24h',
  windowMs: 24 * HOUR,
  per: 'Signer',
  maxCount: undefined,
  maxTotal: undefined,
  ...change,
})
const use = (hours: number, change: Partial<Use> = {}): Use => ({
  atMs: hours * HOUR,
  isOpen: false,
  amount: 32n,
  namespace: 'team-a',
  ...change,
})
/** A chain without blocks. */
const present = (hours: number) => ({ clockMs: hours * HOUR, blockMs: undefined })
const asked = { amount: 32n, namespace: 'team-a' }

describe('one more', () => {
  test.each<{ what: string; limits: readonly Limit[]; uses: readonly Use[]; now: number; expected: object | undefined }>([
    { what: 'fits up to the very limit', limits: [limit({ maxCount: 2 })], uses: [use(1)], now: 2, expected: undefined },
    {
      what: 'waits for the oldest to end',
      limits: [limit({ maxCount: 2 })],
      uses: [use(3), use(1)],
      now: 4,
      expected: { freesAtMs: 25 * HOUR, isAlone: false },
    },
    { what: 'goes at that very moment', limits: [limit({ maxCount: 2 })], uses: [use(3), use(1)], now: 25, expected: undefined },
    {
      what: 'waits until enough of a total has ended',
      limits: [limit({ maxTotal: 100n })],
      uses: [use(1, { amount: 40n }), use(2, { amount: 60n })],
      now: 3,
      expected: { freesAtMs: 25 * HOUR },
    },
    {
      what: 'waits for what may land, however old it is',
      limits: [limit({ maxCount: 1 })],
      uses: [use(1, { isOpen: true })],
      now: 100,
      expected: { freesAtMs: undefined, isAlone: false },
    },
    {
      what: 'counts what a clock that ran ahead has written down',
      limits: [limit({ maxCount: 1 })],
      uses: [use(50)],
      now: 3,
      expected: { freesAtMs: 74 * HOUR },
    },
    {
      what: 'is more than the limit by itself',
      limits: [limit({ maxTotal: 31n })],
      uses: [],
      now: 1,
      expected: { freesAtMs: undefined, isAlone: true },
    },
    {
      what: 'of another namespace is none of its own',
      limits: [limit({ maxCount: 1, per: 'Namespace' })],
      uses: [use(1, { namespace: 'team-b' })],
      now: 2,
      expected: undefined,
    },
    {
      what: 'waits for the limit that lets it go last',
      limits: [limit({ maxCount: 1 }), limit({ maxCount: 1, window: '2d', windowMs: 48 * HOUR })],
      uses: [use(1)],
      now: 2,
      expected: { limit: { window: '2d' }, freesAtMs: 49 * HOUR },
    },
  ])('$what', ({ limits, uses, now, expected }) => {
    const found = overLimit(limits, uses, asked, present(now))
    if (expected === undefined) expect(found).toBeUndefined()
    else expect(found).toMatchObject(expected)
  })

  test.each([
    { what: 'the clock ran ahead', clock: 60, block: 3, counts: true },
    { what: 'the blocks ran ahead', clock: 3, block: 60, counts: true },
    { what: 'both have passed', clock: 26, block: 26, counts: false },
    { what: 'the chain tells no time', clock: 26, block: 0, counts: false },
  ])('goes when both clocks say so: $what', ({ clock, block, counts }) => {
    const now = presentOf(clock * HOUR, block * 3_600)
    const found = overLimit([limit({ maxCount: 1 })], [use(1, { blockMs: HOUR })], asked, now)
    expect(found !== undefined).toBe(counts)
  })
  test('goes by what each clock said then: a chain whose time is far behind frees as early', () => {
    const old = use(1_000, { blockMs: 1 * HOUR })
    const at = (hours: number) => ({ clockMs: (1_000 + hours) * HOUR, blockMs: (1 + hours) * HOUR })
    expect(overLimit([limit({ maxCount: 1 })], [old], asked, at(23))).toMatchObject({ freesAtMs: 1_024 * HOUR })
    expect(overLimit([limit({ maxCount: 1 })], [old], asked, at(24))).toBeUndefined()
    expect(sinceMs(at(2), HOUR)).toBe(2 * HOUR)
  })

  test.each([
    { what: 'the window has passed by the chain', clock: 26, block: 26, freesAt: undefined },
    { what: 'not yet', clock: 20, block: 20, freesAt: 25 },
    { what: 'the chain stands still', clock: 26, block: 3, freesAt: 48 },
    { what: 'the chain tells no time', clock: 26, block: 0, freesAt: 74 },
    { what: 'a chain ahead of the clock, which may be the one that is wrong', clock: 26, block: 27, freesAt: 74 },
  ])('signed by a clock that was ahead for a moment, by two days: $what', ({ clock, block, freesAt }) => {
    const found = overLimit([limit({ maxCount: 1 })], [use(50, { blockMs: HOUR })], asked, presentOf(clock * HOUR, block * 3_600))
    expect(found?.freesAtMs).toBe(freesAt === undefined ? undefined : freesAt * HOUR)
  })
})

describe('signed while a node showed a block of the year 2100', () => {
  const year2100 = 1_000_000
  test.each([
    { what: 'the window has not passed', signed: 1, clock: 20, block: 20, freesAt: 25 },
    { what: 'the window has passed', signed: 1, clock: 26, block: 26, freesAt: undefined },
    { what: 'the chain stands still since', signed: 1, clock: 26, block: 2, freesAt: undefined },
    { what: 'the node still shows it', signed: 1, clock: 26, block: year2100 + 1, freesAt: 49 },
    { what: 'and by a clock that was ahead as well', signed: 50, clock: 26, block: 26, freesAt: 74 },
  ])('goes by the clock alone: $what', ({ signed, clock, block, freesAt }) => {
    const lied = use(signed, { blockMs: year2100 * HOUR })
    const found = overLimit([limit({ maxCount: 1 })], [lied], asked, presentOf(clock * HOUR, block * 3_600))
    expect(found?.freesAtMs).toBe(freesAt === undefined ? undefined : freesAt * HOUR)
  })

  test.each([
    { what: 'stands still now', clock: 26, block: 20, freesAt: 50 },
    { what: 'is seen through a node that lags behind now', clock: 26, block: 19, freesAt: 51 },
  ])('by a clock that was behind: a chain that was right then and $what opens nothing', ({ clock, block, freesAt }) => {
    const found = overLimit([limit({ maxCount: 1 })], [use(1, { blockMs: 20 * HOUR })], asked, presentOf(clock * HOUR, block * 3_600))
    expect(found?.freesAtMs).toBe(freesAt * HOUR)
  })

  test('a record of it is not kept for longer', () => {
    const landed = { is: 'Landed', hash: '0x31', blockNumber: 1, blockHash: '0x', at: at(1) } as const
    const signed = record({ attempts: [call(3, 1, { blockAt: at(year2100) })], outcome: landed as never })
    expect(countedUntilMs(signed, 24 * HOUR, presentOf(2 * HOUR, 2 * 3_600))).toBe(25 * HOUR)
  })
})

describe('whose turn it is', () => {
  const waits = (namespace: string, change: { amount?: bigint; couldGo?: boolean } = {}) => ({
    amount: 32n,
    namespace,
    couldGo: true,
    ...change,
  })
  const of = (...namespaces: string[]) => namespaces.map((namespace) => waits(namespace))
  test.each<{
    what: string
    limits?: readonly Limit[]
    uses?: readonly Use[]
    waiting: readonly ReturnType<typeof waits>[]
    expected: readonly number[]
  }>([
    { what: 'of one namespace, the oldest first', waiting: of('a', 'a', 'a'), expected: [0, 1, 2] },
    { what: 'of two, by turns', waiting: of('a', 'a', 'a', 'b', 'b'), expected: [0, 3, 1, 4, 2] },
    {
      what: 'whoever has used less of it goes first',
      uses: [use(1, { namespace: 'a' }), use(2, { namespace: 'a' })],
      waiting: of('a', 'b', 'b', 'b'),
      expected: [1, 2, 0, 3],
    },
    {
      what: 'what was used so long ago that it counts no more is forgotten',
      uses: [use(-30, { namespace: 'a' })],
      waiting: of('a', 'b'),
      expected: [0, 1],
    },
    {
      what: 'by amounts where there is a total',
      limits: [limit({ maxTotal: 320n })],
      waiting: [waits('a', { amount: 300n }), waits('a', { amount: 10n }), ...of('b', 'b', 'b')],
      expected: [0, 2, 3, 4, 1],
    },
    {
      what: 'what could not go, or never fits, counts for nobody',
      limits: [limit({ maxCount: 4, maxTotal: 100n })],
      waiting: [waits('a', { couldGo: false }), waits('a', { couldGo: false }), waits('a', { amount: 101n }), ...of('a', 'b')],
      expected: [0, 1, 2, 3, 4],
    },
    {
      what: 'a limit for each namespace is nobody else’s',
      limits: [limit({ maxCount: 1, per: 'Namespace' })],
      waiting: of('a', 'a', 'b'),
      expected: [0, 1, 2],
    },
  ])('$what', ({ limits = [limit({ maxCount: 10 })], uses = [], waiting, expected }) => {
    expect(inTurn(limits, uses, waiting, present(4))).toEqual(expected)
  })
})

describe('a record is counted until', () => {
  const landed = record({ attempts: [call(1, 1, { blockAt: at(1) })], outcome: { is: 'Landed', hash: '0x11', nonce: 1 } } as never)
  test.each([
    { what: 'its window is over by both clocks', clock: 10, block: 10, expected: 25 },
    { what: 'the blocks say so, where the clock ran ahead', clock: 100, block: 10, expected: 115 },
    { what: 'the clock says so, where the chain has no time', clock: 10, block: 0, expected: 25 },
  ])('$what', ({ clock, block, expected }) => {
    expect(countedUntilMs(landed, 24 * HOUR, presentOf(clock * HOUR, block * 3_600))).toBe(expected * HOUR)
  })
  test('it has come to something, while it may land', () => {
    const open = record({ place: 1, attempts: [call(1, 1)] } as never)
    expect(countedUntilMs(open, HOUR, present(1_000))).toBe(Number.POSITIVE_INFINITY)
    expect(countedUntilMs(record({}), HOUR, present(1))).toBeUndefined()
  })
})

test('what is used is told for the signer, or for each namespace, and when the first of it ends', () => {
  const uses = [use(1), use(3, { namespace: 'team-b' }), use(-30)]
  expect(usedOf([limit({ maxCount: 3 }), limit({ maxCount: 3, per: 'Namespace' })], uses, present(4))).toMatchObject([
    { namespace: undefined, count: 2, total: 64n, freesAtMs: 25 * HOUR },
    { namespace: 'team-a', count: 1, total: 32n, freesAtMs: 25 * HOUR },
    { namespace: 'team-b', count: 1, total: 32n, freesAtMs: 27 * HOUR },
  ])
})

describe('limits are read', () => {
  const policy = (limits: unknown) => ({ limits }) as never
  test('with their windows in ms and their totals in gwei or lamports', () => {
    expect(
      limitsOf({
        chain: 'Ethereum',
        policy: policy([
          { window: '7d', maxTotalEth: '0.5', per: 'Namespace' },
          { window: '90s', maxCount: 1 },
        ]),
      }),
    ).toEqual([
      { window: '7d', windowMs: 168 * HOUR, per: 'Namespace', maxCount: undefined, maxTotal: 500_000_000n },
      { window: '90s', windowMs: 90_000, per: 'Signer', maxCount: 1, maxTotal: undefined },
    ])
    expect(limitsOf({ chain: 'Solana', policy: policy([{ window: '1h', maxTotalSol: '2' }]) })).toMatchObject([
      { maxTotal: 2_000_000_000n },
    ])
    expect(limitsOf({ chain: 'Solana', policy: policy(undefined) })).toEqual([])
  })
  test.each([
    [
      'the same window twice, in other words',
      [
        { window: '24h', maxCount: 1 },
        { window: '1d', maxCount: 2 },
      ],
    ],
    ['ETH for Solana', [{ window: '24h', maxTotalEth: '1' }]],
    ['a year and a day', [{ window: '8761h', maxCount: 1 }]],
    ['no list', 'many'],
  ])('or not at all: %s', (_what, limits) => {
    expect(limitsOf({ chain: 'Solana', policy: policy(limits) })).toHaveProperty('problem')
  })
})
