import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { gwei } from '../../lib/amounts.ts'
import { JsonError, parseJson } from '../json.ts'
import { routes } from '../routes.ts'
import { ethNumber, gweiAmount, hex, positiveGweiAmount, text } from './common.ts'
import { createEthereumStakeBody, validator } from './ethereum-stake.ts'
import { emptyBody } from './solana.ts'

const stakeText = (amount: string, more = '') =>
  `{"network":"hoodi","amountEth":${amount},"withdrawalAddress":"0x00000000219ab540356cBB839Cbe05303d7705Fa"${more}}`

describe('amountEth is exact from the text of the JSON to gwei and back', () => {
  test.each([
    { text: '32', expected: 32_000_000_000n },
    { text: '32.0', expected: 32_000_000_000n },
    { text: '32.000000001', expected: 32_000_000_001n },
    { text: '2048', expected: 2_048_000_000_000n },
    { text: '9007199.254740993', expected: 9_007_199_254_740_993n },
    { text: '0.000000001', expected: 1n },
  ])('$text', ({ text, expected }) => {
    expect(createEthereumStakeBody.parse(parseJson(stakeText(text)))).toMatchObject({ amountEth: expected, credentialsType: '0x02' })
  })

  test.each([
    { digits: '3.2e1', gwei: 32_000_000_000n },
    { digits: '3.2E+1', gwei: 32_000_000_000n },
    { digits: '0.00000032e8', gwei: 32_000_000_000n },
    { digits: '32000000000e-9', gwei: 32_000_000_000n },
    { digits: '33000000001e-9', gwei: 33_000_000_001n },
    { digits: '2.048e3', gwei: 2_048_000_000_000n },
  ])('$digits is $gwei gwei, whatever way it is written', ({ digits, gwei }) => {
    expect(createEthereumStakeBody.parse(parseJson(stakeText(digits))).amountEth).toBe(gwei)
  })

  test.each(['0', '-32', '3.2e400', '3.20000000001e1', '32.0000000001', '"32"', 'null', '99999999999999999999', '0.0'])(
    '%s is refused',
    (text) => {
      const result = createEthereumStakeBody.safeParse(parseJson(stakeText(text)))
      expect(result.error?.issues.map((issue) => issue.path)).toEqual([['amountEth']])
    },
  )

  test('a double with decimals is refused: its digits may be lost already', () => {
    expect(ethNumber.safeParse(32.5).success).toBe(false)
    expect(ethNumber.parse(32)).toBe(32_000_000_000n)
  })

  test('every amount of gwei survives the way through JSON', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, (1n << 64n) - 1n), (amount) => {
        const text = JSON.stringify({ amountEth: z.encode(ethNumber, gwei(amount)) })
        expect(text).toMatch(/^\{"amountEth":[0-9.]+\}$/)
        expect(z.object({ amountEth: ethNumber }).parse(parseJson(text))).toEqual({ amountEth: amount })
      }),
    )
  })
})

describe('amounts in text', () => {
  test.each(['', '-1', '+1', '1e3', ' 1', '1 ', '01', '0x1', '1.0', '18446744073709551616'])('"%s" is no amount in gwei', (text) => {
    expect(gweiAmount.safeParse(text).success).toBe(false)
  })
  test('a positive amount is not 0', () => {
    expect(positiveGweiAmount.safeParse('0').success).toBe(false)
    expect(positiveGweiAmount.parse('1')).toBe(1n)
    expect(gweiAmount.parse('18446744073709551615')).toBe(18446744073709551615n)
  })
  test('a negative amount cannot be written', () => {
    expect(z.safeEncode(gweiAmount, gwei(-1n)).success).toBe(false)
  })
})

describe('JSON', () => {
  test.each(['', '{', '{"a":1,"a":2}', '[1,]', 'NaN', '['.repeat(200_000), 'undefined', '{"secret": tru}'])(
    '%# is refused without quoting it',
    (text) => {
      expect(() => parseJson(text)).toThrow(new JsonError())
    },
  )
  test('numbers keep their digits', () => {
    const text = '{"a":1,"b":-2,"c":1.10,"d":12345678901234567890,"e":1e400,"f":-0}'
    expect(JSON.stringify(parseJson(text))).toBe(text)
  })
  test('__proto__ does not reach the prototype', () => {
    const value = parseJson('{"__proto__":{"polluted":1}}') as Record<string, unknown>
    expect(value.polluted).toBeUndefined()
  })
})

describe('text', () => {
  const some = text(3)
  test.each(['abc', '🔑🔑🔑', '鍵🔑c'])('"%s" has at most three characters', (value) => {
    expect(some.parse(value)).toBe(value)
  })
  test.each([
    { value: 'abcd', code: 'too_big' },
    { value: '🔑🔑🔑🔑', code: 'too_big' },
    { value: '', code: 'too_small' },
    { value: 'a\0', code: 'custom' },
    { value: 'a\ud800', code: 'custom' },
    { value: '\udc00a', code: 'custom' },
  ])('%j is refused', ({ value, code }) => {
    expect(some.safeParse(value).error?.issues.map((issue) => issue.code)).toContain(code)
  })
})

describe('shapes', () => {
  test('an unknown field of a request is refused', () => {
    expect(createEthereumStakeBody.safeParse(parseJson(stakeText('32', ',"amount":1'))).error?.issues[0]).toMatchObject({
      code: 'unrecognized_keys',
      keys: ['amount'],
    })
  })
  test('an unknown field of a response is dropped', () => {
    expect(routes.listNetworks.responses[200].parse({ networks: [], more: 1 })).toEqual({ networks: [] })
  })
  test('a word for a validator that a later version may have hides nothing else of an answer', () => {
    const seen = { pubkey: `0x${'ab'.repeat(48)}` as const, index: 7 }
    for (const status of ['pending_lookahead', 'ACTIVE_ONGOING', ''])
      expect(validator.parse({ ...seen, status })).toEqual({ ...seen, status: 'unknown' })
    expect(validator.parse({ ...seen, status: 'active_ongoing' })).toEqual({ ...seen, status: 'active_ongoing' })
    expect(z.encode(validator, { ...seen, status: 'active_ongoing' })).toEqual({ ...seen, status: 'active_ongoing' })
    expect(validator.safeParse({ ...seen, status: 7 }).success).toBe(false)
  })
  test('where no field is needed, no body is', () => {
    for (const body of [{}, null, undefined]) expect(emptyBody.safeParse(body).success).toBe(true)
    expect(emptyBody.safeParse({ a: 1 }).success).toBe(false)
  })
  test('hex is handed on in lower case, and of the right length only', () => {
    expect(hex(2).parse('0xABcd')).toBe('0xabcd')
    for (const bad of ['abcd', '0xabc', '0xabcdef', '0xabcg', '0xabcd\n']) expect(hex(2).safeParse(bad).success).toBe(false)
  })
})
