import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createEthereumChain } from '../../../src/chains/ethereum/rpc-chain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/log.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { httpStatus } from '../../chains/faults.ts'
import type { FaultyProxy } from '../../chains/faulty-http.ts'
import { startFaultyRpc } from '../../chains/faulty-rpc.ts'
import { databases, networkConfig, startService, type TestService, withdrawalAddress } from './harness.ts'
import { createPayer } from './payer.ts'

const { both, stop } = databases('tracker')

/** Blocks are mined by the test alone; two on top of a block make it final. */
let anvil: Anvil
let rpc: FaultyProxy
let store: Store
let running: { service: TestService; stop: () => Promise<void> }
let key: string
let payer: ReturnType<typeof createPayer>

beforeAll(async () => {
  anvil = await startAnvil({ mining: 'manual' })
  rpc = await startFaultyRpc(anvil.url)
  payer = createPayer(anvil)
})
afterAll(async () => {
  await rpc?.stop()
  await anvil?.stop()
  await stop()
})
beforeEach(() => anvil.mine())
afterEach(() => rpc.clear())

async function start() {
  const ending = new AbortController()
  const config = networkConfig('devnet', { rpcUrls: [rpc.url] })
  const chain = createEthereumChain({ config, clock: systemClock, timeoutMs: 10_000, signal: ending.signal })
  const service = await startService(store, { networks: new Map([['devnet', { config, chain }]]) })
  const tracking = service.service.tracker.run(ending.signal)
  return {
    service,
    stop: async () => {
      ending.abort()
      await tracking
      await service.close()
    },
  }
}

const newStake = async () => (await running.service.stake(key)).body
const read = async (stakeId: string) => (await running.service.call('GET', `/v1/ethereum/stakes/${stakeId}`, { key })).body.transaction
const report = async (stakeId: string, transactionHash: string) => {
  const answer = await running.service.call('PUT', `/v1/ethereum/stakes/${stakeId}/submission`, { key, body: { transactionHash } })
  expect(answer.status).toBe(200)
}

async function until(stakeId: string, expected: object): Promise<void> {
  const deadline = Date.now() + 40_000
  for (;;) {
    const transaction = await read(stakeId)
    try {
      return expect(transaction).toMatchObject(expected)
    } catch (error) {
      if (Date.now() > deadline) throw error
      await new Promise((done) => setTimeout(done, 30))
    }
  }
}
/** Long enough for the tracker to have looked several times. */
const settle = () => new Promise((done) => setTimeout(done, 400))

