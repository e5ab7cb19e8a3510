import { describe, expect, test } from 'vitest'
import { addressBytes } from './addresses.ts'
import { LayoutError } from './reader.ts'
import { testAddress } from './testing.ts'
import { decodeVoteTerms, voteTermsBytes } from './vote-account.ts'

const key = (number: number) => Buffer.from(addressBytes(testAddress(number)))
const u16 = (value: number) => Buffer.from([value & 0xff, value >> 8])
const tag = (value: number) => Buffer.from([value, 0, 0, 0])
const bytes = (...parts: Buffer[]) => new Uint8Array(Buffer.concat([...parts, Buffer.alloc(32)]))
const v4 = (commission: number, blockRevenue: number, bls: number) =>
  bytes(tag(3), key(1), key(2), key(3), key(4), u16(commission), u16(blockRevenue), Buffer.alloc(8), Buffer.from([bls]))

describe('a vote account tells what its delegators get', () => {
  test.each([1, 2])('in version tag %i by a percentage', (version) => {
    const data = bytes(tag(version), key(1), key(2), Buffer.from([7]))
    expect(decodeVoteTerms(data)).toEqual({ node: testAddress(1), commissionBps: 700, blockRevenueBps: undefined, blsKey: undefined })
  })
  test.each([
    { commission: 725, blockRevenue: 10_000, bls: 1 },
    { commission: 0, blockRevenue: 0, bls: 0 },
    { commission: 10_000, blockRevenue: 5_000, bls: 1 },
    { commission: 65_535, blockRevenue: 10_000, bls: 0 },
  ])('in version 4 by basis points: $commission and $blockRevenue', ({ commission, blockRevenue, bls }) => {
    expect(decodeVoteTerms(v4(commission, blockRevenue, bls))).toEqual({
      node: testAddress(1),
      commissionBps: commission,
      blockRevenueBps: blockRevenue,
      blsKey: bls === 1,
    })
  })
  test('in the bytes that are asked for', () => {
    expect(decodeVoteTerms(v4(1, 2, 1).slice(0, voteTermsBytes)).blsKey).toBe(true)
  })
  test.each([
    { what: 'the first version', data: bytes(tag(0), key(1)) },
    { what: 'a version that is not known', data: bytes(tag(9), key(1), key(2)) },
    { what: 'too few bytes', data: new Uint8Array(tag(2)) },
  ])('and $what is refused', ({ data }) => {
    expect(() => decodeVoteTerms(data)).toThrow(LayoutError)
  })
})
