import { encodeAbiParameters, toHex } from 'viem'
import { describe, expect, test } from 'vitest'
import type { Hex } from './chain.ts'
import { depositEventTopic } from './deposit-abi.ts'
import type { DepositNode } from './deposit-node.ts'
import { createDepositScan } from './deposit-scan.ts'
import type { RawLog } from './rpc-formats.ts'

const never = new AbortController().signal
const littleEndian = (value: number): Hex => toHex(Buffer.from(BigInt(value).toString(16).padStart(16, '0'), 'hex').reverse())
const keyOf = (index: number): Hex => `0x${index.toString(16).padStart(96, '0')}`

function logOf(index: number, block: number): RawLog {
  const types = Array.from({ length: 5 }, () => ({ type: 'bytes' }) as const)
  const fields = [keyOf(index), `0x${'01'.repeat(32)}`, littleEndian(32_000_000_000), `0x${'02'.repeat(96)}`, littleEndian(index)] as const
  return {
    address: `0x${'00'.repeat(20)}` as const,
    topics: [depositEventTopic],
    data: encodeAbiParameters(types, [...fields]),
    blockNumber: BigInt(block),
    transactionHash: `0x${index.toString(16).padStart(64, '0')}`,
  }
}

/** A chain whose deposits are in these blocks, one after another. */
function chainWith(state: { latest: bigint; settled: bigint; blocks: number[]; hidden?: number }) {
  const node: Pick<DepositNode, 'head' | 'logs' | 'depositCount'> = {
    head: async () => ({ latest: state.latest, settled: state.settled, hash: '0x' }),
    logs: async (from, to) =>
      state.blocks.flatMap((block, index) => (block >= from && block <= to && index !== state.hidden ? [logOf(index, block)] : [])),
    depositCount: async (at) => BigInt(state.blocks.filter((block) => block <= at).length),
  }
  return createDepositScan({ first: (use) => use(node as DepositNode), network: 'test', maxBlocks: 100n })
}
const keys = (deposits: readonly { readonly pubkey: Hex }[]) => deposits.map(({ pubkey }) => Number(pubkey))

describe('a scan of the deposits', () => {
  test('begins at the last block that does not change any more', async () => {
    const scan = chainWith({ latest: 50n, settled: 40n, blocks: [10, 40, 41, 50] })
    expect(await scan.depositMark(never)).toEqual({ block: 40n, count: 2n })
  })

  test('gives what was made since its mark, and leaves what may still change for the next time', async () => {
    const state = { latest: 50n, settled: 40n, blocks: [10, 30, 40, 41] }
    const scan = chainWith(state)
    const first = await scan.depositsAfter({ block: 10n, count: 1n }, never)
    expect([keys(first.deposits), first.mark]).toEqual([[1, 2], { block: 40n, count: 3n }])
    expect(await scan.depositsAfter(first.mark, never)).toEqual({ mark: first.mark, deposits: [] })
    state.settled = 45n
    const next = await scan.depositsAfter(first.mark, never)
    expect([keys(next.deposits), next.mark]).toEqual([[3], { block: 45n, count: 4n }])
  })

  test('goes a long way in parts, and has each deposit once', async () => {
    const scan = chainWith({ latest: 1_000n, settled: 950n, blocks: [1, 100, 101, 500, 950, 960] })
    let mark = { block: 0n, count: 0n }
    const seen: number[] = []
    for (let part = 0; part < 20 && mark.block < 950n; part++) {
      const next = await scan.depositsAfter(mark, never)
      seen.push(...keys(next.deposits))
      mark = next.mark
    }
    expect([seen, mark]).toEqual([[0, 1, 2, 3, 4], { block: 950n, count: 5n }])
  })

  test.each([
    { what: 'the first', hidden: 1 },
    { what: 'one in the middle', hidden: 2 },
    { what: 'the last', hidden: 3 },
  ])('does not go on when a node leaves out $what', async ({ hidden }) => {
    const scan = chainWith({ latest: 50n, settled: 45n, blocks: [5, 20, 30, 40], hidden })
    await expect(scan.depositsAfter({ block: 10n, count: 1n }, never)).rejects.toMatchObject({ code: 'unavailable' })
  })
})
