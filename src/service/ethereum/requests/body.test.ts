import { describe, expect, test } from 'vitest'
import type { RequestRow } from '../../store/requests.ts'
import { exitBody } from './body.ts'

const row = {
  id: 'a'.repeat(32),
  pubkey: `0x${'ab'.repeat(48)}`,
  kind: 'exit',
  external_reference: null,
  unsigned_transaction: { chainId: 1, from: `0x${'00'.repeat(20)}`, to: `0x${'00'.repeat(20)}`, data: '0x', valueWei: '1' },
  fee_wei: '1',
  quoted_at_block: 1n,
  status: 'submitted',
  hash: `0x${'01'.repeat(32)}`,
  block_number: 90n,
  block_hash: `0x${'02'.repeat(32)}`,
  failure_reason: null,
  consensus_status: 'dropped',
  consensus_reason: 'too-young: the validator is too young',
  consensus_block: 95n,
  payment_status: null,
  payable_gwei: null,
  withdrawable_epoch: null,
  queued_deposits_gwei: null,
  settled: false,
  created_at: new Date(0),
} as unknown as RequestRow
const consensusOf = (change: Partial<RequestRow>) => exitBody({ ...row, ...change }).consensus

describe('what the consensus layer made of a request', () => {
  test('is dropped only once the block that handed it on is final, and was judged as such: who is told so asks again', () => {
    expect(consensusOf({})).toEqual({
      status: 'pending',
      reason: 'not certain before block 95 is final, by the states so far it was dropped: too-young: the validator is too young',
    })
    expect(consensusOf({ status: 'confirmed' }).status, 'its own block is final, and not the one that handed it on').toBe('pending')
    expect(consensusOf({ settled: true })).toEqual({ status: 'dropped', reason: 'too-young: the validator is too young' })
  })

  test('is accepted as soon as it is seen', () => {
    expect(consensusOf({ consensus_status: 'accepted', consensus_reason: 'the validator exits in epoch 7' })).toEqual({
      status: 'accepted',
      reason: 'the validator exits in epoch 7',
    })
  })

  test('has a reason that the contract allows, however long the rules are', () => {
    expect(consensusOf({ consensus_reason: 'x'.repeat(1_024) }).reason).toHaveLength(1_024)
  })
})
