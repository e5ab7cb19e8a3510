import { PublicKey, StakeProgram } from '@solana/web3.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AddressError, addressBytes, isAddress, isOnCurve, isSignature, signatureBytes } from './addresses.ts'
import { decodeBase58, encodeBase58 } from './base58.ts'
import { stakeAccountAddress } from './stake.ts'
import { example, testAddress } from './testing.ts'

describe('base58', () => {
  // Published with the draft "The Base58 Encoding Scheme" (draft-msporny-base58), and leading zeros.
  test.each([
    { bytes: '48656c6c6f20576f726c6421', text: '2NEpo7TZRRrLZSi2U' },
    { bytes: '0000287fb4cd', text: '11233QC4' },
    {
      bytes: '54686520717569636b2062726f776e20666f78206a756d7073206f76657220746865206c617a7920646f672e',
      text: 'USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z',
    },
    { bytes: '00', text: '1' },
    { bytes: '0000', text: '11' },
  ])('of $bytes is $text', ({ bytes, text }) => {
    expect(encodeBase58(Buffer.from(bytes, 'hex'))).toBe(text)
    expect(Buffer.from(decodeBase58(text) ?? []).toString('hex')).toBe(bytes)
  })

  test('comes back for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), (bytes) => {
        expect(decodeBase58(encodeBase58(bytes))).toEqual(bytes)
      }),
    )
  })

  test.each(['', '0', 'O', 'I', 'l', ' 1', '1\n', 'é', '1'.repeat(129)])('is not %j', (text) => {
    expect(decodeBase58(text)).toBeUndefined()
  })
})

describe('an address', () => {
  test.each([testAddress(1), '11111111111111111111111111111111', StakeProgram.programId.toBase58()])('is %s', (text) => {
    expect(isAddress(text)).toBe(true)
    expect(addressBytes(text)).toEqual(new Uint8Array(new PublicKey(text).toBytes()))
  })

  test.each([
    '',
    'abc',
    '1111111111111111111111111111111',
    '111111111111111111111111111111111',
    `${testAddress(1)} `,
    `0${testAddress(1)}`,
  ])('is not %j', (text) => {
    expect(isAddress(text)).toBe(false)
    expect(() => addressBytes(text)).toThrow(AddressError)
  })

  test.each([
    { what: "the System program's, which is y = 0", bytes: '00'.repeat(32) },
    { what: 'the identity', bytes: `01${'00'.repeat(31)}` },
    { what: 'a point of order 8', bytes: '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05' },
    { what: 'the same with its sign', bytes: '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85' },
    { what: 'the other point of order 8', bytes: 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a' },
    { what: 'the point of order 2', bytes: `ec${'ff'.repeat(30)}7f` },
    { what: 'y = 0 that is not reduced', bytes: `ed${'ff'.repeat(30)}7f` },
  ])('of small order is one that nobody signs for: $what', ({ bytes }) => {
    expect(isOnCurve(encodeBase58(Buffer.from(bytes, 'hex')))).toBe(false)
  })

  test('of a key is on the curve, one that is derived is not', () => {
    expect(isOnCurve(testAddress(1))).toBe(true)
    const off = ['a', 'b', 'c', 'd', 'e', 'f'].map((seed) => stakeAccountAddress(example.feePayer, seed))
    // About half of all hashes are points by chance.
    expect(off.some((address) => !isOnCurve(address))).toBe(true)
    expect(isOnCurve('not an address')).toBe(false)
  })

  test('is no signature', () => {
    expect(isSignature(testAddress(1))).toBe(false)
    expect(() => signatureBytes(testAddress(1))).toThrow(AddressError)
    expect(isSignature(encodeBase58(new Uint8Array(64).fill(9)))).toBe(true)
  })
})

describe("a stake account's address", () => {
  test.each(['a', example.seed, 'ü'.repeat(16)])('of the seed %s is the one that the cluster computes', async (seed) => {
    const expected = await PublicKey.createWithSeed(new PublicKey(example.feePayer), seed, StakeProgram.programId)
    expect(stakeAccountAddress(example.feePayer, seed)).toBe(expected.toBase58())
  })

  test.each(['', 'x'.repeat(33), 'ü'.repeat(17)])('is refused for the seed %j, which is empty or over 32 bytes', (seed) => {
    expect(() => stakeAccountAddress(example.feePayer, seed)).toThrow(RangeError)
  })
})
