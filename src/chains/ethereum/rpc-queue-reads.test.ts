import { expect, test } from 'vitest'
import { RpcFailure } from '../../lib/json-rpc.ts'
import { ChainError } from './chain.ts'
import { createQueueReads } from './rpc-queue-reads.ts'

const never = new AbortController().signal
const contract = `0x${'70'.repeat(20)}` as const
const hash = `0x${'11'.repeat(32)}` as const
const log = (block: number) => ({
  ...{ address: contract, topics: [], data: '0x', blockNumber: `0x${block.toString(16)}`, blockHash: `0x${'11'.repeat(32)}` },
  ...{ transactionHash: `0x${'22'.repeat(32)}`, transactionIndex: '0x0', logIndex: '0x0', removed: false },
})

/** One node, which gives the logs of so many blocks at once, one a block. */
function readsOf(most: number) {
  const ranges: number[] = []
  const call = async (_method: string, [filter]: readonly unknown[]) => {
    const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string }
    const [first, last] = [Number(fromBlock), Number(toBlock)]
    ranges.push(last - first + 1)
    if (last - first + 1 > most) {
      throw new RpcFailure('node', 'refused', { node: { code: -32005, message: 'query returned more than 10000 results' } })
    }
    return Array.from({ length: last - first + 1 }, (_, number) => log(first + number))
  }
  const race = async (ask: (node: unknown) => Promise<unknown>) => {
    try {
      return [{ value: await ask({ call }) }]
    } catch (error) {
      return [{ error: new ChainError('unavailable', String(error)) }]
    }
  }
  return { reads: createQueueReads({ race } as never), ranges }
}

test.each([14_400, 1_000, 7])('logs of many blocks are counted by a node that gives those of %i at once', async (most) => {
  const { reads, ranges } = readsOf(most)
  expect(await reads.countLogs(contract, 100n, 2_599n, never)).toBe(2_500)
  expect(Math.max(...ranges.slice(-3))).toBeLessThanOrEqual(most)
})

test.each([
  { what: 'has pruned it', failure: new RpcFailure('node', 'refused', { node: { code: -32000, message: 'missing trie node 0xab' } }) },
  {
    what: 'does not serve the method',
    failure: new RpcFailure('refused', 'refused', { node: { code: -32601, message: 'no such method' } }),
  },
  { what: 'serves it to others', failure: new RpcFailure('refused', 'refused', { denied: 403 }) },
  {
    what: 'knows no blocks by hash there',
    failure: new RpcFailure('node', 'refused', { node: { code: -32602, message: 'invalid argument 2' } }),
  },
])('a node that $what says nothing of the queue, and holds up nothing', async ({ failure }) => {
  const refusing = { call: () => Promise.reject(failure) }
  const race = async (ask: (node: unknown) => Promise<unknown>) => [{ value: await ask(refusing) }]
  expect(await createQueueReads({ race } as never).storageAt(contract, [2n], hash, never)).toBeUndefined()
})

test('a node that gives no answer is no node without the queue', async () => {
  const failure = new RpcFailure('timeout', 'nothing in time')
  const race = async (ask: (node: unknown) => Promise<unknown>) =>
    ask({ call: () => Promise.reject(failure) }).then(
      () => [],
      (error: unknown) => [{ error: new ChainError('unavailable', String(error)) }],
    )
  await expect(createQueueReads({ race } as never).storageAt(contract, [2n], hash, never)).rejects.toThrow(ChainError)
})
