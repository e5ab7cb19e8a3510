import { encodeAbiParameters, toHex } from 'viem'
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { RpcFailure } from '../../lib/json-rpc.ts'
import { ChainError, type Hex } from './chain.ts'
import { depositEventTopic } from './deposit-abi.ts'
import { createDepositHistory } from './deposit-history.ts'
import type { DepositNode } from './deposit-node.ts'
import type { RawLog } from './rpc-formats.ts'

const never = new AbortController().signal
/** All of these share the bytes that the index keeps: the history must tell them apart all the same. */
const pubkey = (n: number): Hex => `0x${'a0'}${n.toString(16).padStart(94, '0')}`
/** A key that shares nothing with them. */
const stranger = (n: number): Hex => `0xb1${n.toString(16).padStart(12, '0')}${'11'.repeat(41)}`
const littleEndian = (value: number): Hex => toHex(Buffer.from(BigInt(value).toString(16).padStart(16, '0'), 'hex').reverse())

function logOf(key: Hex, index: number, block: number): RawLog {
  const types = Array.from({ length: 5 }, () => ({ type: 'bytes' }) as const)
  const data = encodeAbiParameters(types, [
    key,
    `0x${'01'.repeat(32)}`,
    littleEndian(32_000_000_000),
    `0x${'02'.repeat(96)}`,
    littleEndian(index),
  ])
  return {
    address: `0x${'00'.repeat(20)}`,
    topics: [depositEventTopic],
    data,
    blockNumber: BigInt(block),
    transactionHash: `0x${index.toString(16).padStart(64, '0')}`,
  }
}

/** A chain with deposits, and a node that shows it; what the node can't do is set per test. */
function createChain(given: { latest: number; settled: number; deposits: [key: number, block: number][] }) {
  const state = {
    latest: given.latest,
    settled: given.settled,
    deposits: given.deposits,
    fork: 0,
    maxBlocks: Number.POSITIVE_INFINITY,
    maxLogs: Number.POSITIVE_INFINITY,
    hide: new Set<number>(),
    hold: Promise.resolve(),
  }
  const calls = { head: 0, logs: [] as [from: number, to: number][] }
  const node: DepositNode = {
    head: async () => {
      calls.head += 1
      await state.hold
      return { latest: BigInt(state.latest), settled: BigInt(state.settled), hash: `0x${state.fork}:${state.latest}` }
    },
    logs: async (from, to) => {
      calls.logs.push([Number(from), Number(to)])
      await state.hold
      if (Number(to - from) >= state.maxBlocks)
        throw new RpcFailure('node', 'refused', { node: { code: -32000, message: 'block range is too wide' } })
      const found = state.deposits.flatMap(([key, block], index) =>
        block >= from && block <= to && !state.hide.has(index) ? [logOf(pubkey(key), index, block)] : [],
      )
      if (found.length > state.maxLogs)
        throw new RpcFailure('node', 'refused', { node: { code: -32005, message: 'query returned more than 10000 results' } })
      return found
    },
    depositCount: async (at) => BigInt(state.deposits.filter(([, block]) => block <= at).length),
  }
  const log: string[] = []
  const history = (
    more: {
      waitMs?: number
      clock?: Clock
      fromBlock?: bigint
      initial?: bigint
      first?: <T>(use: (node: DepositNode) => Promise<T>) => Promise<T>
    } = {},
  ) =>
    createDepositHistory({
      first: more.first ?? ((use) => use(node)),
      fromBlock: more.fromBlock ?? 0n,
      network: 'test',
      clock: more.clock ?? systemClock,
      log: { info: (_, message) => log.push(message), warn: () => {} },
      waitMs: more.waitMs ?? 1000,
      signal: never,
      reader: { initial: more.initial ?? 10n, largest: 40n },
    })
  return { state, calls, node, history, log }
}
const blocks = (deposits: readonly { blockNumber: bigint; index: bigint }[]) => deposits.map(({ blockNumber }) => Number(blockNumber))

