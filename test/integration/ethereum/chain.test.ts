import { createPublicClient, http, keccak256 } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { EthereumChain, Hex } from '../../../src/chains/ethereum/chain.ts'
import { encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from '../../../src/chains/ethereum/deposit.ts'
import { ethereumNetworkConfig } from '../../../src/chains/ethereum/networks.ts'
import { createEthereumChain } from '../../../src/chains/ethereum/rpc-chain.ts'
import { gwei, gweiToWei } from '../../../src/lib/amounts.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { freePort } from '../../cluster/ports.ts'

let anvil: Anvil
let deadUrl: string
let chain: EthereumChain
let calls: string[]
const lifetime = new AbortController()
const never = new AbortController().signal

const chainOf = (rpcUrls: string[], more: { chainId?: number; confirmations?: 'finalized' | number } = {}) =>
  createEthereumChain({
    config: ethereumNetworkConfig.parse({
      name: 'devnet',
      chain: 'Ethereum',
      rpcUrls,
      chainId: anvil.chainId,
      depositContractAddress: anvil.depositContract,
      genesisForkVersion: '0x10000910',
      ...more,
    }),
    clock: systemClock,
    timeoutMs: 3000,
    signal: lifetime.signal,
    onCall: (method) => calls.push(method),
  })

beforeAll(async () => {
  anvil = await startAnvil()
  deadUrl = `http://127.0.0.1:${await freePort()}`
})
afterAll(async () => {
  lifetime.abort()
  await anvil.stop()
})
beforeEach(() => {
  calls = []
  // The first URL is dead: everything must work all the same.
  chain = chainOf([deadUrl, anvil.url])
})
afterEach(() => anvil.setAutomine(true))

const sender = () => {
  const [account] = anvil.accounts
  if (account === undefined) throw new Error('no account')
  return privateKeyToAccount(account.privateKey)
}

async function sign(fields: { nonce?: number; data?: Hex; value?: bigint; maxFeePerGas?: bigint; maxPriorityFeePerGas?: bigint } = {}) {
  const {
    nonce = await anvil.transactionCount(sender().address),
    data = '0x',
    value = 0n,
    maxFeePerGas = 10n ** 10n,
    maxPriorityFeePerGas = 10n ** 9n,
  } = fields
  return sender().signTransaction({
    type: 'eip1559',
    chainId: anvil.chainId,
    nonce,
    to: anvil.depositContract,
    data,
    value,
    gas: 300_000n,
    maxFeePerGas,
    maxPriorityFeePerGas,
  })
}
const deposit = (seed: number) =>
  signDepositMessage(new Uint8Array(32).fill(seed), {
    withdrawalCredentials: withdrawalCredentials('0x01', sender().address),
    amountGwei: gwei(32_000_000_000n),
    genesisForkVersion: '0x10000910',
  })
const signDeposit = (seed: number, nonce?: number) =>
  sign({ data: encodeDepositCalldata(deposit(seed)), value: gweiToWei(gwei(32_000_000_000n)), ...(nonce === undefined ? {} : { nonce }) })

/** anvil mines a moment after it took a transaction. */
async function mined(hash: Hex): Promise<Hex> {
  const client = createPublicClient({ transport: http(anvil.url), pollingInterval: 20 })
  await client.waitForTransactionReceipt({ hash, timeout: 60_000 })
  return hash
}

describe('a transaction', () => {
  test('is broadcast, seen in the pool, mined and finalized', async () => {
    await anvil.setAutomine(false)
    const raw = await signDeposit(1)
    const before = await chain.transactionCount(sender().address, 'final', never)
    const hash = await chain.broadcast(raw, never)
    expect(hash).toBe(keccak256(raw))
    expect(await chain.transaction(hash, never)).toMatchObject({
      hash,
      from: sender().address,
      to: anvil.depositContract,
      valueWei: 32n * 10n ** 18n,
    })
    expect(await chain.transaction(hash, never)).not.toHaveProperty('blockNumber')
    expect(await chain.receipt(hash, never)).toBeUndefined()
    expect(await chain.transactionCount(sender().address, 'pending', never)).toBe(before + 1)
    expect(await chain.transactionCount(sender().address, 'latest', never)).toBe(before)
    // The same bytes again are no error.
    expect(await chain.broadcast(raw, never)).toBe(hash)

    await anvil.mine()
    const receipt = await chain.receipt(hash, never)
    expect(receipt).toMatchObject({ hash, success: true, from: sender().address })
    expect(receipt?.logs).toHaveLength(1)
    expect(await chain.transactionCount(sender().address, 'final', never)).toBe(before)
    expect((await chain.head(never)).final < (receipt?.blockNumber ?? 0n)).toBe(true)
    await anvil.mine(2)
    expect(await chain.transactionCount(sender().address, 'final', never)).toBe(before + 1)
    const head = await chain.head(never)
    expect(head.final).toBe(receipt?.blockNumber)
    expect(head.latest).toBe(head.final + 2n)
    expect(head.baseFeePerGas > 0n).toBe(true)
  })

  test.each([
    { name: 'a used nonce', fields: async () => ({ nonce: (await anvil.transactionCount(sender().address)) - 1 }), code: 'nonce-too-low' },
    { name: 'more than the sender has', fields: async () => ({ value: 10n ** 30n }), code: 'insufficient-funds' },
    { name: 'less than the base fee', fields: async () => ({ maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }), code: 'underpriced' },
  ])('with $name is refused as $code', async ({ fields, code }) => {
    await mined(await chain.broadcast(await signDeposit(2), never))
    await expect(chain.broadcast(await sign(await fields()), never)).rejects.toMatchObject({ name: 'ChainError', code })
  })

  test('of a nonce in the pool replaces it only when it pays enough', async () => {
    await anvil.setAutomine(false)
    const nonce = await anvil.transactionCount(sender().address)
    await chain.broadcast(await sign({ nonce }), never)
    await expect(chain.broadcast(await sign({ nonce, maxFeePerGas: 9n * 10n ** 9n }), never)).rejects.toMatchObject({
      code: 'replacement-underpriced',
    })
    await chain.broadcast(await sign({ nonce, maxFeePerGas: 12n * 10n ** 9n, maxPriorityFeePerGas: 12n * 10n ** 8n }), never)
    await anvil.mine()
  })

  test('nobody made is nowhere', async () => {
    expect(await chain.transaction(`0x${'12'.repeat(32)}` as const, never)).toBeUndefined()
    expect(await chain.receipt(`0x${'12'.repeat(32)}` as const, never)).toBeUndefined()
  })
})

test('gas is estimated, and a call that would fail is reverted', async () => {
  const call = { from: sender().address, to: anvil.depositContract, valueWei: gweiToWei(gwei(32_000_000_000n)) }
  expect(await chain.estimateGas({ ...call, data: encodeDepositCalldata(deposit(3)) }, never)).toBeGreaterThan(40_000n)
  const wrong = encodeDepositCalldata({ ...deposit(3), depositDataRoot: `0x${'00'.repeat(32)}` })
  await expect(chain.estimateGas({ ...call, data: wrong }, never)).rejects.toMatchObject({ code: 'reverted' })
})

test('balance and tip', async () => {
  expect(await chain.balance(sender().address, never)).toBeGreaterThan(10n ** 18n)
  expect(await chain.priorityFee(never)).toBeGreaterThanOrEqual(0n)
})

describe('the right chain only', () => {
  test('a node of another chain is never used', async () => {
    const wrong = chainOf([anvil.url], { chainId: 31338 })
    await expect(wrong.head(never)).rejects.toMatchObject({ code: 'wrong-chain' })
    await expect(wrong.broadcast(await sign(), never)).rejects.toMatchObject({ code: 'wrong-chain' })
    expect(new Set(calls)).toEqual(new Set(['eth_chainId']))
  })

  test('no node is unavailable, and no message names the URL', async () => {
    const nowhere = chainOf([`${deadUrl}/v2/secret-api-key`])
    const error = await nowhere.head(never).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'unavailable' })
    expect(String((error as Error).stack)).not.toMatch(/secret-api-key|127\.0\.0\.1/)
  })
})

