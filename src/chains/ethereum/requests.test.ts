import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Gwei, gwei, wei } from '../../lib/amounts.ts'
import { ChainError, type Hex } from './chain.ts'
import {
  decodeRequestCalldata,
  decodeRequestLog,
  encodeRequestCalldata,
  fakeExponential,
  feeAtExcess,
  RequestEncodingError,
  readRequestFee,
  withdrawalRequestContract,
  withFeeHeadroom,
} from './requests.ts'

const pubkey: Hex = `0x${'ab'.repeat(48)}`
const never = new AbortController().signal
const maxUint64 = 2n ** 64n - 1n

describe('calldata', () => {
  test.each<{ name: string; request: Parameters<typeof encodeRequestCalldata>[0]; amount: string }>([
    { name: 'an exit ends with zeros', request: { kind: 'exit', pubkey }, amount: '0000000000000000' },
    { name: 'the smallest withdrawal', request: { kind: 'withdrawal', pubkey, amountGwei: gwei(1n) }, amount: '0000000000000001' },
    {
      name: 'the most significant byte comes first',
      request: { kind: 'withdrawal', pubkey, amountGwei: gwei(0x0102n) },
      amount: '0000000000000102',
    },
    { name: 'the largest withdrawal', request: { kind: 'withdrawal', pubkey, amountGwei: gwei(maxUint64) }, amount: 'ffffffffffffffff' },
  ])('$name', ({ request, amount }) => {
    const data = encodeRequestCalldata(request)
    expect(data).toBe(`${pubkey}${amount}`)
    expect(decodeRequestCalldata(data)).toEqual(request)
  })

  test.each<{ name: string; amountGwei: bigint }>([
    { name: '0, which would be a full exit', amountGwei: 0n },
    { name: 'less than 0', amountGwei: -1n },
    { name: 'more than a uint64', amountGwei: maxUint64 + 1n },
    { name: 'what a uint64 would cut to 0', amountGwei: 2n ** 64n },
  ])('is never made for a withdrawal of $name', ({ amountGwei }) => {
    expect(() => encodeRequestCalldata({ kind: 'withdrawal', pubkey, amountGwei: amountGwei as Gwei })).toThrow(RequestEncodingError)
  })

  test('of a withdrawal never reads as an exit, whatever the amount', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: maxUint64 }), (amount) => {
        const request = { kind: 'withdrawal', pubkey, amountGwei: gwei(amount) } as const
        expect(decodeRequestCalldata(encodeRequestCalldata(request))).toEqual(request)
      }),
    )
  })

  test.each([
    { name: 'one byte short', bad: `0x${'ab'.repeat(47)}` },
    { name: 'one byte long', bad: `0x${'ab'.repeat(49)}` },
    { name: 'without 0x', bad: 'ab'.repeat(49) },
    { name: 'not in hex', bad: `0x${'zz'.repeat(48)}` },
    { name: 'empty', bad: '' },
  ])('takes no public key that is $name', ({ bad }) => {
    expect(() => encodeRequestCalldata({ kind: 'exit', pubkey: bad as Hex })).toThrow(RequestEncodingError)
  })

  test.each([
    { name: 'nothing (a question for the fee)', bad: '0x' },
    { name: '55 bytes', bad: `0x${'00'.repeat(55)}` },
    { name: '57 bytes', bad: `0x${'00'.repeat(57)}` },
    { name: 'half a byte more', bad: `0x${'00'.repeat(56)}0` },
    { name: 'white space at the end', bad: `0x${'00'.repeat(56)}\n` },
  ])('is not $name', ({ bad }) => {
    expect(() => decodeRequestCalldata(bad as Hex)).toThrow(RequestEncodingError)
  })

  test('is in lower case, so that it can be compared byte for byte', () => {
    expect(encodeRequestCalldata({ kind: 'exit', pubkey: `0x${'AB'.repeat(48)}` as const })).toBe(
      encodeRequestCalldata({ kind: 'exit', pubkey }),
    )
  })
})