describe.each(both)('the tracker on $database', ({ open }) => {
  beforeAll(async () => {
    store = await openStore(await open())
    running = await start()
    key = await running.service.key()
  })
  afterAll(async () => {
    await running?.stop()
    await store?.close()
  })

  test('a deposit is confirmed by a final block, and not before', async () => {
    const stake = await newStake()
    const hash = await payer.pay(stake.unsignedTransaction)
    await report(stake.stakeId, hash)
    await settle()
    expect(await read(stake.stakeId)).toEqual({ status: 'submitted', hash })
    await anvil.mine()
    await until(stake.stakeId, { status: 'submitted', hash, blockNumber: await anvil.blockNumber() })
    await anvil.mine()
    await settle()
    expect(await read(stake.stakeId)).toMatchObject({ status: 'submitted' })
    await anvil.mine()
    await until(stake.stakeId, { status: 'confirmed', hash, blockHash: expect.stringMatching(/^0x/) })
    const deposits = (await anvil.deposits()).filter(({ pubkey }) => pubkey === stake.depositData.pubkey)
    expect(deposits).toMatchObject([{ amountGwei: 32_000_000_000n, signature: stake.depositData.signature }])
  })

  test('a hash that is reported after its block was final is confirmed at once', async () => {
    const stake = await newStake()
    const hash = await payer.pay(stake.unsignedTransaction)
    await anvil.mine(4)
    await report(stake.stakeId, hash)
    await until(stake.stakeId, { status: 'confirmed', hash })
  })

  test('a reverted transaction has failed once it is final, and not before', async () => {
    const stake = await newStake()
    // Enough gas to begin, too little to end.
    const hash = await payer.pay(stake.unsignedTransaction, undefined, 20, 40_000n)
    await report(stake.stakeId, hash)
    await anvil.mine(2)
    await until(stake.stakeId, { status: 'submitted', blockNumber: expect.any(Number) })
    await anvil.mine()
    await until(stake.stakeId, { status: 'failed', hash, failureReason: 'the transaction was reverted' })
  })

  test.each([
    {
      what: 'a plain payment',
      call: () => ({ to: withdrawalAddress, data: '0x', valueWei: 1n }) as const,
      reason: /makes no deposit/,
    },
    {
      what: "another stake's deposit",
      call: async () => (await newStake()).unsignedTransaction,
      reason: /another deposit/,
    },
  ])('$what does not pay the stake', async ({ call, reason }) => {
    const stake = await newStake()
    const hash = await payer.pay(await call())
    await report(stake.stakeId, hash)
    await anvil.mine(3)
    await until(stake.stakeId, { status: 'failed', hash, failureReason: expect.stringMatching(reason) })
  })

  test('a fee replacement is confirmed, whichever lands', async () => {
    for (const landing of ['the replacement', 'the replaced one, reported last'] as const) {
      const stake = await newStake()
      const nonce = await payer.nonce()
      const cheap = await payer.pay(stake.unsignedTransaction, nonce, 20)
      await report(stake.stakeId, cheap)
      await settle()
      const dear = await payer.pay(stake.unsignedTransaction, nonce, 40)
      await report(stake.stakeId, dear)
      if (landing === 'the replacement') {
        await anvil.mine(3)
        await until(stake.stakeId, { status: 'confirmed', hash: dear })
      } else {
        // A node may have kept the first one: it is mined in the other's place.
        const raw = await payer.sign(stake.unsignedTransaction, nonce, 20)
        await anvil.mine()
        await anvil.reorg(1, [{ raw, block: 0 }])
        await anvil.mine(3)
        await until(stake.stakeId, { status: 'confirmed', hash: cheap })
      }
    }
  })

  test('a transaction that leaves the chain is waited for again, and confirmed when it is back', async () => {
    const stake = await newStake()
    const nonce = await payer.nonce()
    const raw = await payer.sign(stake.unsignedTransaction, nonce)
    const hash = await payer.broadcast(raw)
    await report(stake.stakeId, hash)
    await anvil.mine()
    await until(stake.stakeId, { status: 'submitted', hash, blockNumber: expect.any(Number) })
    await anvil.reorg(1)
    await anvil.mine()
    const deadline = Date.now() + 40_000
    while ('blockNumber' in (await read(stake.stakeId)) && Date.now() < deadline) await settle()
    expect(await read(stake.stakeId)).toEqual({ status: 'submitted', hash })
    await anvil.mine(3)
    await settle()
    expect(await read(stake.stakeId)).toEqual({ status: 'submitted', hash })
    await payer.broadcast(raw)
    await anvil.mine(3)
    await until(stake.stakeId, { status: 'confirmed', hash })
  })

  test('an outage of the node loses nothing', async () => {
    const stake = await newStake()
    const hash = await payer.pay(stake.unsignedTransaction)
    await report(stake.stakeId, hash)
    rpc.when(/.*/).always(httpStatus(503))
    await anvil.mine(3)
    await settle()
    expect(await read(stake.stakeId)).toEqual({ status: 'submitted', hash })
    rpc.clear()
    await until(stake.stakeId, { status: 'confirmed', hash })
  })

  test('a restart loses nothing', async () => {
    const stake = await newStake()
    const hash = await payer.pay(stake.unsignedTransaction)
    await report(stake.stakeId, hash)
    await running.stop()
    await anvil.mine(3)
    running = await start()
    await until(stake.stakeId, { status: 'confirmed', hash })
  })

  test('two instances side by side confirm the same stakes once each', async () => {
    const second = await start()
    try {
      const stakes = []
      for (let count = 0; count < 10; count++) stakes.push(await newStake())
      const nonce = await payer.nonce()
      for (const [count, stake] of stakes.entries()) await report(stake.stakeId, await payer.pay(stake.unsignedTransaction, nonce + count))
      await anvil.mine(3)
      for (const stake of stakes) await until(stake.stakeId, { status: 'confirmed' })
      const confirmations = ({ stakeId }: { stakeId: string }) =>
        (running.service.logs() + second.service.logs())
          .split('\n')
          .filter((line) => line.includes("a stake's deposit is confirmed") && line.includes(stakeId)).length
      for (const stake of stakes) await expect.poll(() => confirmations(stake), { timeout: 20_000 }).toBeGreaterThan(0)
      await settle()
      expect(stakes.map(confirmations)).toEqual(stakes.map(() => 1))
    } finally {
      await second.stop()
    }
  })

  test('while nothing happens on the chain, the node is asked for its head only', async () => {
    const stake = await newStake()
    await report(stake.stakeId, await payer.pay(stake.unsignedTransaction))
    await anvil.mine()
    await until(stake.stakeId, { blockNumber: expect.any(Number) })
    /** Until it has asked for its head ten times more: it makes a few passes in that. */
    const looksAgain = async () => {
      const begun = rpc.calls()
      await expect.poll(() => rpc.calls() - begun, { timeout: 40_000 }).toBeGreaterThanOrEqual(10)
    }
    await looksAgain()
    const before = rpc.calls('eth_getTransactionReceipt')
    await looksAgain()
    expect(rpc.calls('eth_getTransactionReceipt')).toBe(before)
  })

  test('a node of another chain is named in the log with the chain id that it serves, beside the configured one', async () => {
    const lines: string[] = []
    const log = createLogger({ program: 'service', level: 'info', destination: { write: (line) => lines.push(line) } })
    const ending = new AbortController()
    const config = networkConfig('devnet', { rpcUrls: [anvil.url], chainId: 7 })
    const chain = createEthereumChain({ config, clock: systemClock, log, signal: ending.signal })
    await expect(chain.head(ending.signal)).rejects.toMatchObject({ code: 'wrong-chain' })
    ending.abort()
    const said = lines.map((line) => JSON.parse(line) as object)
    expect(said).toContainEqual(expect.objectContaining({ network: 'devnet', chainId: '31337', configured: 7 }))
  })
})
