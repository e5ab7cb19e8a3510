import { keccak256, toHex } from 'viem'
import { privateKeyToAccount, sign } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import type { Address, Hash, Hex } from './chain.ts'
import { CURVE_ORDER, formatSignature, parseDer, parseSignature, signatureBy, signerOf } from './signature.ts'

const key = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const { address } = privateKeyToAccount(key) as { readonly address: Address }
const digest = keccak256(toHex('a digest')) as Hash
const bytes = (hex: string) => new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
const half = CURVE_ORDER >> 1n

describe('a signature in DER', () => {
  test.each([
    ['of the smallest numbers', '30 06 02 01 01 02 01 01', 1n, 1n],
    ['with a zero before a high bit', '30 08 02 02 00 80 02 02 00 ff', 0x80n, 0xffn],
    [
      'of 33 and 32 bytes',
      `30 45 02 21 00 ${'ff'.repeat(32)} 02 20 7f${'ee'.repeat(31)}`,
      BigInt(`0x${'ff'.repeat(32)}`),
      BigInt(`0x7f${'ee'.repeat(31)}`),
    ],
    ['shorter than usual', `30 25 02 01 05 02 20 ${'11'.repeat(32)}`, 5n, BigInt(`0x${'11'.repeat(32)}`)],
  ])('%s is read', (_what, der, r, s) => {
    expect(parseDer(bytes(der))).toEqual({ r, s })
  })

  test.each([
    ['nothing', ''],
    ['no sequence', '31 06 02 01 01 02 01 01'],
    ['another length than its own', '30 07 02 01 01 02 01 01'],
    ['bytes after it', '30 06 02 01 01 02 01 01 00'],
    ['bytes after its numbers', '30 08 02 01 01 02 01 01 05 00'],
    ['a third number', '30 09 02 01 01 02 01 01 02 01 01'],
    ['one number', '30 06 02 04 01 02 01 01'],
    ['a negative number', '30 06 02 01 80 02 01 01'],
    ['a zero too many', '30 07 02 02 00 01 02 01 01'],
    ['an empty number', '30 06 02 00 02 02 01 01'],
    ['a number beyond the end', '30 06 02 01 01 02 09 01'],
    ['a number of 34 bytes', `30 27 02 22 ${'11'.repeat(34)} 02 01 01`],
    ['a length in two bytes', `30 81 06 02 01 01 02 01 01`],
  ])('%s is refused', (_what, der) => {
    expect(() => parseDer(bytes(der))).toThrow(/^(is|has|ends) /)
  })
})

describe('low s and the recovery id', () => {
  const of = async (n: number) => {
    const hash = keccak256(toHex(n, { size: 32 })) as Hash
    const { r, s, yParity } = await sign({ hash, privateKey: key })
    return { hash, r: BigInt(r), s: BigInt(s), yParity }
  }

  test('are found for any digest, whichever of the two s was given', async () => {
    const parities = new Set<number>()
    for (let n = 0; n < 24; n++) {
      const { hash, r, s, yParity } = await of(n)
      const expected = { r, s, yParity }
      expect(s <= half).toBe(true)
      expect(await signatureBy(address, hash, { r, s })).toEqual(expected)
      expect(await signatureBy(address, hash, { r, s: CURVE_ORDER - s })).toEqual(expected)
      parities.add(yParity ?? -1)
    }
    expect([...parities].toSorted()).toEqual([0, 1])
  })

  test('are not found for another digest, another key, or numbers off the curve', async () => {
    const { hash, r, s } = await of(1)
    const other = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' as Address
    await expect(signatureBy(address, digest, { r, s })).rejects.toThrow(/not of the key of 0xf39F/)
    await expect(signatureBy(other, hash, { r, s })).rejects.toThrow(/not of the key of 0x7099/)
    for (const bad of [0n, CURVE_ORDER, CURVE_ORDER + 1n]) {
      await expect(signatureBy(address, hash, { r: bad, s })).rejects.toThrow(/not on the curve/)
      await expect(signatureBy(address, hash, { r, s: bad })).rejects.toThrow(/not on the curve/)
    }
    // No point has this x: x³ + 7 is no square.
    await expect(signatureBy(address, hash, { r: 5n, s })).rejects.toThrow(/not of the key/)
  })

  test('a high s is of nobody: no node takes it', async () => {
    const { hash, r, s, yParity } = await of(2)
    const of2 = { r, s, yParity: yParity === 1 ? 1 : 0 } as const
    expect(await signerOf(hash, of2)).toBe(address)
    expect(await signerOf(hash, { r, s: CURVE_ORDER - s, yParity: of2.yParity === 1 ? 0 : 1 })).toBeUndefined()
    expect(await signerOf(hash, { ...of2, s: half + 1n })).toBeUndefined()
  })
})

test('a signature is written and read as 65 bytes', () => {
  const signature = { r: 1n, s: half, yParity: 1 } as const
  const text = formatSignature(signature)
  expect(text).toHaveLength(2 + 130)
  expect(parseSignature(text)).toEqual(signature)
  expect(parseSignature(text.toUpperCase().replace('0X', '0x'))).toEqual(signature)
  for (const bad of ['', '0x', text.slice(0, -1), `${text}0`, `${text.slice(0, -2)}1b`, ` ${text}`])
    expect(parseSignature(bad as Hex)).toBeUndefined()
})