describe('the deposit history', () => {
  test('has every deposit for a key, also of this moment, and follows a reorg', async () => {
    const { pubkey } = deposit(40)
    expect(await chain.depositsFor(pubkey, never)).toEqual([])
    const hash = await mined(await chain.broadcast(await signDeposit(40), never))
    const [first, ...rest] = await chain.depositsFor(pubkey, never)
    expect(rest).toEqual([])
    expect(first).toMatchObject({ pubkey, amountGwei: 32_000_000_000n, transactionHash: hash, signature: deposit(40).signature })

    await mined(await chain.broadcast(await signDeposit(40), never))
    expect(await chain.depositsFor(pubkey, never)).toHaveLength(2)
    await anvil.reorg(1)
    expect(await chain.depositsFor(pubkey, never)).toMatchObject([{ transactionHash: hash }])
    await anvil.mine(5)
    expect(await chain.depositsFor(pubkey, never)).toMatchObject([{ transactionHash: hash }])
    expect(await chainOf([anvil.url], { confirmations: 2 }).depositsFor(pubkey, never)).toMatchObject([{ transactionHash: hash }])
    expect(await chain.depositsFor(deposit(41).pubkey, never)).toEqual([])
  })

  test('is read once for many who ask at the same head', async () => {
    const { pubkey } = deposit(42)
    await chain.depositsFor(pubkey, never)
    calls.length = 0
    await Promise.all(Array.from({ length: 1000 }, () => chain.depositsFor(pubkey, never)))
    expect(calls.length).toBeLessThan(10)
  })
})