describe('the deposit history', () => {
  test('finds every deposit of a key, in order, over many chunks', async () => {
    const chain = createChain({
      latest: 100,
      settled: 90,
      deposits: [
        [1, 3],
        [2, 3],
        [1, 50],
        [1, 90],
        [1, 91],
        [3, 99],
      ],
    })
    const history = chain.history()
    expect(await history.depositsFor(pubkey(1), never)).toMatchObject([
      { pubkey: pubkey(1), amountGwei: 32_000_000_000n, index: 0n, blockNumber: 3n, transactionHash: `0x${'0'.repeat(64)}` },
      { blockNumber: 50n, index: 2n },
      { blockNumber: 90n, index: 3n },
      { blockNumber: 91n, index: 4n },
    ])
    expect(blocks(await history.depositsFor(pubkey(3), never))).toEqual([99])
    expect(await history.depositsFor(pubkey(4), never)).toEqual([])
    expect(await history.depositsFor(pubkey(2).toUpperCase().replace('0X', '0x') as Hex, never)).toHaveLength(1)
  })

  test('reads each settled block once, and of the others only those above', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [[1, 3]] })
    const history = chain.history()
    await history.depositsFor(stranger(1), never)
    chain.calls.logs.length = 0
    await history.depositsFor(stranger(1), never)
    expect(chain.calls.logs).toEqual([])
    Object.assign(chain.state, { latest: 102, settled: 92 })
    await history.depositsFor(stranger(1), never)
    expect(chain.calls.logs).toEqual([
      [91, 92],
      [93, 102],
    ])
  })

  test('sees a deposit of the newest block', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [] })
    const history = chain.history()
    expect(await history.depositsFor(pubkey(1), never)).toEqual([])
    Object.assign(chain.state, { latest: 101, deposits: [[1, 101]] })
    expect(blocks(await history.depositsFor(pubkey(1), never))).toEqual([101])
  })

  test('follows a reorg: what left the chain is gone, what came in is there', async () => {
    const chain = createChain({
      latest: 100,
      settled: 90,
      deposits: [
        [1, 5],
        [2, 95],
        [3, 96],
      ],
    })
    const history = chain.history()
    expect(blocks(await history.depositsFor(pubkey(2), never))).toEqual([95])
    Object.assign(chain.state, {
      fork: 1,
      deposits: [
        [1, 5],
        [3, 97],
        [4, 98],
      ],
    })
    expect(await history.depositsFor(pubkey(2), never)).toEqual([])
    expect(blocks(await history.depositsFor(pubkey(3), never))).toEqual([97])
    expect(blocks(await history.depositsFor(pubkey(4), never))).toEqual([98])
    Object.assign(chain.state, { latest: 200, settled: 190 })
    expect(blocks(await history.depositsFor(pubkey(3), never))).toEqual([97])
  })

  test.each([
    { name: 'too many blocks', limit: { maxBlocks: 3 } },
    { name: 'one block at a time', limit: { maxBlocks: 1 } },
    { name: 'too many results', limit: { maxLogs: 2 } },
  ])('halves its chunks for a node that refuses $name', async ({ limit }) => {
    const deposits = Array.from({ length: 40 }, (_, n): [number, number] => [n, n * 2])
    const chain = createChain({ latest: 100, settled: 90, deposits })
    Object.assign(chain.state, limit)
    const history = chain.history()
    for (const n of [0, 17, 39]) expect(blocks(await history.depositsFor(pubkey(n), never))).toEqual([n * 2])
    expect(chain.calls.logs.length).toBeLessThan(260)
  })

  test('a thousand who ask at the same time share one reading', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [[1, 5]] })
    const history = chain.history()
    await Promise.all(Array.from({ length: 1000 }, (_, n) => history.depositsFor(stranger(n), never)))
    expect(chain.calls.head).toBe(1)
    expect(chain.calls.logs).toHaveLength(11)
  })
})

