import { expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import { type ExpectedPayment, paymentMismatch } from './payment.ts'

const expected: ExpectedPayment = {
  depositContractAddress: '0xABCD',
  pubkey: '0x01',
  withdrawalCredentials: '0x02',
  amountGwei: 32n,
  signature: '0x03',
}
const deposit = { pubkey: '0x01', withdrawalCredentials: '0x02', amountGwei: gwei(32n), signature: '0x03' } as const
const other = { ...deposit, pubkey: '0xff' } as const

test.each([
  { by: 'the call that was asked for', deposits: [deposit] },
  { by: 'a batch of a Safe, with others around it', deposits: [other, deposit, { ...other, pubkey: '0xfe' as const }] },
  { by: 'a transaction that makes it twice, which can not be undone', deposits: [deposit, deposit] },
])('the stake is paid by $by', ({ deposits }) => {
  expect(paymentMismatch(expected, deposits)).toBeUndefined()
})

test.each([
  { why: 'no event', deposits: [], says: /recorded none/ },
  { why: 'another key', deposits: [other], says: /another deposit than/ },
  { why: 'other credentials', deposits: [{ ...deposit, withdrawalCredentials: '0xff' as const }], says: /this stake's key/ },
  { why: 'another amount', deposits: [{ ...deposit, amountGwei: gwei(1n) }], says: /this stake's key/ },
  { why: 'another signature', deposits: [{ ...deposit, signature: '0xff' as const }], says: /this stake's key/ },
])('the stake is not paid: $why', ({ deposits, says }) => {
  expect(paymentMismatch(expected, deposits)).toMatch(says)
})
