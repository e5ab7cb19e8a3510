import { describe, expect, test } from 'vitest'
import type { StakingTransactionStatus, TransactionOwner } from '../../resources/staking-transaction.ts'
import {
  MAX_DROPPED,
  MAX_REMAKES,
  mayBeHandedOver,
  mayTakePlace,
  seenBy,
  type TransactionRecord,
  withDropped,
  withPlace,
} from './protocol.ts'

const owner = (uid: string): TransactionOwner => ({ kind: 'ValidatorExit', namespace: 'team-a', name: uid, originUid: uid })
const attempt = (nonce: number) => ({ hash: `0x${nonce}`, nonce, kind: 'Call' as const, at: '2030-01-01T00:00:00Z' })
const landed = (nonce: number, before: StakingTransactionStatus = {}): TransactionRecord => ({
  uid: 'record',
  generation: 0,
  status: {
    ...before,
    place: nonce,
    attempts: [...(before.attempts ?? []), attempt(nonce)],
    outcome: { is: 'Landed', nonce, hash: `0x${nonce}`, blockNumber: 7, blockHash: '0xb' },
  },
})
const withStatus = (record: TransactionRecord, status: StakingTransactionStatus | undefined): TransactionRecord => {
  if (status === undefined) throw new Error('it may be asked for again')
  return { ...record, status }
}

describe('a landing that the consensus layer has dropped', () => {
  test('goes among the closed places as what it is, and the record may pass to another resource and take a place', () => {
    const record = landed(3)
    expect(mayBeHandedOver(record)).toBe(false)
    const passed = withStatus(record, withDropped(record, owner('a'), '0x3'))
    expect(passed.status).toEqual({
      state: 'Waiting',
      attempts: [attempt(3)],
      closed: [{ nonce: 3, generation: 0, by: 'Dropped', hash: '0x3', blockNumber: 7, blockHash: '0xb', owner: owner('a') }],
    })
    expect(mayBeHandedOver(passed)).toBe(true)
  })

  test.each<{ given: string; record: TransactionRecord; hash: string }>([
    { given: 'nothing has landed', record: { uid: 'r', generation: 0, status: {} }, hash: '0x3' },
    {
      given: 'something may land',
      record: { uid: 'r', generation: 0, status: { place: 3, attempts: [attempt(3)] } },
      hash: '0x3',
    },
    { given: 'the decision is about another transaction', record: landed(3), hash: '0x4' },
    {
      given: 'it was reverted',
      record: { ...landed(3), status: { ...landed(3).status, outcome: { is: 'Reverted', nonce: 3, hash: '0x3', blockNumber: 7 } } },
      hash: '0x3',
    },
  ])('is none where $given', ({ record, hash }) => {
    expect(withDropped(record, owner('a'), hash)).toBeUndefined()
  })

  test('counts as no remake: whoever asks again has as many as anybody', () => {
    let record = landed(0)
    for (let nonce = 1; nonce <= MAX_DROPPED; nonce++) {
      record = withStatus(record, withDropped(record, owner(`${nonce}`), record.status.outcome?.hash ?? ''))
      expect(mayTakePlace(record, 0)).toBe('yes')
      record = landed(nonce, record.status)
    }
    expect(withDropped(record, owner('last'), record.status.outcome?.hash ?? '')).toBeUndefined()
  })

  test('three places closed since it was asked for again are too many, as ever', () => {
    const first = landed(0)
    const status = withStatus(first, withDropped(first, owner('a'), '0x0')).status
    const closed = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ nonce: index + 1, by: 'Revert' as const, hash: `0x${index + 1}`, blockNumber: 9 }))
    const record = (count: number): TransactionRecord => ({
      ...first,
      status: {
        ...status,
        attempts: [...(status.attempts ?? []), ...closed(count).map(({ nonce }) => attempt(nonce))],
        closed: [...(status.closed ?? []), ...closed(count)],
      },
    })
    expect(mayTakePlace(record(MAX_REMAKES), 0)).toBe('yes')
    expect(mayTakePlace(record(MAX_REMAKES + 1), 0)).toBe('too-many-remakes')
  })

  test('stays what the one that asked for it sees, and is nothing of the one that asks now', () => {
    const first = landed(3)
    const passed = withStatus(first, withDropped(first, owner('a'), '0x3'))
    const open = { ...passed, status: withPlace(passed, 5, attempt(5)) }
    expect(seenBy(open, 'a').status).toMatchObject({ outcome: { is: 'Landed', hash: '0x3' }, attempts: [attempt(3)] })
    expect(seenBy(open, 'b').status).toMatchObject({ place: 5, attempts: [attempt(5)] })
    expect(seenBy(open, 'b').status.outcome).toBeUndefined()
    const done = landed(5, passed.status)
    expect(seenBy(done, 'a').status.outcome?.hash).toBe('0x3')
    expect(seenBy(done, 'b').status.outcome?.hash).toBe('0x5')
  })
})
