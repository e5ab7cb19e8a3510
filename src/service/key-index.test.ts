import { expect, test } from 'vitest'
import { gwei } from '../lib/amounts.ts'
import { firstHashedIndex, type KeyOrder, keyIndexOf } from './key-index.ts'
import { createValidatorKeys, parseSeed } from './seed.ts'

const keys = createValidatorKeys(parseSeed('00112233445566778899aabbccddeeff'.repeat(2), 'the seed'))
const order: KeyOrder = {
  account: 'acme',
  idempotencyKey: 'one',
  network: 'hoodi',
  withdrawalCredentials: `0x02${'00'.repeat(11)}${'ab'.repeat(20)}`,
  amountGwei: gwei(32_000_000_000n),
}

test('the same order has the same index, for good: keystores that were lost are found by it', () => {
  expect(keyIndexOf(keys, order, 0)).toBe(keyIndexOf(keys, { ...order }, 0))
  expect(keyIndexOf(keys, order, 0)).toMatchInlineSnapshot(`3798940777n`)
  expect(keyIndexOf(keys, order, 1)).toMatchInlineSnapshot(`1693798784n`)
})

test.each([
  { what: 'account', change: { account: 'other' } },
  { what: 'Idempotency-Key', change: { idempotencyKey: 'two' } },
  { what: 'network', change: { network: 'mainnet' } },
  { what: 'withdrawal address', change: { withdrawalCredentials: `0x02${'00'.repeat(11)}${'ac'.repeat(20)}` } },
  { what: 'credentials', change: { withdrawalCredentials: `0x01${'00'.repeat(11)}${'ab'.repeat(20)}` } },
  { what: 'amount', change: { amountGwei: gwei(33_000_000_000n) } },
  { what: 'the border of account and key', change: { account: 'acmeo', idempotencyKey: 'ne' } },
] as const)('another $what has another index', ({ change }) => {
  expect(keyIndexOf(keys, { ...order, ...change }, 0)).not.toBe(keyIndexOf(keys, order, 0))
})

test('another seed has another index: nobody without it can look for an order that meets a given one', () => {
  const others = createValidatorKeys(parseSeed('ffeeddccbbaa99887766554433221100'.repeat(2), 'the seed'))
  expect(keyIndexOf(others, order, 0)).not.toBe(keyIndexOf(keys, order, 0))
})

test.each([0n, firstHashedIndex, 0xffff_fff0n])('indices are at or above the floor %s and 2^24, and below 2^32', (floor) => {
  for (let probe = 0; probe < 200; probe++) {
    const index = keyIndexOf(keys, order, probe, floor)
    expect(index).toBeGreaterThanOrEqual(floor > firstHashedIndex ? floor : firstHashedIndex)
    expect(index).toBeLessThan(1n << 32n)
  }
})
