import { describe, expect, test } from 'vitest'
import type { SignatureStatus } from '../../../chains/solana/chain.ts'
import type { ClosedPlace, StakingTransactionStatus, TransactionAttempt } from '../../../resources/staking-transaction.ts'
import { mayBeHandedOver, type TransactionRecord } from '../protocol.ts'
import { conclude, type Look, liveAttempts, type Step, tooMany, undone, withAttempt, withClosed, withOutcome } from './rules.ts'

const at = '2030-01-01T00:00:00Z'
const attempt = (hash: string, lastValidBlockHeight: number, sinceSlot = 50): TransactionAttempt => ({
  hash,
  kind: 'Call',
  message: 'AA==',
  lastValidBlockHeight,
  sinceSlot,
  at,
})
const recordOf = (status: Partial<StakingTransactionStatus> = {}): TransactionRecord => ({ uid: 'u', generation: 2, status })
const one = recordOf({ attempts: [attempt('a', 100)] })
const expired = (nonce: number, hash: string): ClosedPlace => ({ nonce, by: 'Expired', hash, blockNumber: 200 })

const look = (height: bigint, change: Partial<Look> = {}): Look => ({
  finalizedBlockHeight: height,
  slot: height + 10n,
  done: false,
  statuses: [undefined],
  historySince: 0n,
  ...change,
})
const status = (commitment: SignatureStatus['commitment'], slot: bigint, failed = false): SignatureStatus => ({
  slot,
  commitment,
  ...(failed ? { failure: { name: 'Custom', custom: 3 } } : {}),
})
const final = (slot: bigint, failed = false) => status('finalized', slot, failed)

const stake: Step = { landedIsDone: true, leavesNoTrace: true, needsEveryNode: false }
const deactivation: Step = { landedIsDone: true, leavesNoTrace: false, needsEveryNode: false }
const handOver: Step = { landedIsDone: true, leavesNoTrace: false, needsEveryNode: true }
const withdrawal: Step = { landedIsDone: false, leavesNoTrace: false, needsEveryNode: true }

describe('an attempt is dead', () => {
  test('when every node has a final block beyond it, none has it in its history, and no state shows the step done', () => {
    expect(conclude(one, [look(101n), look(150n)], stake)).toEqual({
      is: 'closed',
      closed: [{ nonce: 0, by: 'Expired', hash: 'a', blockNumber: 111 }],
    })
  })

  test.each<{ while: string; looks: readonly (Look | undefined)[]; awaited: readonly number[]; canLand: boolean }>([
    { while: 'a node stands still before its last height', looks: [look(80n), look(150n)], awaited: [1], canLand: false },
    { while: 'a node is at its last height, which may hold it', looks: [look(100n), look(150n)], awaited: [1], canLand: false },
    { while: 'a node gives no answer', looks: [undefined, look(150n)], awaited: [1], canLand: false },
    { while: 'all are before it', looks: [look(90n), look(95n)], awaited: [1, 2], canLand: true },
  ])('not while $while', ({ looks, awaited, canLand }) => {
    expect(conclude(one, looks, stake)).toMatchObject({ is: 'open', awaited, canLand })
  })

  test('of a stake not where no node’s history reaches back: it may have been made and be gone', () => {
    const short = look(150n, { historySince: 60n })
    expect(conclude(one, [short, short], stake)).toMatchObject({ is: 'history-missing' })
    expect(conclude(one, [short, look(150n, { historySince: 50n })], stake)).toMatchObject({ is: 'closed' })
    expect(conclude(one, [short, short], deactivation)).toMatchObject({ is: 'closed' })
  })

  test('when it landed and failed on every node, or has expired where that was forgotten', () => {
    const failed = look(90n, { statuses: [final(95n, true)] })
    expect(conclude(one, [failed, failed], stake)).toMatchObject({
      is: 'closed',
      closed: [{ by: 'Revert', blockNumber: 95, failure: 'Custom(3)' }],
    })
    expect(conclude(one, [failed, look(101n)], stake)).toMatchObject({ is: 'closed', closed: [{ by: 'Revert' }] })
    expect(conclude(one, [failed, look(90n)], stake)).toMatchObject({ is: 'open', awaited: [2] })
  })
})

