import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { ethereumNetworkConfig } from '../../../src/chains/ethereum/networks.ts'
import { encodeRequestCalldata, withdrawalRequestContract } from '../../../src/chains/ethereum/requests.ts'
import { createEthereumChain } from '../../../src/chains/ethereum/rpc-chain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import type { FaultyProxy } from '../../chains/faulty-http.ts'
import { rpcError, startFaultyRpc } from '../../chains/faulty-rpc.ts'

const never = new AbortController().signal
/** Of one genesis; they never hear of each other. */
let anvil: Anvil
let island: Anvil
/** A first node in front of `anvil` that misbehaves when it is told to. */
let gateway: FaultyProxy

beforeAll(async () => {
  ;[anvil, island] = await Promise.all([startAnvil({ mining: 'manual' }), startAnvil({ mining: 'manual' })])
  gateway = await startFaultyRpc(anvil.url)
})
afterAll(async () => {
  await gateway?.stop()
  await Promise.all([anvil?.stop(), island?.stop()])
})
beforeEach(() => gateway.clear())

const chainOf = (rpcUrls: string[], more: { confirmations?: number } = {}) =>
  createEthereumChain({
    config: ethereumNetworkConfig.parse({
      name: 'devnet',
      chain: 'Ethereum',
      rpcUrls,
      chainId: anvil.chainId,
      depositContractAddress: anvil.depositContract,
      genesisForkVersion: '0x10000910',
      pollIntervalMs: 200,
      ...more,
    }),
    clock: systemClock,
    timeoutMs: 3000,
  })

const signer = () => {
  const [account] = anvil.accounts
  if (account === undefined) throw new Error('no account')
  return privateKeyToAccount(account.privateKey)
}
const pubkey: Hex = `0x${'ab'.repeat(48)}`
async function sign(more: { nonce?: number; to?: Hex; data?: Hex; value?: bigint } = {}) {
  const { nonce = await anvil.transactionCount(signer().address), to = signer().address, data = '0x', value = 0n } = more
  return signer().signTransaction({
    type: 'eip1559',
    chainId: anvil.chainId,
    nonce,
    to,
    data,
    value,
    gas: 300_000n,
    maxFeePerGas: 10n ** 10n,
    maxPriorityFeePerGas: 10n ** 9n,
  })
}
const hashOf = async (chain: ReturnType<typeof chainOf>, raw: Hex): Promise<Hex> => chain.broadcast(raw, never)

interface RpcCall {
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

describe('two nodes of one chain', () => {
  test('agree on a transaction from the pool to its end, and on who used its nonce', async () => {
    const chain = chainOf([gateway.url, anvil.url])
    const nonce = await anvil.transactionCount(signer().address)
    const hash = await hashOf(chain, await sign())
    expect(await chain.trace([hash], never)).toMatchObject({ known: new Set([hash]), silent: [] })
    expect(await chain.laneCounts(signer().address, never)).toMatchObject({ latest: nonce, pending: nonce + 1 })
    expect(await chain.nonceUse(signer().address, nonce, never)).toEqual({ is: 'unused' })

    await anvil.mine()
    expect(await chain.trace([hash], never)).toMatchObject({ mined: { hash } })
    await anvil.mine(2)
    const { final } = await chain.trace([hash], never)
    expect(final).toMatchObject({ hash, success: true })
    if (final === undefined) return
    expect(await chain.finalEverywhere({ number: final.blockNumber, hash: final.blockHash }, never)).toBe('agreed')
    expect(await chain.laneCounts(signer().address, never)).toMatchObject({ final: nonce + 1, finalEverywhere: nonce + 1 })
    await anvil.mine(40)
    expect(await chain.nonceUse(signer().address, nonce, never)).toMatchObject({ is: 'used', transaction: { hash, nonce } })
  })

  test('of which the first answers for a final block as for the pool count as the second does', async () => {
    gateway.when('eth_getTransactionCount').always({
      kind: 'rewrite',
      rewrite: (body, { body: request }) => {
        const calls = [JSON.parse(request) as RpcCall | RpcCall[]].flat()
        const pending = [body as { id: number; result: Hex }[]]
          .flat()
          .find(({ id }) => calls.some((one) => one.id === id && one.params[1] === 'pending'))
        const changed = [body as { id: number; result: Hex }[]].flat().map((answer) => {
          const call = calls.find(({ id }) => id === answer.id)
          const isFinal = call?.method === 'eth_getTransactionCount' && String(call.params[1]).startsWith('0x')
          return isFinal && pending !== undefined ? { ...answer, result: pending.result } : answer
        })
        return Array.isArray(body) ? changed : changed[0]
      },
    })
    const chain = chainOf([gateway.url, anvil.url])
    const count = await anvil.transactionCount(signer().address)
    await hashOf(chain, await sign())
    expect(await chain.laneCounts(signer().address, never)).toMatchObject({ final: count, finalEverywhere: undefined, pending: count + 1 })
    expect(await chain.transactionCount(signer().address, 'final', never)).toBe(count)
    await anvil.mine(3)
  })

  test('of which the first refuses a method', async () => {
    gateway.when('eth_getBalance').always(rpcError('not on your plan', { code: -32001 }))
    const chain = chainOf([gateway.url, anvil.url])
    expect(await chain.balance(signer().address, never)).toBeGreaterThan(0n)
    await chain.balance(signer().address, never)
    expect(gateway.calls('eth_getBalance')).toBe(1)
    await expect(chainOf([gateway.url]).balance(signer().address, never)).rejects.toThrow(/eth_getBalance/)
  })

  test('show the requests of a sender for a key', async () => {
    const chain = chainOf([gateway.url, anvil.url])
    const fromBlock = BigInt(await anvil.blockNumber())
    const data = encodeRequestCalldata({ kind: 'exit', pubkey })
    const hash = await hashOf(chain, await sign({ to: withdrawalRequestContract, data, value: 1000n }))
    await anvil.mine(1)
    expect(await chain.requestLogs({ sender: signer().address, pubkey, fromBlock }, never)).toMatchObject([
      { amountGwei: 0n, transactionHash: hash },
    ])
    await anvil.mine(2)
  })
})

describe('two nodes of one genesis on forks of their own', () => {
  test('disagree on what only one of them has: it is not final, and the other is sent it', async () => {
    const blocks = await anvil.blockNumber()
    await island.mine(blocks + 10)
    const alone = chainOf([anvil.url])
    const hash = await hashOf(alone, await sign())
    await anvil.mine(3)
    expect(await alone.trace([hash], never)).toMatchObject({ final: { hash } })

    const both = chainOf([anvil.url, island.url])
    const trace = await both.trace([hash], never)
    expect(trace.final).toBeUndefined()
    expect(trace).toMatchObject({ disagreement: { nodes: [1, 2] }, lackedBy: new Map([[hash, [1]]]), silent: [] })
    const receipt = await alone.receipt(hash, never)
    if (receipt === undefined) throw new Error('no receipt')
    expect(await both.finalEverywhere({ number: receipt.blockNumber, hash: receipt.blockHash }, never)).toBe('disagreed')
  })

  test('one silent: nothing is proven', async () => {
    const chain = chainOf([anvil.url, 'http://127.0.0.1:9'])
    const nonce = (await anvil.transactionCount(signer().address)) - 1
    expect(await chain.nonceUse(signer().address, nonce, never)).toMatchObject({ is: 'unproven', why: expect.stringContaining('node 2') })
    expect(await chain.laneCounts(signer().address, never)).toMatchObject({ finalEverywhere: undefined })
  })
})
