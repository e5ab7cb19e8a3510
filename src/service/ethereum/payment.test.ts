import { expect, test } from 'vitest'
import { gwei, wei } from '../../lib/amounts.ts'
import { type ExpectedPayment, paymentMismatch } from './payment.ts'

const expected: ExpectedPayment = {
  depositContractAddress: '0xABCD',
  data: '0x2289',
  valueWei: 32n,
  pubkey: '0x01',
  withdrawalCredentials: '0x02',
  amountGwei: 32n,
  signature: '0x03',
}
const deposit = { pubkey: '0x01', withdrawalCredentials: '0x02', amountGwei: gwei(32n), signature: '0x03' } as const
const transaction = { to: '0xabcd', data: '0x2289', valueWei: wei(32n) } as const

test('the call that was asked for, recorded by the contract, pays the stake', () => {
  expect(paymentMismatch(expected, transaction, [deposit])).toBeUndefined()
})

test.each([
  { why: 'another contract', change: { to: '0xdead' as const } },
  { why: 'a contract is created', change: { to: undefined } },
  { why: 'another amount', change: { valueWei: wei(31n) } },
  { why: 'another deposit', change: { data: '0x228900' as const } },
])('it does not pay: $why', ({ change }) => {
  expect(paymentMismatch(expected, { ...transaction, ...change }, [deposit])).toBeTypeOf('string')
})

test.each([
  { why: 'no event', deposits: [] },
  { why: 'two events', deposits: [deposit, deposit] },
  { why: 'another key', deposits: [{ ...deposit, pubkey: '0xff' as const }] },
  { why: 'other credentials', deposits: [{ ...deposit, withdrawalCredentials: '0xff' as const }] },
  { why: 'another amount', deposits: [{ ...deposit, amountGwei: gwei(1n) }] },
  { why: 'another signature', deposits: [{ ...deposit, signature: '0xff' as const }] },
])('the contract did not record it: $why', ({ deposits }) => {
  expect(paymentMismatch(expected, transaction, deposits)).toBe('the deposit contract did not record this deposit')
})
