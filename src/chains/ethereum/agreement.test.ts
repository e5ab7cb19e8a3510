import { describe, expect, test } from 'vitest'
import type { Hex } from './chain.ts'
import { encodeRequestCalldata, withdrawalRequestContract } from './requests.ts'
import {
  chainOfBlocks,
  chainOverNodes,
  createTestNode,
  receiptAnswer,
  rpcError,
  testSender as sender,
  type TestTransaction,
  testHash,
} from './test-nodes.ts'

const never = new AbortController().signal
const transaction = (n: number, nonce = n, more: Partial<TestTransaction> = {}): TestTransaction => ({
  hash: testHash(n),
  from: sender,
  nonce,
  ...more,
})
/** Nonce 0 in block 50 (final), nonce 1 in block 90 (not final), nonce 2 in the pool. */
const first = transaction(1, 0)
const second = transaction(2, 1)
const third = transaction(3, 2)
const blocks = chainOfBlocks(100, { 50: [first], 90: [second] })
const node = (more: Parameters<typeof createTestNode>[0] = {}) => createTestNode({ blocks, pool: [third], ...more })
const down = () => node({ down: true })

describe('the counts of a lane', () => {
  const counts = { final: 1, latest: 2, pending: 3 }

  test('come from all nodes', async () => {
    const { chain } = chainOverNodes([node(), node({ pool: [] })])
    expect(await chain.laneCounts(sender, never)).toEqual({
      final: 1,
      finalEverywhere: 1,
      latest: 2,
      pending: 3,
      nodes: [counts, { ...counts, pending: 2 }],
    })
  })

  test('a node that answers for a final block as for the pool is refused, and the other one counts', async () => {
    const caching = node({
      says: new Map([['eth_getTransactionCount', ([, at]: readonly unknown[]) => (at === 'latest' ? '0x2' : '0x3')]]),
    })
    const { chain } = chainOverNodes([caching, node()])
    expect(await chain.laneCounts(sender, never)).toMatchObject({ final: 1, finalEverywhere: undefined, nodes: [undefined, counts] })
    expect(await chain.transactionCount(sender, 'final', never)).toBe(1)
  })

  test.each([
    ['is down', down()],
    ['refuses the method', node({ says: new Map([['eth_getTransactionCount', rpcError(-32601, 'no such method')]]) })],
  ])('are final everywhere only when no node %s', async (_, bad) => {
    const { chain } = chainOverNodes([node(), bad])
    expect(await chain.laneCounts(sender, never)).toMatchObject({ final: 1, finalEverywhere: undefined, nodes: [counts, undefined] })
  })

  test('are the lowest everywhere and the highest of any', async () => {
    const { chain } = chainOverNodes([node(), node({ depth: 60 })])
    expect(await chain.laneCounts(sender, never)).toMatchObject({ final: 1, finalEverywhere: 0 })
  })

  test('that no node gives are an error, without a URL', async () => {
    const { chain } = chainOverNodes([down(), down()])
    const asked = chain.laneCounts(sender, never)
    await expect(asked).rejects.toMatchObject({ code: 'unavailable' })
    await expect(asked).rejects.not.toThrow(/secret/)
  })
})

