import { serializeTransaction, type TransactionSerializable } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { wei } from '../../lib/amounts.ts'
import type { Address, Hex, UnsignedTransaction } from './chain.ts'
import { CURVE_ORDER, parseSignature, word } from './signature.ts'
import { checkSigned, withSignature } from './signed-transaction.ts'

const account = privateKeyToAccount('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80')
const thief = privateKeyToAccount('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d')
const signer = account.address as Address
const asked: UnsignedTransaction = {
  chainId: 560048,
  nonce: 7,
  to: '0x00000000219ab540356cBB839Cbe05303d7705Fa' as Address,
  data: '0x22895118',
  valueWei: wei(32n * 10n ** 18n),
  gas: 100_000n,
  maxFeePerGas: wei(30_000_000_000n),
  maxPriorityFeePerGas: wei(1_000_000_000n),
}
const viemForm = ({ valueWei: value, ...rest }: UnsignedTransaction) => ({ type: 'eip1559' as const, value, ...rest })
const signed = (change: object = {}, by = account): Promise<Hex> =>
  by.signTransaction({ ...viemForm(asked), ...change } as TransactionSerializable)

test('the transaction that was asked for, signed by its key, is taken', async () => {
  const raw = await signed()
  const found = await checkSigned(raw, asked, signer)
  expect(found.raw).toBe(raw)
  const signature = parseSignature(found.signature)
  if (signature === undefined) throw new Error('it has a signature')
  expect(await withSignature(asked, signer, signature)).toEqual(found)
})

test('nonce 0, a value of 0 and no calldata are read as what they are', async () => {
  const nothing = { ...asked, nonce: 0, valueWei: wei(0n), data: '0x' as const }
  expect((await checkSigned(await account.signTransaction(viemForm(nothing)), nothing, signer)).hash).toMatch(/^0x/)
})

describe('is refused and named', () => {
  test.each<[string, object]>([
    ['chain id', { chainId: 1 }],
    ['nonce', { nonce: 8 }],
    ['recipient', { to: thief.address }],
    ['calldata', { data: '0x' }],
    ['value', { value: 33n * 10n ** 18n }],
    ['gas limit', { gas: 100_001n }],
    ['maxFeePerGas', { maxFeePerGas: 30_000_000_001n }],
    ['maxPriorityFeePerGas', { maxPriorityFeePerGas: 2_000_000_000n }],
    ['access list', { accessList: [{ address: thief.address, storageKeys: [] }] }],
  ])('another %s', async (what, change) => {
    await expect(checkSigned(await signed(change), asked, signer)).rejects.toThrow(
      `is another transaction than was asked for: ${what} differs`,
    )
  })

  test('another key', async () => {
    await expect(checkSigned(await signed({}, thief), asked, signer)).rejects.toThrow(/is not of the key of 0xf39F/)
  })

  test('a high s', async () => {
    const { signature } = await checkSigned(await signed(), asked, signer)
    const low = parseSignature(signature)
    if (low === undefined) throw new Error('it has a signature')
    const high = serializeTransaction(viemForm(asked), { r: word(low.r), s: word(CURVE_ORDER - low.s), yParity: low.yParity === 1 ? 0 : 1 })
    await expect(checkSigned(high, asked, signer)).rejects.toThrow(/is not of the key/)
  })

  test.each<[string, (raw: Hex) => Hex | Promise<Hex>]>([
    ['nothing', () => '0x'],
    ['one without a signature', () => serializeTransaction(viemForm(asked))],
    [
      'one of another type',
      () => account.signTransaction({ type: 'eip2930', chainId: 560048, nonce: 7, gas: 1n, gasPrice: 1n, to: asked.to }),
    ],
    ['one that is cut off', (raw) => raw.slice(0, -2) as Hex],
    ['one with bytes after it', (raw) => `${raw}00`],
    ['two', (raw) => `${raw}${raw.slice(2)}`],
    ['no hex', () => '0x02zz'],
    ['a message', () => account.signMessage({ message: 'hello' })],
  ])('%s', async (_what, change) => {
    await expect(checkSigned(await change(await signed()), asked, signer)).rejects.toThrow(/^(is|has) /)
  })
})
