import { describe, expect, test } from 'vitest'
import { gwei } from '../../lib/amounts.ts'
import type { Hex } from './chain.ts'
import { type KnownPlace, placeInQueue, type QueueReads } from './request-queue.ts'
import { encodeRequestCalldata, type LoggedRequest } from './requests.ts'
import { createContractQueue } from './testing.ts'

const never = new AbortController().signal
const hashOf = (number: bigint): Hex => `0x${number.toString(16).padStart(64, '0')}`
const keyOf = (byte: number): Hex => `0x${byte.toString(16).padStart(2, '0').repeat(48)}`
const exit = (byte: number): LoggedRequest => ({ source: `0x${'aa'.repeat(20)}` as const, request: { kind: 'exit', pubkey: keyOf(byte) } })
const withdrawal = (byte: number, amount: bigint): LoggedRequest => ({
  source: `0x${'bb'.repeat(20)}` as const,
  request: { kind: 'withdrawal', pubkey: keyOf(byte), amountGwei: gwei(amount) },
})
const many = (count: number, byte = 1): LoggedRequest[] => Array.from({ length: count }, () => exit(byte))
const transactionOf = (block: bigint, number: number): Hex =>
  `0x${block.toString(16)}${number.toString(16).padStart(63, '0')}`.slice(0, 66) as Hex

/** A chain whose blocks log these requests, each in a transaction of its own. */
function chainOf(blocks: Readonly<Record<number, readonly LoggedRequest[]>>, latest: bigint) {
  const queue = createContractQueue()
  for (const [number, requests] of Object.entries(blocks)) queue.block(BigInt(number), requests)
  const reads: QueueReads = {
    blockAt: async (at) => {
      const number = BigInt(at)
      return number > latest ? undefined : { number, hash: hashOf(number), parentHash: hashOf(number - 1n), timestamp: Number(number) }
    },
    storageAt: async (_address, slots, blockHash) => queue.storageAfter(BigInt(blockHash), slots),
    logsIn: async (_address, blockHash) =>
      (blocks[Number(BigInt(blockHash))] ?? []).map(({ source, request }, number) => ({
        topics: [],
        data: `${source}${encodeRequestCalldata(request).slice(2)}` as Hex,
        transactionHash: transactionOf(BigInt(blockHash), number),
      })),
    countLogs: async (_address, from, to) =>
      Object.entries(blocks)
        .filter(([number]) => BigInt(number) >= from && BigInt(number) <= to)
        .reduce((sum, [, requests]) => sum + requests.length, 0),
  }
  const place = (block: number, number: number, more: Partial<QueueReads> = {}, known?: KnownPlace) => {
    const logged = blocks[block]?.[number]
    if (logged === undefined) throw new Error('no such request')
    const mined = { logged, blockHash: hashOf(BigInt(block)), transactionHash: transactionOf(BigInt(block), number), latest, known }
    return placeInQueue({ ...reads, ...more }, mined, never)
  }
  return { place, reads }
}

describe('the block that hands a request on', () => {
  test.each([
    { what: 'alone', blocks: { 10: [exit(2)] }, at: [10, 0], block: 10n },
    { what: 'the 16th of a block', blocks: { 10: [...many(15), exit(2)] }, at: [10, 15], block: 10n },
    { what: 'the 17th of a block', blocks: { 10: [...many(16), exit(2)] }, at: [10, 16], block: 11n },
    { what: 'behind 140 of its own block', blocks: { 10: [...many(140), exit(2)] }, at: [10, 140], block: 18n },
    { what: 'behind those of earlier blocks', blocks: { 8: many(60), 10: [exit(2)] }, at: [10, 0], block: 11n },
    { what: 'in a queue that was emptied before', blocks: { 6: many(40), 10: [exit(2)] }, at: [10, 0], block: 10n },
    { what: 'in a queue that others keep full', blocks: { 8: many(40), 9: many(40), 10: [exit(2), ...many(40)] }, at: [10, 0], block: 13n },
  ])('is found: $what', async ({ blocks, at: [block = 0, number = 0], block: expected }) => {
    expect(await chainOf(blocks, 30n).place(block, number)).toMatchObject({ is: 'handed on', block: { number: expected } })
    expect(await chainOf(blocks, expected).place(block, number)).toMatchObject({ is: 'handed on', block: { number: expected } })
    if (expected > BigInt(block))
      expect(await chainOf(blocks, expected - 1n).place(block, number)).toMatchObject({ is: 'waiting', turn: expected })
  })

  test('hands on others of the same validator with it, in order', async () => {
    const blocks = { 8: [...many(30), withdrawal(2, 5n)], 10: [exit(3), withdrawal(2, 5n), exit(2), withdrawal(2, 7n)] }
    const second = await chainOf(blocks, 30n).place(10, 1)
    expect(second).toMatchObject({ is: 'handed on', block: { number: 10n }, index: 0 })
    expect('batch' in second && second.batch).toEqual([withdrawal(2, 5n), exit(2), withdrawal(2, 7n)])
    expect(await chainOf(blocks, 30n).place(10, 3)).toMatchObject({ index: 2 })
    // The one of before had its own turn.
    expect(await chainOf(blocks, 30n).place(8, 30)).toMatchObject({ block: { number: 9n }, batch: [withdrawal(2, 5n)], index: 0 })
  })
})

