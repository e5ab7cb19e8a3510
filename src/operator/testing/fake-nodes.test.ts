import { keccak256 } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Hex } from '../../chains/ethereum/chain.ts'
import { createFakeChain, type FakeChain } from './fake-chain.ts'

const never = new AbortController().signal
const account = privateKeyToAccount(`0x${'11'.repeat(32)}`)
const contract = `0x${'dc'.repeat(20)}` as const
let fake: FakeChain
beforeEach(() => {
  fake = createFakeChain({ chainId: 5, contract, depth: 2, nodes: 2 })
  fake.fund(account.address, 10n ** 20n)
})
const [first, second] = [0, 1] as const
const nodeOf = (index: number) => {
  const node = fake.nodes[index]
  if (node === undefined) throw new Error(`no node ${index}`)
  return node
}
const sign = (nonce = 0, maxFeePerGas = 20n * 10n ** 9n): Promise<Hex> =>
  account.signTransaction({
    type: 'eip1559',
    chainId: 5,
    nonce,
    to: account.address,
    gas: 21_000n,
    maxFeePerGas,
    maxPriorityFeePerGas: maxFeePerGas / 10n,
  })
const traceOf = (raw: Hex) => fake.chain.trace([keccak256(raw)], never)
const countsOf = () => fake.chain.laneCounts(account.address, never)

test('healthy nodes agree on a transaction from the pool to its end', async () => {
  const raw = await sign()
  const hash = keccak256(raw)
  expect(await fake.chain.send(raw, [first], never)).toEqual([{ node: 0, is: 'taken' }])
  expect(await traceOf(raw)).toMatchObject({ known: new Set([hash]), lackedBy: new Map([[hash, []]]), silent: [] })
  fake.mine()
  expect(await traceOf(raw)).toMatchObject({ mined: { hash } })
  expect(await fake.chain.nonceUse(account.address, 0, never)).toEqual({ is: 'unused' })
  fake.mine(2)
  expect(await traceOf(raw)).toMatchObject({ final: { hash } })
  expect(await countsOf()).toMatchObject({ final: 1, finalEverywhere: 1, latest: 1, pending: 1 })
  expect(await fake.chain.nonceUse(account.address, 0, never)).toMatchObject({ is: 'used', transaction: { hash } })
})

describe('a node that', () => {
  let raw: Hex
  let hash: Hex
  beforeEach(async () => {
    raw = await sign()
    hash = keccak256(raw)
  })
  const settle = async () => {
    await fake.chain.send(raw, 'all', never)
    fake.mine(3)
  }

  test('is silent proves nothing', async () => {
    await settle()
    nodeOf(second).silent = true
    expect(await traceOf(raw)).toMatchObject({ final: { hash }, silent: [1] })
    expect(await countsOf()).toMatchObject({ final: 1, finalEverywhere: undefined, nodes: [{ final: 1 }, undefined] })
    expect(await fake.chain.nonceUse(account.address, 0, never)).toMatchObject({ is: 'unproven' })
    nodeOf(first).silent = true
    await expect(fake.chain.trace([hash], never)).rejects.toMatchObject({ code: 'unavailable' })
    expect(await fake.chain.send(raw, 'all', never)).toEqual([
      { node: 0, is: 'refused', code: 'unavailable' },
      { node: 1, is: 'refused', code: 'unavailable' },
    ])
  })

  test('stands still has old counts, and is not the one that is asked', async () => {
    nodeOf(first).stillAt = 0
    await settle()
    fake.mine(3)
    expect((await fake.chain.head(never)).latest).toBe(6n)
    expect(await countsOf()).toMatchObject({ final: 1, finalEverywhere: 0 })
    expect(await traceOf(raw)).toMatchObject({ final: { hash }, lackedBy: new Map([[hash, [0]]]) })
    expect(await fake.chain.nonceUse(account.address, 0, never)).toEqual({ is: 'unused' })
  })

  test('lags comes along', async () => {
    nodeOf(second).lag = 3
    await settle()
    const { final } = await traceOf(raw)
    if (final === undefined) throw new Error('not final')
    const block = { number: final.blockNumber, hash: final.blockHash }
    expect(await fake.chain.finalEverywhere(block, never)).toBe('unknown')
    fake.mine(3)
    expect(await fake.chain.finalEverywhere(block, never)).toBe('agreed')
  })

  test('is on a fork contradicts', async () => {
    nodeOf(first).fork = { from: 1 }
    await settle()
    const trace = await traceOf(raw)
    expect(trace.final).toBeUndefined()
    expect(trace).toMatchObject({ mined: { hash }, disagreement: { height: 1n, nodes: [1, 2] } })
    expect(await fake.chain.nonceUse(account.address, 0, never)).toMatchObject({ is: 'unproven' })
  })

  test('is on a fork without the transaction lacks it', async () => {
    nodeOf(second).fork = { from: 1, without: [hash] }
    await settle()
    expect(await traceOf(raw)).toMatchObject({ disagreement: { nodes: [1, 2] }, lackedBy: new Map([[hash, [1]]]) })
  })

  test('answers for a final block as for the pool is refused while that can be seen', async () => {
    nodeOf(first).liesAboutFinal = true
    await fake.chain.send(raw, 'all', never)
    expect(await countsOf()).toMatchObject({ final: 0, finalEverywhere: undefined, nodes: [undefined, { pending: 1 }] })
    expect(await fake.chain.transactionCount(account.address, 'final', never)).toBe(0)
  })

  test('keeps to itself has what the other lacks', async () => {
    nodeOf(first).keepsToItself = true
    await fake.chain.send(raw, [first], never)
    expect(await traceOf(raw)).toMatchObject({ known: new Set([hash]), lackedBy: new Map([[hash, [1]]]) })
    fake.mine()
    expect((await traceOf(raw)).mined).toBeUndefined()
    await fake.chain.send(raw, [second], never)
    fake.mine()
    expect(await traceOf(raw)).toMatchObject({ mined: { hash } })
    expect(nodeOf(first).own.size).toBe(0)
  })

  test('forgets takes the bytes and lacks them', async () => {
    nodeOf(first).forgetful = true
    expect(await fake.chain.send(raw, [first], never)).toEqual([{ node: 0, is: 'taken' }])
    expect(await traceOf(raw)).toMatchObject({ known: new Set(), lackedBy: new Map([[hash, [0, 1]]]) })
  })

  test('refuses a method is passed over for that', async () => {
    nodeOf(first).refuses.add('eth_sendRawTransaction')
    expect(await fake.chain.send(raw, 'all', never)).toEqual([
      { node: 0, is: 'refused', code: 'rejected' },
      { node: 1, is: 'taken' },
    ])
    nodeOf(first).refuses.add('eth_getTransactionCount')
    expect(await countsOf()).toMatchObject({ nodes: [undefined, { pending: 1 }] })
  })

  test('says "underpriced" though it took the bytes shows them', async () => {
    nodeOf(first).answersTaken = 'replacement-underpriced'
    expect(await fake.chain.send(raw, [first], never)).toEqual([{ node: 0, is: 'refused', code: 'replacement-underpriced' }])
    expect(await traceOf(raw)).toMatchObject({ known: new Set([hash]) })
  })
})