describe('a step is done', () => {
  test('by a final transaction that succeeded', () => {
    expect(conclude(one, [look(90n, { statuses: [final(95n)], done: true }), undefined], stake)).toEqual({
      is: 'landed',
      signature: 'a',
      slot: 95n,
    })
  })

  test.each<{ what: string; shown: Look; step: Step; other: Look | undefined }>([
    {
      what: 'a transaction, and the other is not there yet',
      shown: look(90n, { statuses: [final(95n)], done: true }),
      step: stake,
      other: look(80n),
    },
    {
      what: 'a transaction in a slot that there is not',
      shown: look(200n, { statuses: [final(10_000n)] }),
      step: handOver,
      other: look(200n),
    },
    { what: 'the work, and the other is not there yet', shown: look(190n, { done: true }), step: handOver, other: look(180n) },
    {
      what: 'a hand-over, and the other is silent',
      shown: look(200n, { statuses: [final(95n)], done: true }),
      step: handOver,
      other: undefined,
    },
    {
      what: 'a withdrawal, and the other is silent',
      shown: look(200n, { statuses: [final(95n)], done: true }),
      step: withdrawal,
      other: undefined,
    },
  ])('not by one node alone that shows $what', ({ shown, step, other }) => {
    expect(conclude(one, [shown, other], step)).toMatchObject({ is: 'awaited', node: 1, awaited: [2] })
    expect(conclude(one, [other, shown], step)).toMatchObject({ is: 'awaited', node: 2, awaited: [1] })
    expect(conclude(one, [shown, shown], step)).toMatchObject({ is: shown.statuses[0] === undefined ? 'done' : 'landed' })
  })

  test('not where another shows the account without it, however little that remembers', () => {
    const liar = look(200n, { statuses: [final(95n)] })
    expect(conclude(one, [liar, look(200n, { historySince: 210n })], handOver)).toMatchObject({ is: 'disagreement', nodes: [1, 2] })
  })

  test('not by one that only one node has ever seen, while another that must have it shows nothing', () => {
    const liar = look(200n, { statuses: [final(95n)] })
    expect(conclude(one, [liar, look(200n)], stake)).toMatchObject({ is: 'disagreement', nodes: [1, 2] })
    expect(conclude(one, [liar, look(200n, { statuses: [final(95n, true)] })], stake)).toMatchObject({ is: 'disagreement' })
    // One that doesn't tell how far its ledger reaches is taken at its word, here as where an attempt has expired.
    const { historySince: _untold, ...silent } = look(200n)
    expect(conclude(one, [liar, silent], stake)).toMatchObject({ is: 'disagreement', nodes: [1, 2] })
    // Its ledger doesn't reach that slot, or it has lost its memory and shows the work.
    expect(conclude(one, [liar, look(200n, { historySince: 96n })], stake)).toMatchObject({ is: 'landed' })
    expect(conclude(one, [liar, look(200n, { done: true })], stake)).toMatchObject({ is: 'landed' })
  })

  test('by a transaction in a block only once that is final', () => {
    expect(conclude(one, [look(90n, { statuses: [status('confirmed', 120n)] })], stake)).toMatchObject({ is: 'mined', slot: 120n })
  })

  test('by an attempt that was thought expired, and is found after all', () => {
    const two = recordOf({ attempts: [attempt('a', 100), attempt('b', 300)], closed: [expired(0, 'a')] })
    expect(conclude(two, [look(250n, { statuses: [final(95n), undefined] })], stake)).toMatchObject({ is: 'landed', signature: 'a' })
  })

  test('by a transaction that nobody told of: whoever did it counts once none of the attempts can have', () => {
    const seen = look(150n, { done: true })
    expect(conclude(recordOf(), [look(150n, { done: true, statuses: [] })], stake)).toMatchObject({ is: 'done', settled: true })
    const settled = look(101n, { done: true })
    expect(conclude(one, [seen, settled], stake)).toMatchObject({ is: 'done', settled: true })
    expect(conclude(one, [seen, look(100n, { done: true })], stake)).toMatchObject({ is: 'done', settled: false })
    expect(conclude(one, [seen, undefined], stake)).toMatchObject({ is: 'done', settled: false })
    expect(conclude(one, [seen, look(150n)], stake)).toMatchObject({ is: 'disagreement' })
  })

  test('of a withdrawal only when the account is closed: lamports that came meanwhile keep it open', () => {
    const paid = look(120n, { statuses: [final(95n)] })
    expect(conclude(one, [paid], withdrawal)).toMatchObject({
      is: 'closed',
      closed: [{ by: 'Revert', hash: 'a', failure: 'AccountNotClosed' }],
    })
    expect(conclude(one, [{ ...paid, done: true }], withdrawal)).toMatchObject({ is: 'landed' })
    const again = recordOf({ attempts: [attempt('a', 100)], closed: [{ nonce: 0, by: 'Revert', hash: 'a', blockNumber: 95 }] })
    expect(conclude(again, [{ ...paid, done: true }], withdrawal)).toMatchObject({ is: 'done', settled: true })
  })
})

