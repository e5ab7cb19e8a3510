import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  AmountError,
  formatEth,
  formatWeiAsEth,
  formatWeiAsGwei,
  gwei,
  gweiToWei,
  parseEth,
  parseGweiAsWei,
  parseInteger,
  wei,
} from './amounts.ts'

const notAmounts = [
  '',
  ' ',
  '1 ',
  ' 1',
  '1\n',
  '+1',
  '-1',
  '1e3',
  '1E3',
  '0x10',
  '01',
  '00',
  '1.',
  '.5',
  '1,5',
  '1_000',
  '1.2.3',
  'NaN',
  'Infinity',
  '١',
  '1ETH',
  'null',
]

describe('ETH', () => {
  test.each([
    ['0', 0n],
    ['32', 32_000_000_000n],
    ['32.5', 32_500_000_000n],
    ['32.000000001', 32_000_000_001n],
    ['0.000000001', 1n],
    ['2048.000000000', 2_048_000_000_000n],
    ['1.1234567890000', 1_123_456_789n],
    ['9999999999999999999', 9_999_999_999_999_999_999_000_000_000n],
  ])('%s is %i gwei', (text, expected) => {
    expect(parseEth(text)).toBe(expected)
  })
  test.each([...notAmounts, '0.0000000001', '32.0000000001', '10000000000000000000', '1.0000000000000000000'])(
    '%j is no amount',
    (text) => {
      expect(() => parseEth(text)).toThrow(AmountError)
    },
  )
  test('is read back as it was written', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 1n << 64n }), (amount) => {
        expect(parseEth(formatEth(gwei(amount)))).toBe(amount)
      }),
    )
  })
  test.each([
    [32_000_000_000n, '32'],
    [1n, '0.000000001'],
    [32_500_000_000n, '32.5'],
    [0n, '0'],
  ])('%i gwei is written %s', (amount, text) => {
    expect(formatEth(gwei(amount))).toBe(text)
  })
})

describe('gwei with decimals, as fees are written', () => {
  test.each([
    ['30', 30_000_000_000n],
    ['2.5', 2_500_000_000n],
    ['0.000000001', 1n],
  ])('%s is %i wei', (text, expected) => {
    expect(parseGweiAsWei(text)).toBe(expected)
    expect(formatWeiAsGwei(wei(expected))).toBe(text)
  })
  test.each([...notAmounts, '0.0000000001'])('%j is none', (text) => {
    expect(() => parseGweiAsWei(text)).toThrow(AmountError)
  })
})

describe('whole numbers', () => {
  test.each(['0', '1', '18446744073709551615'])('%s is one', (text) => {
    expect(parseInteger(text, 'an amount')).toBe(BigInt(text))
  })
  test.each([...notAmounts, '1.0', '18446744073709551616', '9'.repeat(79)])('%j is none', (text) => {
    expect(() => parseInteger(text, 'an amount')).toThrow(AmountError)
  })
  test('have the bound that is given', () => {
    expect(parseInteger('7', 'a thing', 7n)).toBe(7n)
    expect(() => parseInteger('8', 'a thing', 7n)).toThrow('at most 7')
  })
})

test('wei are written exactly, also below zero', () => {
  expect(formatWeiAsEth(wei(1_500_000_000_000_000_000n))).toBe('1.5')
  expect(formatWeiAsEth(wei(1n))).toBe('0.000000000000000001')
  expect(formatWeiAsEth(wei(-1_500_000_000_000_000_000n))).toBe('-1.5')
  expect(formatWeiAsEth(wei(0n))).toBe('0')
  expect(gweiToWei(gwei(32n))).toBe(32_000_000_000n)
})
