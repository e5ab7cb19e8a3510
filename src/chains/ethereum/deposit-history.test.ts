import { encodeAbiParameters, toHex } from 'viem'
import { describe, expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { RpcFailure } from '../../lib/json-rpc.ts'
import { ChainError, type Hex } from './chain.ts'
import { depositDataRoot } from './deposit.ts'
import { decodeDepositLog, depositEventTopic } from './deposit-abi.ts'
import { type DepositCheckpoint, DepositCheckpointError, decodeCheckpoint, encodeCheckpoint } from './deposit-checkpoint.ts'
import { createDepositHistory } from './deposit-history.ts'
import type { DepositNode } from './deposit-node.ts'
import { createDepositTree } from './deposit-tree.ts'
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
    address: `0x${'00'.repeat(20)}` as const,
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
      return { latest: BigInt(state.latest), settled: BigInt(state.settled), hash: `0x${state.fork}:${state.latest}` as const }
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
    depositRoot: async (at) => {
      const tree = createDepositTree()
      for (const [index, [key, block]] of state.deposits.entries())
        if (block <= at)
          tree.add(depositDataRoot({ ...decodeDepositLog(logOf(pubkey(key), index, block)), amountGwei: gwei(32_000_000_000n) }))
      return tree.root()
    },
    blockHash: async (number) => (number > state.latest ? undefined : `0x${(Number(number) + state.fork).toString(16).padStart(64, '0')}`),
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
      checkpoint?: DepositCheckpoint
      everyMs?: number
    } = {},
  ) =>
    createDepositHistory({
      first: more.first ?? ((use) => use(node)),
      fromBlock: more.fromBlock ?? 0n,
      network: 'test',
      clock: more.clock ?? systemClock,
      log: { info: (_, message) => log.push(message), warn: (_, message) => log.push(message) },
      waitMs: more.waitMs ?? 1000,
      everyMs: more.everyMs,
      signal: never,
      checkpoint: more.checkpoint,
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

  test('is read so often at most where many ask all the time, and never before somebody asked', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [[1, 5]] })
    let nowMs = 0
    const pauses: PromiseWithResolvers<void>[] = []
    const clock: Clock = {
      now: () => new Date(),
      monotonicMs: () => nowMs,
      sleep: (ms) => {
        const pause = Promise.withResolvers<void>()
        if (ms === 25) pauses.push(pause)
        return pause.promise
      },
    }
    const history = chain.history({ clock, everyMs: 25 })
    await history.depositsFor(stranger(0), never)
    expect(chain.calls.head).toBe(1)
    const waiting = Array.from({ length: 50 }, (_, n) => history.depositsFor(pubkey(n), never))
    // What is made now is in the reading that they share.
    chain.state.deposits.push([7, 101])
    chain.state.latest = 101
    await expect.poll(() => pauses.length).toBe(1)
    nowMs = 25
    pauses[0]?.resolve()
    expect(blocks((await Promise.all(waiting))[7] ?? [])).toEqual([101])
    expect(chain.calls.head).toBe(2)
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
  test('what takes no time is not logged, however often somebody waits for it', async () => {
    const chain = createChain({ latest: 100, settled: 90, deposits: [] })
    let now = 0
    const history = chain.history({ clock: { ...systemClock, monotonicMs: () => now } })
    for (let times = 0; times < 5; times++) {
      await history.depositsFor(pubkey(1), never)
      now += 60_000
    }
    expect(chain.log).toEqual([])
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

describe('a checkpoint', () => {
  const identity = { chainId: 1, contract: `0x${'00'.repeat(20)}` as Hex }
  const deposits: [number, number][] = [
    [1, 5],
    [2, 7],
    [1, 7],
    [3, 60],
    [4, 90],
  ]
  const chain = () => createChain({ latest: 100, settled: 80, deposits: [...deposits] })
  const made = () => chain().history().checkpoint(identity, never)

  test('holds what is settled, and is the same again from its file', async () => {
    const checkpoint = await made()
    expect(checkpoint).toMatchObject({ ...identity, block: 80n, lastDepositBlock: 60n, count: 4n })
    expect(decodeCheckpoint(encodeCheckpoint(checkpoint))).toEqual(checkpoint)
  })

  test('is begun with: only the logs since are read, and every deposit is found', async () => {
    const { history, calls } = chain()
    const own = history({ checkpoint: await made() })
    for (const [key, blocks] of [
      [1, [5n, 7n]],
      [3, [60n]],
      [4, [90n]],
      [9, []],
    ] as const)
      expect((await own.depositsFor(pubkey(key), never)).map(({ blockNumber }) => blockNumber)).toEqual(blocks)
    // But for the blocks that hold deposits of those keys.
    expect(calls.logs.filter(([from, to]) => from !== to).every(([from]) => from > 80)).toBe(true)
  })

  test.each([
    { what: 'of another chain', change: (state: ReturnType<typeof createChain>['state']) => Object.assign(state, { fork: 7 }) },
    { what: 'of other deposits', change: (state: ReturnType<typeof createChain>['state']) => state.deposits.splice(1, 1, [8, 7]) },
    { what: 'of fewer deposits', change: (state: ReturnType<typeof createChain>['state']) => state.deposits.splice(3, 1) },
  ])('$what is not used: all is read from the chain, and it is said', async ({ change }) => {
    const { history, state, log } = chain()
    change(state)
    const own = history({ checkpoint: await made() })
    expect((await own.depositsFor(pubkey(1), never)).map(({ blockNumber }) => blockNumber)).toEqual([5n, 7n])
    expect(log.join()).toContain('the deposit history file is not used')
    if (state.deposits[1]?.[0] === 8) expect(await own.depositsFor(pubkey(8), never)).toHaveLength(1)
  })

  test('is not believed to be wrong of a node that does not have its block yet', async () => {
    const { history, state } = chain()
    const checkpoint = await made()
    state.latest = 70
    state.settled = 60
    const own = history({ checkpoint })
    await expect(own.depositsFor(pubkey(1), never)).rejects.toMatchObject({ code: 'unavailable' })
    state.latest = 100
    expect(await own.depositsFor(pubkey(3), never)).toHaveLength(1)
  })

  test.each([
    { what: 'cut', change: (file: Uint8Array) => file.subarray(0, file.length - 12) },
    { what: 'of another content', change: (file: Uint8Array) => file.with(file.length - 1, (file.at(-1) ?? 0) ^ 1) },
    { what: 'of something else', change: () => new TextEncoder().encode('{}\n') },
    { what: 'empty', change: () => new Uint8Array() },
  ])('file that is $what is refused', async ({ change }) => {
    const file = encodeCheckpoint(await made())
    expect(() => decodeCheckpoint(change(file))).toThrow(DepositCheckpointError)
  })
})