describe('a trace', () => {
  const hashes = [first.hash, second.hash, third.hash]

  test('finds what is final on all nodes', async () => {
    const { chain } = chainOverNodes([node(), node()])
    const trace = await chain.trace([first.hash], never)
    expect(trace).toMatchObject({ final: { hash: first.hash, blockNumber: 50n }, silent: [] })
    expect(trace.mined).toBeUndefined()
    expect(trace.disagreement).toBeUndefined()
    expect(trace.lackedBy).toEqual(new Map([[first.hash, []]]))
  })

  test('tells mined from final, and who lacks what waits', async () => {
    const { chain } = chainOverNodes([node(), node({ pool: [] })])
    const trace = await chain.trace([second.hash, third.hash.toUpperCase().replace('0X', '0x') as Hex, testHash(9)], never)
    expect(trace).toMatchObject({ mined: { hash: second.hash } })
    expect(trace.final).toBeUndefined()
    expect(trace.known).toEqual(new Set([second.hash, third.hash]))
    expect(trace.lackedBy).toEqual(
      new Map([
        [second.hash, []],
        [third.hash, [1]],
        [testHash(9), [0, 1]],
      ]),
    )
  })

  test('takes two requests to each node, and one when nothing is mined', async () => {
    const one = node()
    const { chain } = chainOverNodes([one])
    await chain.trace([third.hash], never)
    const before = one.requests
    await chain.trace([third.hash], never)
    expect(one.requests - before).toBe(1)
    await chain.trace(hashes, never)
    expect(one.requests - before).toBe(3)
  })

  test('asks a node that refuses batches one by one, and says the same', async () => {
    const { chain } = chainOverNodes([node({ refusesBatches: true }), node()])
    expect(await chain.trace(hashes, never)).toEqual(await chainOverNodes([node(), node()]).chain.trace(hashes, never))
  })

  describe('of a transaction that a node on another fork shows', () => {
    const fork = { from: 45, name: 'other' }
    const forked = () => node({ blocks: chainOfBlocks(100, { 50: [first] }, fork) })

    test('is contradicted: not final, and both nodes are named', async () => {
      const other = node({ blocks: chainOfBlocks(100, {}) })
      const { chain, readings } = chainOverNodes([forked(), other])
      const trace = await chain.trace([first.hash], never)
      expect(trace.final).toBeUndefined()
      expect(trace).toMatchObject({ mined: { hash: first.hash }, disagreement: { height: 50n, nodes: [1, 2] } })
      // It is sent to the one that lacks it.
      expect(trace.lackedBy).toEqual(new Map([[first.hash, [1]]]))
      expect(readings().map(({ disagreements }) => disagreements)).toEqual([1, 1])
    })

    test('is contradicted also when both have it, in different blocks', async () => {
      const { chain } = chainOverNodes([node(), forked()])
      const trace = await chain.trace([first.hash], never)
      expect(trace.final).toBeUndefined()
      expect(trace).toMatchObject({ mined: { hash: first.hash }, disagreement: { height: 50n, nodes: [1, 2] } })
    })
  })

  test('of a receipt whose block left the chain below final: not mined, lacked, and the node is named', async () => {
    const orphan = node({
      blocks: chainOfBlocks(100),
      pool: [],
      says: new Map([['eth_getTransactionReceipt', () => receiptAnswer(first, 50, testHash(0xdead))]]),
    })
    const { chain } = chainOverNodes([orphan])
    const trace = await chain.trace([first.hash], never)
    expect(trace.final ?? trace.mined).toBeUndefined()
    expect(trace).toMatchObject({ disagreement: { height: 50n, nodes: [1] } })
    expect(trace.lackedBy).toEqual(new Map([[first.hash, [0]]]))
    expect(trace.known).toEqual(new Set())
    // Nor does the receipt count that is asked for alone.
    await expect(chain.receipt(first.hash, never)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test.each([
    ['mined again in another block of that height', blocks],
    ['whose block is given without its transactions', undefined],
  ])('of a receipt of an orphaned block, %s: not mined by that receipt', async (_, kept) => {
    const says = new Map<string, (params: readonly unknown[], honest: () => unknown) => unknown>([
      ['eth_getTransactionReceipt', () => receiptAnswer(first, 50, testHash(0xdead))],
    ])
    if (kept === undefined) says.set('eth_getBlockByNumber', (_params, honest) => ({ ...(honest() as object), transactions: undefined }))
    const trace = await chainOverNodes([node({ blocks, says })]).chain.trace([first.hash], never)
    expect(trace.final ?? trace.mined).toBeUndefined()
    expect(trace).toMatchObject({ disagreement: { height: 50n, nodes: [1] } })
  })

  test('of a receipt whose block does not hold the transaction: nothing', async () => {
    const block = blocks[60]
    const liar = node({ says: new Map([['eth_getTransactionReceipt', () => receiptAnswer(third, 60, block?.hash ?? '0x')]]), pool: [] })
    const trace = await chainOverNodes([liar]).chain.trace([third.hash], never)
    expect(trace.final ?? trace.mined).toBeUndefined()
  })

  test('of what only a node shows that is stuck on an orphaned block: nothing is mined', async () => {
    const stuck = node({ blocks: chainOfBlocks(60, { 50: [first] }, { from: 45, name: 'orphaned' }), depth: 5 })
    const { chain } = chainOverNodes([stuck, node({ blocks: chainOfBlocks(100) })])
    const trace = await chain.trace([first.hash], never)
    expect(trace.final ?? trace.mined).toBeUndefined()
    expect(trace).toMatchObject({ disagreement: { height: 50n, nodes: [1, 2] } })
  })

  describe('of what one of two nodes makes up', () => {
    const receiptOf = (change: (honest: ReturnType<typeof receiptAnswer>) => object) =>
      new Map([
        [
          'eth_getTransactionReceipt',
          (_: readonly unknown[], honest: () => unknown) => {
            const answer = honest() as ReturnType<typeof receiptAnswer> | null
            return answer && { ...answer, ...change(answer) }
          },
        ],
      ])
    const log = { address: `0x${'dc'.repeat(20)}`, topics: [testHash(7)], data: '0x01' }
    const at50 = blocks.map((block, number) => (number === 50 ? { ...block, transactions: [first, third] } : block))

    test.each([
      { what: 'that it was reverted', liar: () => node({ says: receiptOf(() => ({ status: '0x0' })) }) },
      { what: 'a log that it did not make', liar: () => node({ says: receiptOf(() => ({ logs: [log] })) }) },
    ])('$what: not final, and both are named, whichever is first', async ({ liar }) => {
      for (const nodes of [
        [liar(), node()],
        [node(), liar()],
      ]) {
        const trace = await chainOverNodes(nodes).chain.trace([first.hash], never)
        expect(trace.final).toBeUndefined()
        expect(trace).toMatchObject({ mined: { hash: first.hash }, disagreement: { height: 50n, nodes: [1, 2] } })
      }
    })

    test('that it is in a block of the others’ chain, which they list without it: not final, and both are named', async () => {
      const liar = node({ blocks: at50, pool: [] })
      const trace = await chainOverNodes([liar, node()]).chain.trace([third.hash], never)
      expect(trace.final).toBeUndefined()
      expect(trace).toMatchObject({ disagreement: { height: 50n, nodes: [1, 2] } })
      expect(trace.lackedBy.get(third.hash)).toEqual([])
    })

    test('is not final everywhere, and names no use of a nonce', async () => {
      const block = { number: 50n, hash: blocks[50]?.hash ?? ('0x' as const) }
      const stranger = transaction(66, 0)
      const liar = node({ blocks: blocks.map((one, number) => (number === 50 ? { ...one, transactions: [stranger] } : one)) })
      const { chain } = chainOverNodes([liar, node()])
      expect(await chain.finalEverywhere({ ...block, holds: { hash: stranger.hash } }, never)).toBe('disagreed')
      expect(await chain.nonceUse(sender, 0, never)).toEqual({ is: 'unproven', why: expect.stringMatching(/not the same in it/) })
      const reverting = chainOverNodes([node({ says: receiptOf(() => ({ status: '0x0' })) }), node()])
      const { final: honest } = await chainOverNodes([node()]).chain.trace([first.hash], never)
      if (honest === undefined) throw new Error('it is final')
      const holds = { hash: first.hash, receipt: { ...honest, success: false } }
      expect(await reverting.chain.finalEverywhere({ ...block, holds }, never)).toBe('disagreed')
      const forgetting = chainOverNodes([node(), node({ says: new Map([['eth_getTransactionReceipt', rpcError(-32000, 'none here')]]) })])
      expect(await forgetting.chain.finalEverywhere({ ...block, holds: { ...holds, receipt: honest } }, never)).toBe('unknown')
      expect(await chainOverNodes([node(), node()]).chain.finalEverywhere({ ...block, holds: { ...holds, receipt: honest } }, never)).toBe(
        'agreed',
      )
    })
  })

  test('with a node that does not answer goes on without it', async () => {
    const { chain } = chainOverNodes([down(), node()])
    expect(await chain.trace([first.hash], never)).toMatchObject({ final: { hash: first.hash }, silent: [0] })
  })

  test('that nobody answers is an error', async () => {
    await expect(chainOverNodes([down()]).chain.trace([first.hash], never)).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('a block is final everywhere', () => {
  const block = { number: 50n, hash: blocks[50]?.hash ?? ('0x' as const) }
  test.each([
    { name: 'when all nodes have it as final', other: node(), verdict: 'agreed' },
    { name: 'unless one is silent', other: down(), verdict: 'unknown' },
    { name: 'unless one is behind', other: node({ blocks: blocks.slice(0, 40) }), verdict: 'unknown' },
    { name: 'unless one has it, not final yet', other: node({ depth: 60 }), verdict: 'unknown' },
    { name: 'unless one has another', other: node({ blocks: chainOfBlocks(100, {}, { from: 50, name: 'x' }) }), verdict: 'disagreed' },
    {
      name: 'unless one refuses to say',
      other: node({ says: new Map([['eth_getBlockByNumber', rpcError(-32601, 'no')]]) }),
      verdict: 'unknown',
    },
  ])('$name', async ({ other, verdict }) => {
    expect(await chainOverNodes([node(), other], { config: genesis }).chain.finalEverywhere(block, never)).toBe(verdict)
  })
  const genesis = { genesisHash: blocks[0]?.hash }
})

describe('who used a nonce', () => {
  test('is named by block, and proven by all nodes', async () => {
    const { chain } = chainOverNodes([node(), node()])
    expect(await chain.nonceUse(sender, 0, never)).toMatchObject({
      is: 'used',
      transaction: { hash: first.hash, nonce: 0, blockNumber: 50n },
      receipt: { hash: first.hash, blockNumber: 50n },
    })
  })

  test.each([0, 1, 2, 3, 4, 5, 6, 7])('is found wherever it is (%i of eight)', async (nonce) => {
    const all = Array.from({ length: 8 }, (_, n) => transaction(n + 1, n))
    const where = [1, 2, 300, 301, 302, 640, 899, 900]
    const spread = chainOfBlocks(
      940,
      Object.fromEntries(where.map((number, n) => [number, [transaction(100 + n, 5, { from: other }), all[n] ?? first]])),
    )
    const { chain } = chainOverNodes([node({ blocks: spread })])
    expect(await chain.nonceUse(sender, nonce, never)).toMatchObject({ is: 'used', receipt: { blockNumber: BigInt(where[nonce] ?? 0) } })
  })
  const other = '0x0000000000000000000000000000000000000abc'

  test('is nobody while one node does not count beyond it', async () => {
    expect(await chainOverNodes([node(), node({ depth: 60 })]).chain.nonceUse(sender, 0, never)).toEqual({ is: 'unused' })
    expect(await chainOverNodes([node()]).chain.nonceUse(sender, 1, never)).toEqual({ is: 'unused' })
  })

  test.each([
    { name: 'a node is silent', other: down(), why: /node 2 did not answer/ },
    {
      name: 'a node counts what can’t be',
      other: node({
        says: new Map([['eth_getTransactionCount', ([, at]: readonly unknown[]) => (at === 'latest' ? '0x2' : '0x3')]]),
      }),
      why: /node 2 did not answer/,
    },
    {
      name: 'a node has it in another block',
      other: node({ blocks: chainOfBlocks(100, { 50: [first] }, { from: 40, name: 'x' }) }),
      why: /different blocks at height 50/,
    },
  ])('is not proven when $name', async ({ other, why }) => {
    const use = await chainOverNodes([node(), other]).chain.nonceUse(sender, 0, never)
    expect(use).toEqual({ is: 'unproven', why: expect.stringMatching(why) })
  })

  test('can’t be named by nodes that keep no older state, and is by one that does', async () => {
    const pruned = () =>
      node({
        depth: 5,
        blocks: chainOfBlocks(900, { 50: [first] }),
        says: new Map([
          [
            'eth_getTransactionCount',
            ([, at]: readonly unknown[], honest: () => unknown) =>
              String(at).startsWith('0x') && Number(at) < 800 ? { error: { code: -32000, message: 'missing trie node' } } : honest(),
          ],
        ]),
      })
    expect(await chainOverNodes([pruned()]).chain.nonceUse(sender, 0, never)).toMatchObject({ is: 'unproven', why: /archive/ })
    const archive = node({ depth: 5, blocks: chainOfBlocks(900, { 50: [first] }) })
    expect(await chainOverNodes([pruned(), archive]).chain.nonceUse(sender, 0, never)).toMatchObject({ is: 'used' })
  })
})

describe('bytes are sent', () => {
  const raw: Hex = '0x02c0'
  test.each([
    { name: 'to all', nodes: 'all' as const, expected: [0, 1] },
    { name: 'to one', nodes: [1], expected: [1] },
  ])('$name', async ({ nodes, expected }) => {
    const both = [node(), node()]
    const sent = await chainOverNodes(both).chain.send(raw, nodes, never)
    expect(sent).toEqual(expected.map((index) => ({ node: index, is: 'taken' })))
    expect(both.flatMap(({ seen }, index) => (seen.includes('eth_sendRawTransaction') ? [index] : []))).toEqual(expected)
  })

  test('and each node’s answer is told, whatever it is', async () => {
    const saying = (message: string) => node({ says: new Map([['eth_sendRawTransaction', rpcError(-32000, message)]]) })
    const nodes = [saying('already known'), saying('replacement transaction underpriced'), saying('a mood'), down()]
    expect(await chainOverNodes(nodes).chain.send(raw, 'all', never)).toEqual([
      { node: 0, is: 'taken' },
      { node: 1, is: 'refused', code: 'replacement-underpriced' },
      { node: 2, is: 'refused', code: 'rejected', said: expect.stringContaining('code -32000: "a mood"') },
      { node: 3, is: 'refused', code: 'unavailable' },
    ])
  })
})

describe('logs of requests', () => {
  const pubkey: Hex = `0x${'ab'.repeat(48)}`
  const data = (amountGwei: bigint, from: Hex = sender, key: Hex = pubkey): Hex =>
    `${from.toLowerCase() as Hex}${encodeRequestCalldata(
      amountGwei === 0n ? { kind: 'exit', pubkey: key } : { kind: 'withdrawal', pubkey: key, amountGwei: amountGwei as never },
    ).slice(2)}`
  const log = (...of: Parameters<typeof data>) => ({ address: withdrawalRequestContract, data: data(...of) })
  const asking = transaction(1, 0, { logs: [log(5n), log(5n), log(6n, '0x0000000000000000000000000000000000000abc')] })
  const later = transaction(2, 1, { logs: [log(0n), log(7n, sender, `0x${'cd'.repeat(48)}`)] })
  const query = { sender, pubkey, fromBlock: 20n }

  test('are those of the sender and the key, from a block on', async () => {
    const { chain } = chainOverNodes([
      node({ blocks: chainOfBlocks(100, { 10: [transaction(9, 9, { logs: [log(1n)] })], 30: [asking], 99: [later] }) }),
    ])
    expect((await chain.requestLogs(query, never)).map(({ amountGwei, blockNumber }) => [amountGwei, blockNumber])).toEqual([
      [5n, 30n],
      [5n, 30n],
      [0n, 99n],
    ])
  })

  test('are all that any healthy node shows, each once', async () => {
    const { chain } = chainOverNodes([
      node({ blocks: chainOfBlocks(100, { 30: [asking] }) }),
      node({ blocks: chainOfBlocks(101, { 30: [asking], 101: [later] }) }),
    ])
    expect(await chain.requestLogs(query, never)).toHaveLength(3)
  })

  test('come from the nodes that serve them', async () => {
    const refusing = node({ says: new Map([['eth_getLogs', rpcError(-32601, 'no')]]) })
    const { chain } = chainOverNodes([refusing, node({ blocks: chainOfBlocks(100, { 30: [asking] }) })])
    expect(await chain.requestLogs(query, never)).toHaveLength(2)
    await expect(chainOverNodes([refusing]).chain.requestLogs(query, never)).rejects.toThrow(/eth_getLogs/)
  })

  test.each([
    { name: 'all answer', nodes: () => [node(), node()], isWhole: true },
    { name: 'one is down', nodes: () => [node(), down()], isWhole: false },
    { name: 'one has not come that far', nodes: () => [node(), node({ blocks: chainOfBlocks(98) })], isWhole: false },
    {
      name: 'one never serves logs',
      nodes: () => [node(), node({ says: new Map([['eth_getLogs', rpcError(-32601, 'no')]]) })],
      isWhole: true,
    },
  ])('of everybody need not be read again: $isWhole where $name', async ({ nodes, isWhole }) => {
    const all = nodes()
    const [first] = all
    if (first !== undefined) first.blocks = chainOfBlocks(100, { 10: [later], 30: [asking] })
    const found = await chainOverNodes(all).chain.requestsBetween(20n, 100n, never)
    expect(found.requests.map(({ blockNumber }) => blockNumber)).toEqual([30n, 30n, 30n])
    expect(found.isWhole).toBe(isWhole)
  })
})

test('a view is head and final block of the first healthy node', async () => {
  const { chain } = chainOverNodes([node()])
  expect(await chain.view(never)).toEqual({
    latest: { number: 100n, hash: blocks[100]?.hash, timestamp: 1_700_001_200 },
    final: { number: 60n, hash: blocks[60]?.hash },
    baseFeePerGas: 7n,
  })
})