describe('a log of the contract', () => {
  const source: Hex = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
  test('names the caller and its request', () => {
    // As anvil showed it.
    const data: Hex = `${source}${'ab'.repeat(48)}0000000000000005`
    expect(decodeRequestLog({ topics: [], data })).toEqual({ source, request: { kind: 'withdrawal', pubkey, amountGwei: 5n } })
  })
  test.each<{ name: string; topics: Hex[]; data: Hex }>([
    { name: 'a topic', topics: [`0x${'00'.repeat(32)}`], data: `0x${'00'.repeat(76)}` },
    { name: 'too few bytes', topics: [], data: `0x${'00'.repeat(75)}` },
    { name: 'too many bytes', topics: [], data: `0x${'00'.repeat(77)}` },
  ])('with $name is none', ({ topics, data }) => {
    expect(() => decodeRequestLog({ topics, data })).toThrow(RequestEncodingError)
  })
})

describe('the fee', () => {
  test.each([
    { excess: 0n, fee: 1n },
    { excess: 17n, fee: 2n },
    { excess: 50n, fee: 18n },
    { excess: 100n, fee: 357n },
    { excess: 200n, fee: 128_545n },
  ])('at an excess of $excess is $fee wei', ({ excess, fee }) => {
    expect(feeAtExcess(excess)).toBe(fee)
  })

  test('is close to the exponential that it approximates', () => {
    for (const numerator of [1n, 5n, 20n, 100n]) {
      const expected = 1_000_000 * Math.exp(Number(numerator) / 17)
      expect(Math.abs(Number(fakeExponential(1_000_000n, numerator, 17n)) - expected)).toBeLessThan(expected * 1e-5 + 2)
    }
  })

  test.each([
    { fee: 1n, sent: 101n },
    { fee: 400n, sent: 500n },
    { fee: 401n, sent: 502n },
    { fee: 128_545n, sent: 160_682n },
  ])('of $fee wei is sent as $sent wei', ({ fee, sent }) => {
    expect(withFeeHeadroom(wei(fee))).toBe(sent)
  })

  const chain = (answer: Hex, asked: unknown[] = []) => ({
    head: async () => ({ latest: 7n, final: 5n, baseFeePerGas: wei(1n) }),
    call: async (call: unknown) => {
      asked.push(call)
      return answer
    },
  })

  test('is asked for with empty data, at the block that is named', async () => {
    const asked: unknown[] = []
    expect(await readRequestFee(chain(`0x${'12'.padStart(64, '0')}`, asked), never)).toEqual({ feeWei: 18n, quotedAtBlock: 7n })
    expect(asked).toEqual([{ to: withdrawalRequestContract, data: '0x', blockNumber: 7n }])
  })

  test('of a contract that is not switched on is waited for, in words', async () => {
    const reverts = { ...chain('0x'), call: () => Promise.reject(new ChainError('reverted', 'the call would be reverted')) }
    await expect(readRequestFee(reverts, never)).rejects.toMatchObject({
      code: 'unavailable',
      retryAfterMs: 60_000,
      message: expect.stringContaining('not switched on at block 7'),
    })
    const fails = { ...chain('0x'), call: () => Promise.reject(new ChainError('unavailable', 'no answer')) }
    await expect(readRequestFee(fails, never)).rejects.toMatchObject({ message: 'no answer' })
  })

  test.each<{ name: string; answer: Hex }>([
    { name: 'an account without code', answer: '0x' },
    { name: 'a contract that asks for nothing', answer: `0x${'0'.repeat(64)}` },
    { name: 'a contract that answers more', answer: `0x${'0'.repeat(128)}` },
  ])('of $name is none', async ({ answer }) => {
    await expect(readRequestFee(chain(answer), never)).rejects.toMatchObject({ code: 'rejected' })
  })
})