describe('another attempt', () => {
  test('is made only when nothing may land', () => {
    expect(conclude(recordOf(), [look(1n, { statuses: [] }), undefined], stake)).toEqual({ is: 'free' })
    const dead = recordOf({ attempts: [attempt('a', 100)], closed: [expired(0, 'a')] })
    expect(conclude(dead, [look(150n)], stake)).toEqual({ is: 'free' })
  })

  test('is not made a seventeenth time, nor after three failures, unless a person allows it', () => {
    const many = (count: number, by: ClosedPlace['by']) =>
      recordOf({
        attempts: Array.from({ length: count }, (_, index) => attempt(`h${index}`, 1)),
        closed: Array.from({ length: count }, (_, index) => ({ nonce: index, by, hash: `h${index}`, blockNumber: 1 })),
      })
    expect(tooMany(many(15, 'Expired'), 0)).toBeUndefined()
    expect(tooMany(many(16, 'Expired'), 0)).toBe('attempts')
    expect(tooMany(many(16, 'Expired'), 1)).toBeUndefined()
    expect(tooMany(many(95, 'Expired'), 99)).toBeUndefined()
    expect(tooMany(many(96, 'Expired'), 99)).toBe('full')
    expect(tooMany(many(2, 'Revert'), 0)).toBeUndefined()
    expect(tooMany(many(3, 'Revert'), 0)).toBe('failures')
    expect(tooMany(many(3, 'Revert'), 1)).toBeUndefined()
  })

  test('forgets none before it, and the record passes to nobody while one may land', () => {
    const second = recordOf(withAttempt(recordOf(withClosed(one, [expired(0, 'a')])), attempt('b', 300)))
    expect(second.status).toMatchObject({ state: 'Open', attempts: [{ hash: 'a' }, { hash: 'b', generation: 2 }], closed: [{ hash: 'a' }] })
    expect(liveAttempts(second).map(({ attempt: { hash } }) => hash)).toEqual(['b'])
    expect(mayBeHandedOver(one)).toBe(false)
    expect(mayBeHandedOver(second)).toBe(false)
    expect(mayBeHandedOver(recordOf(withClosed(second, [expired(1, 'b')])))).toBe(true)
  })
})

describe('an outcome', () => {
  test('of a transaction made elsewhere names it among the attempts, as found; of one that nobody knows it names none', () => {
    expect(withOutcome(one, { hash: 'x', slot: 7n, at })).toMatchObject({
      state: 'Landed',
      attempts: [{ hash: 'a' }, { hash: 'x', found: true, generation: 2 }],
      outcome: { is: 'Landed', hash: 'x', blockNumber: 7 },
    })
    expect(withOutcome(one, { hash: '', slot: 7n, at })).toMatchObject({ attempts: [{ hash: 'a' }], outcome: { hash: '' } })
  })

  test('that somebody undid is free to be done again, and what did it is not taken for it once more', () => {
    const landed = recordOf(withOutcome(one, { hash: 'a', slot: 95n, at }))
    const open = recordOf(undone(landed))
    expect(open.status.outcome).toBeUndefined()
    expect(conclude(open, [look(150n, { statuses: [final(95n)] })], deactivation)).toEqual({ is: 'free' })
  })
})