describe('a node that leaves logs out', () => {
  test.each([
    { name: 'in the middle', hide: 1 },
    { name: 'the first', hide: 0 },
    { name: 'the last', hide: 3 },
  ])('($name) is found out, and the history is right once another shows them', async ({ hide }) => {
    const chain = createChain({
      latest: 100,
      settled: 90,
      deposits: [
        [1, 5],
        [2, 5],
        [3, 60],
        [4, 95],
      ],
    })
    chain.state.hide.add(hide)
    const history = chain.history()
    for (let n = 0; n < 3; n++) await expect(history.depositsFor(pubkey(9), never)).rejects.toMatchObject({ code: 'unavailable' })
    chain.state.hide.clear()
    for (const [key, block] of chain.state.deposits) expect(blocks(await history.depositsFor(pubkey(key), never))).toEqual([block])
  })

  test('in the block of a known deposit is not believed', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [[1, 5]] })
    const history = chain.history()
    await history.depositsFor(pubkey(1), never)
    chain.state.hide.add(0)
    await expect(history.depositsFor(pubkey(1), never)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('a history that is asked for from too high a block is refused, not taken for empty', async () => {
    const chain = createChain({
      latest: 100,
      settled: 90,
      deposits: [
        [1, 5],
        [2, 50],
      ],
    })
    await expect(chain.history({ fromBlock: 20n }).depositsFor(pubkey(1), never)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('a node that lags behind what was read is not used', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [[1, 5]] })
    const history = chain.history()
    await history.depositsFor(pubkey(1), never)
    Object.assign(chain.state, { latest: 50, settled: 40 })
    await expect(history.depositsFor(pubkey(1), never)).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('while the history is read', () => {
  test('who asks is told so after a while, the reading goes on, and nothing is read twice', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [[1, 5]] })
    const { promise, resolve } = Promise.withResolvers<void>()
    chain.state.hold = promise
    const history = chain.history({ waitMs: 5 })
    const failure = await history.depositsFor(pubkey(1), never).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(ChainError)
    expect(failure).toMatchObject({ code: 'history-syncing', retryAfterMs: 5 })
    await expect(history.depositsFor(pubkey(1), never)).rejects.toMatchObject({ code: 'history-syncing' })
    resolve()
    expect(blocks(await createRetry(() => history.depositsFor(pubkey(1), never)))).toEqual([5])
    expect(chain.calls.logs.filter(([from]) => from === 0)).toHaveLength(1)
  })

  test('who leaves does not end it for the others', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [[1, 5]] })
    const { promise, resolve } = Promise.withResolvers<void>()
    chain.state.hold = promise
    const history = chain.history()
    const controller = new AbortController()
    const leaving = history.depositsFor(pubkey(1), controller.signal)
    const staying = history.depositsFor(pubkey(1), never)
    const reason = new Error('gone')
    controller.abort(reason)
    await expect(leaving).rejects.toBe(reason)
    resolve()
    expect(blocks(await staying)).toEqual([5])
  })

  test('an error in the middle keeps what was read', async () => {
    const chain = createChain({
      latest: 100,
      settled: 90,
      deposits: [
        [1, 5],
        [2, 85],
      ],
    })
    let broken = true
    const flaky: DepositNode = {
      ...chain.node,
      logs: (from, to) => (broken && from > 50n ? Promise.reject(new RpcFailure('no-answer', 'gone')) : chain.node.logs(from, to)),
    }
    const history = chain.history({ first: (use) => use(flaky) })
    await expect(history.depositsFor(pubkey(2), never)).rejects.toThrow('gone')
    broken = false
    expect(blocks(await history.depositsFor(pubkey(2), never))).toEqual([85])
    expect(chain.calls.logs.filter(([from]) => from === 0)).toHaveLength(1)
  })

  test('progress is logged now and then', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [] })
    let now = 0
    const clock: Clock = { ...systemClock, monotonicMs: () => (now += 6000) }
    await chain.history({ clock }).depositsFor(pubkey(1), never)
    expect(chain.log.length).toBeGreaterThan(2)
    expect(chain.log.length).toBeLessThan(11)
  })
})

async function createRetry<T>(call: () => Promise<T>): Promise<T> {
  for (let n = 0; n < 100; n++) {
    const result = await call().then(
      (value) => ({ value }),
      () => undefined,
    )
    if (result !== undefined) return result.value
  }
  throw new Error('never caught up')
}