describe('a long queue', () => {
  const blocks = { 8: many(3_000), 10: [exit(3), exit(2), exit(4)], 11: many(40) }
  const pruned = (latest: bigint): { chain: ReturnType<typeof chainOf>; more: Partial<QueueReads> } => {
    const chain = chainOf(blocks, latest)
    return {
      chain,
      more: { storageAt: async (...args) => (BigInt(args[2]) <= latest - 128n ? undefined : chain.reads.storageAt(...args)) },
    }
  }
  // 3,000 of block 8 take 187.5 blocks: the second of block 10 stands at 3,001.
  const place = { position: 3_001n, turn: 195n }

  test('is followed by the place that was told, when the states of then are gone', async () => {
    expect(await chainOf(blocks, 10n).place(10, 1)).toEqual({ is: 'waiting', ...place })
    const { chain, more } = pruned(195n)
    expect(await chain.place(10, 1, more, place)).toMatchObject({ is: 'handed on', block: { number: 195n }, index: 0 })
  })
  test('tells the place anew by what was logged since', async () => {
    const { chain, more } = pruned(150n)
    expect(await chain.place(10, 1, more)).toEqual({ is: 'waiting', ...place })
    // Another entry stands there: a node has left logs out.
    expect(await chain.place(10, 1, { ...more, countLogs: async () => 39 })).toEqual({ is: 'not kept', passed: false })
  })
  test('tells that it has passed, by its head or as it was emptied, and never guesses', async () => {
    const passed = pruned(190n + 10n)
    expect(
      await passed.chain.place(10, 1, {
        ...passed.more,
        storageAt: async (_a, slots, hash) => (BigInt(hash) < 200n ? undefined : slots.map((slot) => (slot === 2n ? 3_010n : 3_043n))),
      }),
    ).toEqual({ is: 'not kept', passed: true })
    const emptied = pruned(500n)
    expect(await emptied.chain.place(10, 1, emptied.more, place)).toMatchObject({ is: 'not kept', passed: true, block: { number: 195n } })
  })
})

describe('a request whose place', () => {
  const blocks = { 10: [...many(40), exit(2)] }
  test('is in storage that no node keeps is not known, but that it has passed is once the queue is empty', async () => {
    const chain = chainOf(blocks, 30n)
    const keeps = (from: bigint): Partial<QueueReads> => ({
      storageAt: async (_address, slots, blockHash) => (BigInt(blockHash) < from ? undefined : slots.map(() => 0n)),
    })
    expect(await chain.place(10, 40, keeps(20n))).toEqual({ is: 'not kept', passed: true })
    expect(await chain.place(10, 40, keeps(100n))).toEqual({ is: 'not kept', passed: false })
  })
  test('is in a queue that never moves is told as such: the chain makes no system calls', async () => {
    const storageAt: QueueReads['storageAt'] = async (_address, slots) => slots.map((slot) => (slot === 3n ? 41n : 0n))
    expect(await chainOf(blocks, 30n).place(10, 40, { storageAt })).toEqual({ is: 'no queue' })
  })
  test('is in a queue that moves otherwise is never guessed', async () => {
    const storageAt: QueueReads['storageAt'] = async (_address, slots, hash) =>
      slots.map((slot) => (BigInt(hash) < 10n ? 0n : slot === 3n ? 41n : 1n))
    expect(await chainOf(blocks, 30n).place(10, 40, { storageAt })).toEqual({ is: 'unexpected' })
  })
  test('is in a block that is gone is looked for again', async () => {
    expect(await chainOf(blocks, 30n).place(10, 40, { blockAt: async () => undefined })).toEqual({ is: 'reorganised' })
  })
  test('is in a block whose logs a node leaves out is an error', async () => {
    await expect(chainOf(blocks, 30n).place(10, 40, { logsIn: async () => [] })).rejects.toMatchObject({ code: 'unavailable' })
  })
})
