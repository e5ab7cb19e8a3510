import { describe, expect, test } from 'vitest'
import type { ChainHead, ChainReceipt, ChainTransaction, Hex } from '../../chains/ethereum/chain.ts'
import { wei } from '../../lib/amounts.ts'
import { type Observed, outcomeOf } from './outcome.ts'

const head: ChainHead = { latest: 100n, final: 90n, baseFeePerGas: wei(1n) }
const h = (digit: string): Hex => `0x${digit.repeat(64)}`
const sentBy = { sender: h('f'), nonce: 3 }

const receipt = (blockNumber: bigint, success = true): ChainReceipt => ({
  hash: h('a'),
  from: '0x00',
  success,
  blockNumber,
  blockHash: h('b'),
  gasUsed: 1n,
  effectiveGasPrice: wei(1n),
  logs: [],
})
const pooled: ChainTransaction = { hash: h('a'), from: '0x00', to: '0x00', nonce: 3, data: '0x', valueWei: wei(0n) }
const seen = (digit: string, more: Partial<Observed> = {}): Observed => ({ hash: h(digit), ...more })
const block = (blockNumber: bigint) => ({ blockNumber, blockHash: h('b') })

describe('one transaction', () => {
  test.each([
    { given: 'not seen', observed: seen('1'), expected: { status: 'submitted', hash: h('1') } },
    { given: 'mined', observed: seen('1', { receipt: receipt(91n) }), expected: { status: 'submitted', hash: h('1'), ...block(91n) } },
    {
      given: 'reverted, not final',
      observed: seen('1', { receipt: receipt(91n, false) }),
      expected: { status: 'submitted', hash: h('1'), ...block(91n) },
    },
    { given: 'final', observed: seen('1', { receipt: receipt(90n) }), expected: { status: 'confirmed', hash: h('1'), ...block(90n) } },
    {
      given: 'reverted and final',
      observed: seen('1', { receipt: receipt(90n, false) }),
      expected: { status: 'failed', hash: h('1'), ...block(90n), reason: 'the transaction was reverted' },
    },
    {
      given: 'another payment, final',
      observed: seen('1', { receipt: receipt(90n), mismatch: 'it pays something else' }),
      expected: { status: 'failed', hash: h('1'), ...block(90n), reason: 'it pays something else' },
    },
  ])('$given is $expected.status', ({ observed, expected }) => {
    expect(outcomeOf([observed], head)).toEqual(expected)
  })
})

describe('several transactions: whichever lands counts', () => {
  const reverted = seen('1', { receipt: receipt(90n, false), sentBy })
  test.each([
    { why: 'the replaced one landed', observed: [seen('1', { receipt: receipt(80n) }), seen('2')], status: 'confirmed', hash: h('1') },
    { why: 'the replacement landed', observed: [seen('1'), seen('2', { receipt: receipt(80n) })], status: 'confirmed', hash: h('2') },
    { why: 'none landed: the last one is shown', observed: [seen('1'), seen('2')], status: 'submitted', hash: h('2') },
    { why: 'one reverted, the other paid', observed: [reverted, seen('2', { receipt: receipt(80n) })], status: 'confirmed', hash: h('2') },
    {
      why: 'one reverted, the other is mined but not final',
      observed: [reverted, seen('2', { receipt: receipt(95n) })],
      status: 'submitted',
      hash: h('2'),
    },
    {
      why: 'one reverted, the other waits under another nonce',
      observed: [reverted, seen('2', { transaction: pooled, sentBy: { ...sentBy, nonce: 4 } })],
      status: 'submitted',
      hash: h('2'),
    },
    {
      why: 'one reverted, and has used the nonce of the other',
      observed: [reverted, seen('2', { sentBy })],
      status: 'failed',
      hash: h('1'),
    },
    {
      why: 'one reverted, the other was never seen: it may have been told before it is sent',
      observed: [reverted, seen('2')],
      status: 'submitted',
      hash: h('2'),
    },
    {
      why: 'a cancel has used the nonce, and the next attempt was told under another one',
      observed: [
        seen('1', { sentBy }),
        seen('3', { receipt: receipt(90n), mismatch: 'it pays nothing', sentBy }),
        seen('2', { sentBy: { ...sentBy, nonce: 4 } }),
      ],
      status: 'submitted',
      hash: h('2'),
    },
    {
      why: 'a cancel has used the nonce of all that were told',
      observed: [seen('1', { sentBy }), seen('3', { receipt: receipt(90n), mismatch: 'it pays nothing', sentBy })],
      status: 'failed',
      hash: h('3'),
    },
  ] as const)('$status when $why', ({ observed, status, hash }) => {
    expect(outcomeOf(observed as unknown as [Observed, ...Observed[]], head)).toMatchObject({ status, hash })
  })
})
