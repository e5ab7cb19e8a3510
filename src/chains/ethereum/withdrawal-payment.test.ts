import { describe, expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import type { BeaconValidator, WithdrawalView } from './beacon.ts'
import type { ChainBlock } from './request-queue.ts'
import { paymentIn, queuedPayment, unclaimed } from './withdrawal-payment.ts'

const accepted = { amountGwei: gwei(2_000_000_000n), withdrawableEpoch: 1_300 }
const validator: BeaconValidator = {
  index: 7,
  pubkey: `0x${'ab'.repeat(48)}` as const,
  status: 'active_ongoing',
  balanceGwei: gwei(40_000_000_000n),
  effectiveBalanceGwei: gwei(40_000_000_000n),
  withdrawalCredentials: `0x02${'00'.repeat(11)}${'52'.repeat(20)}`,
  slashed: false,
  activationEligibilityEpoch: 1,
  activationEpoch: 5,
  exitEpoch: undefined,
  withdrawableEpoch: undefined,
}
const exiting = { ...validator, exitEpoch: 1_290, withdrawableEpoch: 1_546 }
const own = { validatorIndex: 7, ...accepted }
const view = (more: Partial<WithdrawalView>): WithdrawalView => ({
  slot: 0,
  block: { slot: 0, root: '0x' },
  epoch: 1_250,
  validator,
  pendingPartialWithdrawals: [own],
  pendingConsolidations: [],
  ...more,
})

describe('an accepted withdrawal', () => {
  test.each([
    { what: 'is in the queue', view: view({}) },
    { what: 'is in the queue after its epoch has begun, behind others', view: view({ epoch: 1_301 }) },
    { what: 'is not in the queue of a state that is older than it', view: view({ pendingPartialWithdrawals: [], epoch: 1_200 }) },
  ])('waits to be paid while it $what', ({ view: seen }) => {
    expect(queuedPayment(seen, accepted)).toEqual({ is: 'waiting' })
  })
  test.each([
    { what: 'exits', validator: exiting, reason: /^the validator exits in epoch 1290.*epoch 1546/ },
    { what: 'was slashed', validator: { ...exiting, slashed: true }, reason: /^the validator was slashed and exits/ },
  ])('is void when its validator $what before its turn', ({ validator: seen, reason }) => {
    expect(queuedPayment(view({ validator: seen }), accepted)).toEqual({ is: 'void', reason: expect.stringMatching(reason) })
  })
  test.each([
    { what: 'nothing', queue: [] },
    { what: 'one of another validator', queue: [{ ...own, validatorIndex: 8 }] },
    { what: 'a later one of the same size', queue: [{ ...own, withdrawableEpoch: 1_301 }] },
  ])('has left the queue when that holds $what', ({ queue }) => {
    expect(queuedPayment(view({ pendingPartialWithdrawals: queue, epoch: 1_300 }), accepted)).toEqual({ is: 'gone' })
  })
})

describe('of withdrawals alike, a payment that another one has is not', () => {
  const paid = (...amounts: readonly bigint[]): ChainBlock => ({
    ...{ number: 20n, hash: '0x', parentHash: '0x', timestamp: 0 },
    withdrawals: amounts.map((amount) => ({ validatorIndex: 7, amountGwei: gwei(amount) })),
  })
  const claim = (blockNumber: bigint, amount: bigint) => ({ blockNumber, amountGwei: gwei(amount) })
  test.each([
    { what: 'the only one of the block', block: paid(2n), claimed: [claim(20n, 2n)], left: [] },
    { what: 'one of two alike', block: paid(2n, 2n), claimed: [claim(20n, 2n)], left: [2n] },
    { what: 'both of two alike', block: paid(2n, 2n), claimed: [claim(20n, 2n), claim(20n, 2n)], left: [] },
    { what: 'one of another amount', block: paid(2n, 3n), claimed: [claim(20n, 3n)], left: [2n] },
    { what: 'none, where the claim is of another block', block: paid(2n), claimed: [claim(19n, 2n)], left: [2n] },
  ])('counted: $what', ({ block, claimed, left }) => {
    expect(unclaimed(block, 7, claimed).withdrawals?.map(({ amountGwei }) => amountGwei)).toEqual(left)
    // Those of another validator are nobody's claim.
    expect(unclaimed(block, 8, claimed)).toEqual(block)
  })
})

describe('a withdrawal that left the queue', () => {
  const block = (number: bigint, ...withdrawals: readonly (readonly [number, bigint])[]): ChainBlock => ({
    number,
    hash: '0x',
    parentHash: '0x',
    timestamp: 0,
    withdrawals: withdrawals.map(([validatorIndex, amount]) => ({ validatorIndex, amountGwei: gwei(amount) })),
  })
  const others = block(1n, [3, 5n], [8, 2_000_000_000n])
  test.each([
    { what: 'in full', blocks: [others, block(2n, [7, 2_000_000_000n])], amountGwei: 2_000_000_000n },
    { what: 'less, as the balance fell', blocks: [others, block(2n, [7, 1_500_000_000n])], amountGwei: 1_500_000_000n },
    { what: 'its own among two', blocks: [block(1n, [7, 9n]), block(2n, [7, 2_000_000_000n])], amountGwei: 2_000_000_000n },
  ])('was paid when a block says so: $what', ({ blocks, amountGwei }) => {
    expect(paymentIn({ accepted, validator, blocks, complete: true })).toEqual({ is: 'paid', amountGwei, blockNumber: 2n })
  })
  test('paid nothing when no block of the time pays it, and the whole balance of an exited validator is not it', () => {
    const blocks = [others, block(2n, [7, 38_000_000_000n])]
    expect(paymentIn({ accepted, validator: exiting, blocks, complete: true })).toMatchObject({ is: 'void' })
  })
  test('was paid where blocks prove nothing and the validator has not begun to exit', () => {
    for (const blocks of [[], [block(1n)]]) {
      expect(paymentIn({ accepted, validator, blocks, complete: true })).toEqual({ is: 'paid', amountGwei: 2_000_000_000n })
    }
    expect(paymentIn({ accepted, validator, blocks: [others], complete: false })).toMatchObject({ is: 'paid' })
  })
  test('is not claimed to be paid where blocks prove nothing and the validator exits', () => {
    expect(paymentIn({ accepted, validator: exiting, blocks: [others], complete: false })).toMatchObject({ is: 'unknown' })
  })
})
