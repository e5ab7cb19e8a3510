import fc from 'fast-check'
import { bytesToHex } from 'viem'
import { expect, test } from 'vitest'
import { createDepositIndex } from './deposit-index.ts'

const key = (text: string) => `0x${text.padEnd(96, '0')}` as const

test('finds every block of a key, once each and ascending', () => {
  const index = createDepositIndex(2)
  index.add(key('aa11'), 9n)
  index.add(key('bb22'), 5n)
  index.add(key('aa11'), 3n)
  index.add(key('aa11'), 9n)
  expect(index.find(key('aa11'))).toEqual([3n, 9n])
  expect(index.find(key('bb22'))).toEqual([5n])
  expect(index.find(key('cc33'))).toEqual([])
  expect(index.size).toBe(3)
})

test('block 0 and the last that fits', () => {
  const index = createDepositIndex()
  index.add(key('aa'), 0n)
  index.add(key('aa'), 4_294_967_294n)
  expect(index.find(key('aa'))).toEqual([0n, 4_294_967_294n])
  expect(() => index.add(key('aa'), 4_294_967_295n)).toThrow(RangeError)
})

test('never leaves a block out, however the keys are chosen', () => {
  const pubkey = fc.oneof(
    fc.uint8Array({ minLength: 48, maxLength: 48 }).map(bytesToHex),
    // Keys that share many bits.
    fc.nat(7).map((n) => key(`a000000000000000${n}`)),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(pubkey, fc.bigInt(0n, 40n)), { maxLength: 300 }), (deposits) => {
      const index = createDepositIndex(2)
      for (const [pubkey, block] of deposits) index.add(pubkey, block)
      for (const [pubkey, block] of deposits) expect(index.find(pubkey)).toContain(block)
    }),
  )
})

test('a few hundred thousand deposits fit, and are found', () => {
  const index = createDepositIndex()
  const nth = (n: number) =>
    key(
      `a0${Math.imul(n, 2_654_435_761 | 0)
        .toString(16)
        .replace('-', '')
        .padStart(8, '0')}${n.toString(16).padStart(8, '0')}`,
    )
  for (let n = 0; n < 300_000; n++) index.add(nth(n), BigInt(n))
  for (let n = 0; n < 300_000; n += 997) expect(index.find(nth(n))).toEqual([BigInt(n)])
})
