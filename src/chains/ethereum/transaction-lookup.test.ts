import { keccak256, parseTransaction, type TransactionSerializable, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import type { Hash, Hex } from './chain.ts'
import { isProven } from './proven-transaction.ts'
import { transaction as transactionFormat } from './rpc-formats.ts'
import { chainOverNodes, createTestNode } from './test-nodes.ts'

/** The well-known first account of test networks. */
const account = privateKeyToAccount('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80')
const never = new AbortController().signal
const to = `0x${'aa'.repeat(20)}` as const
const common = { chainId: 5, nonce: 7, to, value: 5n, data: '0x1234', gas: 50_000n } as const

/** As a node shows a signed transaction (ethereum/execution-apis). */
async function shown(transaction: TransactionSerializable): Promise<Record<string, unknown> & { readonly hash: Hash }> {
  const raw = await account.signTransaction(transaction)
  const { type, r, s, v, yParity, ...fields } = parseTransaction(raw) as Record<string, unknown> & {
    readonly type: string
    readonly v?: bigint
    readonly yParity?: number
  }
  const types: Record<string, Hex> = { legacy: '0x0', eip2930: '0x1', eip1559: '0x2', eip4844: '0x3', eip7702: '0x4' }
  const json: Record<string, unknown> = {
    type: types[type],
    from: account.address.toLowerCase(),
    r,
    s,
    v: toHex(v ?? yParity ?? 0),
    blockNumber: null,
    blockHash: null,
  }
  if (type !== 'legacy') json.yParity = toHex(yParity ?? 0)
  const inJson = (value: unknown): unknown => (typeof value === 'bigint' || typeof value === 'number' ? toHex(value) : value)
  for (const [name, value] of Object.entries(fields)) json[name === 'data' ? 'input' : name] = inJson(value)
  if (type === 'eip7702')
    json.authorizationList = (fields.authorizationList as readonly Record<string, unknown>[]).map((one) =>
      Object.fromEntries(Object.entries(one).map(([name, value]) => [name, inJson(value)])),
    )
  return { input: '0x', value: '0x0', nonce: '0x0', to: null, ...json, hash: keccak256(raw) as Hash }
}
const dear = { maxFeePerGas: 9n, maxPriorityFeePerGas: 1n }
const kinds: readonly (readonly [string, () => Promise<TransactionSerializable>])[] = [
  ['legacy', async () => ({ ...common, type: 'legacy', gasPrice: 9n })],
  ['legacy, of before EIP-155', async () => ({ ...common, chainId: undefined, type: 'legacy', gasPrice: 9n })],
  [
    'EIP-2930',
    async () => ({ ...common, type: 'eip2930', gasPrice: 9n, accessList: [{ address: to, storageKeys: [`0x${'01'.repeat(32)}`] }] }),
  ],
  ['EIP-1559', async () => ({ ...common, type: 'eip1559', ...dear })],
  ['EIP-1559, that makes a contract', async () => ({ ...common, to: undefined, type: 'eip1559', ...dear })],
  ['EIP-1559, the first and of nothing', async () => ({ chainId: 5, nonce: 0, to, gas: 21_000n, type: 'eip1559', ...dear })],
  [
    'EIP-4844',
    async () => ({ ...common, type: 'eip4844', ...dear, maxFeePerBlobGas: 3n, blobVersionedHashes: [`0x01${'ab'.repeat(31)}`] }),
  ],
  [
    'EIP-7702',
    async () => ({
      ...common,
      type: 'eip7702',
      ...dear,
      authorizationList: [await account.signAuthorization({ address: to, chainId: 5, nonce: 8 })],
    }),
  ],
]
const honest = await shown({ ...common, type: 'eip1559', ...dear })
const proven = async (json: unknown) => isProven(json, transactionFormat.parse(json))

describe('what a node shows of a transaction', () => {
  test.each(kinds)('%s is proven by its hash and its signature', async (_, make) => {
    expect(await proven(await shown(await make()))).toBe(true)
  })

  test.each<[string, Record<string, unknown>]>([
    ['another nonce', { nonce: '0x8' }],
    ['another sender', { from: `0x${'bb'.repeat(20)}` }],
    ['another recipient', { to: `0x${'bb'.repeat(20)}` }],
    ['other calldata', { input: '0x1235' }],
    ['another amount', { value: '0x6' }],
    ['no signature', { r: undefined, s: undefined, v: undefined, yParity: undefined }],
    ['a type that nobody knows', { type: '0x7e', maxFeePerGas: undefined, maxPriorityFeePerGas: undefined }],
  ])('%s is not', async (_, lie) => {
    expect(await proven({ ...honest, ...lie })).toBe(false)
  })
})

describe('a transaction is looked for', () => {
  const { hash } = honest
  const lie = { ...honest, nonce: '0x3' }
  const over = (...answers: readonly unknown[]) =>
    chainOverNodes(answers.map((answer) => createTestNode({ says: new Map([['eth_getTransactionByHash', () => answer]]) }))).chain

  test.each([
    ['first', [lie, honest]],
    ['last', [honest, lie]],
  ])('and who lies about its nonce is not believed, though it answers %s', async (_, answers) => {
    expect(await over(...answers).transaction(hash, never)).toMatchObject({ nonce: 7, from: account.address })
  })

  test('and what one node of two makes up of it is not believed', async () => {
    await expect(over(lie, null).transaction(hash, never)).rejects.toMatchObject({ code: 'unavailable' })
    await expect(over(lie, { ...lie, nonce: '0x4' }).transaction(hash, never)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('and one node that proves it is enough', async () => {
    expect(await over(null, honest).transaction(hash, never)).toMatchObject({ nonce: 7 })
  })

  test('and without a true signature it is what all nodes show, as that of an account which a test node impersonates', async () => {
    expect(await over(lie, lie).transaction(hash, never)).toMatchObject({ nonce: 3 })
    expect(await over(lie).transaction(hash, never)).toMatchObject({ nonce: 3 })
  })

  test('and may be nowhere', async () => {
    expect(await over(null, null).transaction(hash, never)).toBeUndefined()
  })
})
