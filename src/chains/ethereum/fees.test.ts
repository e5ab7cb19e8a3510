import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { wei } from '../../lib/amounts.ts'
import { bumpFees, priceTransaction } from './fees.ts'

const market = (base: bigint, tip: bigint) => ({ baseFeePerGas: wei(base), priorityFeePerGas: wei(tip) })
const fees = (max: bigint, tip: bigint) => ({ maxFeePerGas: wei(max), maxPriorityFeePerGas: wei(tip) })

describe('a new transaction', () => {
  test.each([
    { name: 'under the cap: twice the base fee and the tip', base: 10n, tip: 2n, cap: 100n, expected: { kind: 'fees', ...fees(22n, 2n) } },
    { name: 'within the cap', base: 10n, tip: 2n, cap: 20n, expected: { kind: 'fees', ...fees(20n, 2n) } },
    { name: 'the cap between base fee and tip: a smaller tip', base: 10n, tip: 5n, cap: 12n, expected: { kind: 'fees', ...fees(12n, 2n) } },
    { name: 'no tip asked for: one wei', base: 10n, tip: 0n, cap: 100n, expected: { kind: 'fees', ...fees(21n, 1n) } },
    { name: 'a chain without a base fee', base: 0n, tip: 3n, cap: 100n, expected: { kind: 'fees', ...fees(3n, 3n) } },
    { name: 'the cap is the base fee: wait', base: 10n, tip: 2n, cap: 10n, expected: { kind: 'wait', baseFeePerGas: 10n, cap: 10n } },
    { name: 'the cap is below the base fee: wait', base: 10n, tip: 2n, cap: 9n, expected: { kind: 'wait', baseFeePerGas: 10n, cap: 9n } },
    { name: 'the cap is nothing: wait', base: 0n, tip: 2n, cap: 0n, expected: { kind: 'wait', baseFeePerGas: 0n, cap: 0n } },
  ])('$name', ({ base, tip, cap, expected }) => {
    expect(priceTransaction({ market: market(base, tip), cap: wei(cap) })).toEqual(expected)
  })
})

describe('a replacement', () => {
  test.each([
    { name: 'an eighth more', previous: fees(100n, 10n), base: 10n, tip: 1n, cap: 1000n, expected: { kind: 'fees', ...fees(113n, 12n) } },
    { name: 'rounded up', previous: fees(101n, 11n), base: 10n, tip: 1n, cap: 1000n, expected: { kind: 'fees', ...fees(114n, 13n) } },
    {
      name: 'one wei more than one wei',
      previous: fees(1n, 1n),
      base: 0n,
      tip: 0n,
      cap: 1000n,
      expected: { kind: 'fees', ...fees(2n, 2n) },
    },
    {
      name: 'some tip after none',
      previous: fees(100n, 0n),
      base: 10n,
      tip: 0n,
      cap: 1000n,
      expected: { kind: 'fees', ...fees(113n, 1n) },
    },
    {
      name: 'what the market asks, when that is more',
      previous: fees(100n, 10n),
      base: 200n,
      tip: 50n,
      cap: 1000n,
      expected: { kind: 'fees', ...fees(450n, 50n) },
    },
    {
      name: 'what the market asks, within the cap',
      previous: fees(100n, 10n),
      base: 200n,
      tip: 50n,
      cap: 300n,
      expected: { kind: 'fees', ...fees(300n, 50n) },
    },
    {
      name: 'exactly at the cap',
      previous: fees(100n, 10n),
      base: 10n,
      tip: 1n,
      cap: 113n,
      expected: { kind: 'fees', ...fees(113n, 12n) },
    },
    {
      name: 'capped',
      previous: fees(100n, 10n),
      base: 10n,
      tip: 1n,
      cap: 112n,
      expected: { kind: 'capped', needed: fees(113n, 12n), cap: 112n },
    },
    {
      name: 'no use under this base fee: wait',
      previous: fees(100n, 10n),
      base: 120n,
      tip: 1n,
      cap: 115n,
      expected: { kind: 'wait', baseFeePerGas: 120n, cap: 115n },
    },
  ])('$name', ({ previous, base, tip, cap, expected }) => {
    expect(bumpFees({ previous, market: market(base, tip), cap: wei(cap) })).toEqual(expected)
  })
})

const amount = fc.bigInt(0n, 10n ** 15n)
test('whatever the market: within the cap, payable, and a valid transaction', () => {
  fc.assert(
    fc.property(amount, amount, amount, (base, tip, cap) => {
      const priced = priceTransaction({ market: market(base, tip), cap: wei(cap) })
      expect(priced.kind === 'wait').toBe(cap <= base)
      if (priced.kind === 'wait') return
      expect(priced.maxFeePerGas <= cap).toBe(true)
      expect(priced.maxFeePerGas >= base + priced.maxPriorityFeePerGas).toBe(true)
      expect(priced.maxPriorityFeePerGas >= 1n).toBe(true)
    }),
  )
})

test("whatever was before: a replacement passes geth's rule and the cap, and is a valid transaction", () => {
  fc.assert(
    fc.property(amount, amount, amount, amount, amount, (previousMax, previousTip, base, tip, cap) => {
      const previous = fees(previousTip + previousMax, previousTip)
      const bumped = bumpFees({ previous, market: market(base, tip), cap: wei(cap) })
      if (bumped.kind !== 'fees') return
      for (const field of ['maxFeePerGas', 'maxPriorityFeePerGas'] as const) {
        // core/txpool/legacypool/list.go: above the old one, and at least old * (100 + bump) / 100.
        expect(bumped[field] > previous[field]).toBe(true)
        expect(bumped[field] >= (previous[field] * 110n) / 100n).toBe(true)
        expect(bumped[field] <= cap).toBe(true)
      }
      expect(bumped.maxPriorityFeePerGas <= bumped.maxFeePerGas).toBe(true)
    }),
    { numRuns: 1000 },
  )
})
