import { describe, expect, test } from 'vitest'
import { wei } from '../../lib/amounts.ts'
import type { Hex } from './chain.ts'
import {
  chainOfBlocks,
  chainOverNodes,
  createTestNode,
  createTestTime,
  httpStatus,
  rpcError,
  type TestNode,
  testHash,
  testSender,
} from './test-nodes.ts'

const never = new AbortController().signal
const minute = 60_000
const balances = (node: TestNode): number => node.seen.filter((method) => method === 'eth_getBalance').length
const asked = (node: TestNode, method: string): boolean => node.seen.includes(method)
const forget = (...nodes: TestNode[]): void => {
  for (const node of nodes) node.seen.length = 0
}
const estimate = { from: testSender, to: testSender, data: '0x' as Hex, valueWei: wei(1n) }

describe('a first node that stands still while the second goes on', () => {
  /** Both at block 100; then time passes, and only the second has new blocks. */
  async function stuckFirst() {
    const nodes = [createTestNode(), createTestNode()] as const
    const over = chainOverNodes(nodes)
    expect((await over.chain.head(never)).latest).toBe(100n)
    for (let block = 101; block <= 106; block++) {
      over.clock.advance(12_000)
      nodes[1].blocks = chainOfBlocks(block)
      await over.chain.head(never)
    }
    forget(...nodes)
    return { ...over, nodes }
  }

  test('is out: the second answers', async () => {
    const { chain, nodes, log, readings } = await stuckFirst()
    expect((await chain.head(never)).latest).toBe(106n)
    await chain.balance(testSender, never)
    expect(nodes.map(balances)).toEqual([0, 1])
    expect(log.join()).toContain('asked last')
    expect(readings()).toMatchObject([
      { node: 1, height: 100n, lag: 6n, unhealthy: true },
      { node: 2, height: 106n, lag: 0n, unhealthy: false },
    ])
  })

  test('comes back when it moves', async () => {
    const { chain, nodes, clock, log } = await stuckFirst()
    nodes[0].blocks = chainOfBlocks(107)
    nodes[1].blocks = chainOfBlocks(107)
    clock.advance(12_000)
    await chain.balance(testSender, never)
    expect(nodes.map(balances)).toEqual([1, 0])
    expect(log.join()).toContain('asked again')
  })

  test('answers when the other is gone, but not for the history of deposits', async () => {
    const { chain, nodes } = await stuckFirst()
    nodes[1].down = true
    expect(await chain.balance(testSender, never)).toBe(7n)
    await expect(chain.depositsFor(`0x${'aa'.repeat(48)}` as const, never)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('shows nothing as mined', async () => {
    const { chain, nodes } = await stuckFirst()
    nodes[0].blocks = chainOfBlocks(100, { 99: [{ hash: testHash(1), from: testSender, nonce: 0 }] }, { from: 99, name: 'orphaned' })
    const trace = await chain.trace([testHash(1)], never)
    expect(trace).toMatchObject({ disagreement: { height: 99n, nodes: [1, 2] } })
    expect(trace.mined ?? trace.final).toBeUndefined()
  })
})

test('a node that is far behind when it is first asked is out at once', async () => {
  const nodes = [createTestNode({ blocks: chainOfBlocks(10) }), createTestNode()]
  const { chain } = chainOverNodes(nodes)
  expect((await chain.head(never)).latest).toBe(100n)
})

test('and so for all who ask at that moment', async () => {
  const nodes = [createTestNode({ blocks: chainOfBlocks(10) }), createTestNode()] as const
  const { chain } = chainOverNodes(nodes)
  await Promise.all([chain.balance(testSender, never), chain.balance(testSender, never), chain.balance(testSender, never)])
  expect(nodes.map(balances)).toEqual([0, 3])
})

test('a node that lags by many young blocks is not out, and still the history of deposits is read from another', async () => {
  const second = (count: number) => chainOfBlocks(count).map((block, number) => ({ ...block, timestamp: 1_700_000_000 + number }))
  const noDeposits = [
    'eth_call',
    () => `0x${(32).toString(16).padStart(64, '0')}${(8).toString(16).padStart(64, '0')}${'0'.repeat(64)}`,
  ] as const
  const nodes = [
    createTestNode({ blocks: second(100), says: new Map([noDeposits]) }),
    createTestNode({ blocks: second(130), says: new Map([noDeposits]) }),
  ] as const
  const { chain } = chainOverNodes(nodes, { clock: createTestTime((1_700_000_000 + 140) * 1000) })
  expect((await chain.head(never)).latest).toBe(100n)
  expect(await chain.depositsFor(`0x${'aa'.repeat(48)}` as const, never)).toEqual([])
  expect(nodes.map((node) => asked(node, 'eth_getLogs'))).toEqual([false, true])
})

test('a node that claims to be far ahead puts no other out', async () => {
  const nodes = [createTestNode(), createTestNode({ blocks: chainOfBlocks(3_000) })] as const
  const { chain, clock } = chainOverNodes(nodes)
  for (let block = 101; block <= 110; block++) {
    clock.advance(12_000)
    nodes[0].blocks = chainOfBlocks(block)
    expect((await chain.head(never)).latest).toBe(BigInt(block))
  }
})

test.each([1, 2])('%i that all stand still go on answering, and it is said', async (count) => {
  const nodes = Array.from({ length: count }, () => createTestNode())
  const { chain, clock, log, readings } = chainOverNodes(nodes)
  for (let minutes = 0; minutes < 10; minutes++) {
    expect((await chain.head(never)).latest).toBe(100n)
    clock.advance(minute)
  }
  readings()
  expect(readings().map(({ unhealthy }) => unhealthy)).toEqual(Array(count).fill(false))
  expect(log.filter((line) => line.includes('no node of the network has shown a new block'))).toHaveLength(1)
})

describe('a method that the first node refuses', () => {
  const refusals: { name: string; says: () => unknown }[] = [
    { name: '-32601', says: rpcError(-32601, 'the method eth_estimateGas does not exist/is not available') },
    { name: 'not on the plan', says: rpcError(-32600, 'eth_estimateGas is not on your plan, upgrade at https://secret') },
    { name: '401 as an error', says: rpcError(401, 'unauthorized') },
    { name: '402 as an error', says: rpcError(402, 'payment required') },
    { name: '403 as an error', says: rpcError(403, 'forbidden') },
    { name: '401 by HTTP', says: httpStatus(401) },
    { name: '402 by HTTP', says: httpStatus(402) },
    { name: '403 by HTTP', says: httpStatus(403) },
    { name: 'an error nobody knows', says: rpcError(-32098, 'a mood') },
    { name: 'an error without words', says: rpcError(-32000, '') },
  ]
  const refusing = (says: () => unknown) => createTestNode({ says: new Map([['eth_estimateGas', says]]) })
  const serving = () => createTestNode({ says: new Map([['eth_estimateGas', () => '0x9']]) })

  test.each(refusals)('is asked of the next, and of that one first for some minutes ($name)', async ({ says }) => {
    const [first, second] = [refusing(says), serving()]
    const { chain, clock } = chainOverNodes([first, second])
    expect(await chain.estimateGas(estimate, never)).toBe(9n)
    expect(asked(first, 'eth_estimateGas')).toBe(true)
    forget(first, second)
    expect(await chain.estimateGas(estimate, never)).toBe(9n)
    expect(asked(first, 'eth_estimateGas')).toBe(false)
    // Only this method.
    await chain.balance(testSender, never)
    expect([first, second].map(balances)).toEqual([1, 0])
    // Then it is tried again.
    clock.advance(6 * minute)
    await chain.estimateGas(estimate, never)
    expect(asked(first, 'eth_estimateGas')).toBe(true)
  })

  test.each(refusals)('is named when there is no other node ($name)', async ({ name, says }) => {
    const only = refusing(says)
    const { chain } = chainOverNodes([only])
    for (let times = 0; times < 2; times++) {
      const error = await chain.estimateGas(estimate, never).catch((caught: unknown) => caught)
      expect(error).toMatchObject({ code: 'rejected', message: expect.stringContaining('eth_estimateGas') })
      // Its own words are shown, as far as they may be: no address of anybody's.
      expect(String(error)).not.toMatch(/secret|:\/\//)
      if (name === 'an error nobody knows') expect(String(error)).toContain('code -32098: "a mood"')
    }
    // It is asked each time, since nobody else could be.
    expect(only.seen.filter((method) => method === 'eth_estimateGas')).toHaveLength(2)
    // The node is well otherwise.
    expect(await chain.balance(testSender, never)).toBe(7n)
  })

  test('with an internal error is asked of the next one first as well', async () => {
    const [first, second] = [refusing(rpcError(-32603, 'internal error')), serving()]
    const { chain } = chainOverNodes([first, second])
    await chain.estimateGas(estimate, never)
    forget(first, second)
    await chain.estimateGas(estimate, never)
    expect(asked(first, 'eth_estimateGas')).toBe(false)
  })

  test('is not remembered where the others refuse it alike: then it is the question', async () => {
    const nodes = [refusing(rpcError(-32602, 'invalid params')), refusing(rpcError(-32602, 'invalid params'))]
    const { chain, readings } = chainOverNodes(nodes)
    await expect(chain.estimateGas(estimate, never)).rejects.toMatchObject({
      code: 'rejected',
      isLasting: true,
      message: expect.stringContaining('eth_estimateGas'),
    })
    expect(readings().map(({ refusedMethods }) => refusedMethods)).toEqual([0, 0])
  })

  test.each([
    ['no such method', -32601, true],
    ['a reason that nobody knows', -32099, false],
  ])('of every node (%s) lasts or may pass: %s %s', async (_what, code, isLasting) => {
    const { chain } = chainOverNodes([refusing(rpcError(code, 'no')), refusing(rpcError(code, 'no'))])
    await expect(chain.estimateGas(estimate, never)).rejects.toMatchObject({ code: 'rejected', isLasting })
  })

  test.each([
    ['nonce-too-low', 'nonce too low'],
    ['underpriced', 'transaction underpriced'],
    ['insufficient-funds', 'insufficient funds for gas * price + value'],
    ['reverted', 'execution reverted'],
  ])('is another thing than what a node says of the transaction: %s is final', async (code, message) => {
    const second = serving()
    const { chain } = chainOverNodes([refusing(rpcError(-32000, message)), second])
    await expect(chain.estimateGas(estimate, never)).rejects.toMatchObject({ code })
    expect(asked(second, 'eth_estimateGas')).toBe(false)
  })

  test('is counted for each node', async () => {
    const { chain, readings, log } = chainOverNodes([refusing(rpcError(-32601, 'no')), serving()])
    await chain.estimateGas(estimate, never)
    expect(readings().map(({ refusedMethods, unhealthy }) => ({ refusedMethods, unhealthy }))).toEqual([
      { refusedMethods: 1, unhealthy: false },
      { refusedMethods: 0, unhealthy: false },
    ])
    expect(log.join()).toContain('eth_estimateGas')
  })
})

describe('a node that lets us in for nothing', () => {
  const methods = ['eth_chainId', 'eth_getBlockByNumber', 'eth_getBalance', 'eth_estimateGas']
  const shut = (says: () => unknown) => new Map(methods.map((method) => [method, says]))
  const answers: { name: string; status: number; says: () => unknown }[] = [
    { name: '401 by HTTP', status: 401, says: httpStatus(401) },
    { name: '402 by HTTP', status: 402, says: httpStatus(402) },
    { name: '403 by HTTP', status: 403, says: httpStatus(403) },
    { name: '401 as an error', status: 401, says: rpcError(401, 'invalid project id at https://secret') },
  ]
  test.each(answers)('is said for what it is, by its number ($name)', async ({ says, status }) => {
    const { chain } = chainOverNodes([createTestNode({ says: shut(says) })])
    const error = await chain.balance(testSender, never).catch((caught: unknown) => caught)
    expect(error).toMatchObject({
      code: 'access-denied',
      message: expect.stringContaining(`node 1 of devnet answers ${status} even to eth_chainId`),
    })
    expect(String(error)).not.toMatch(/secret|:\/\/|does not serve/)
  })
  test('costs the other node nothing, and that one is named in the log', async () => {
    const { chain, log } = chainOverNodes([createTestNode({ says: shut(httpStatus(401)) }), createTestNode()])
    expect(await chain.balance(testSender, never)).toBe(7n)
    expect(log.join()).toContain('node 1 of devnet answers 401')
  })
  const unserved = httpStatus(404)
  const wrongPath = new Map([...methods, 'eth_getTransactionCount'].map((method) => [method, unserved]))
  const refused = 'answers 403 even to eth_chainId'
  test.each([
    {
      what: 'both refuse us',
      nodes: [{ says: shut(httpStatus(403)) }, { says: shut(httpStatus(401)) }],
      first: refused,
      second: 'answers 401 even',
    },
    {
      what: 'the other is down',
      nodes: [{ says: shut(httpStatus(403)) }, { down: true }],
      first: refused,
      second: 'gives no usable answer now',
      again: true,
    },
    {
      what: 'the first is down',
      nodes: [{ down: true }, { says: shut(httpStatus(403)) }],
      first: 'gives no usable answer now',
      second: refused,
      again: true,
    },
    {
      what: 'the other is under a wrong path',
      nodes: [{ says: shut(httpStatus(403)) }, { says: wrongPath }],
      first: refused,
      second: "answers 404 to every request: check the URL's path",
    },
    {
      what: 'the other does not serve the method',
      nodes: [{ says: shut(httpStatus(403)) }, { says: new Map([['eth_getBalance', rpcError(-32601, 'no')]]) }],
      first: refused,
      second: 'does not serve eth_getBalance',
    },
  ])('is told beside the other, each for what it is: $what', async ({ nodes, first, second, again }) => {
    const { chain } = chainOverNodes(nodes.map((node) => createTestNode(node)))
    const error = await chain.balance(testSender, never).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'access-denied', isOfEach: true, retryAfterMs: again === true ? 10_000 : undefined })
    expect(String(error)).toMatch(new RegExp(`: node 1 of devnet ${first}.*; node 2 of devnet ${second}`))
    expect(String(error)).not.toMatch(/secret|:\/\//)
  })
  test('is told also where all are asked at once', async () => {
    for (const nodes of [
      [{ says: shut(httpStatus(403)) }, { down: true }],
      [{ down: true }, { says: shut(httpStatus(403)) }],
    ]) {
      const { chain } = chainOverNodes(nodes.map((node) => createTestNode(node)))
      const hash: Hex = `0x${'77'.repeat(32)}`
      for (const ask of [() => chain.laneCounts(testSender, never), () => chain.trace([hash], never), () => chain.transaction(hash, never)])
        await expect(ask()).rejects.toMatchObject({
          code: 'access-denied',
          message: expect.stringMatching(/answers 403.*usable|usable.*answers 403/),
        })
    }
  })
  test('hides nothing where the other only lacks a method, or is down like the first', async () => {
    const lacking = createTestNode({ says: new Map([['eth_getBalance', rpcError(-32601, 'no')]]) })
    await expect(chainOverNodes([createTestNode({ down: true }), lacking]).chain.balance(testSender, never)).rejects.toMatchObject({
      code: 'unavailable',
      isOfEach: true,
      message: expect.stringMatching(/node 1 of devnet gives no usable answer now; node 2 of devnet does not serve eth_getBalance/),
    })
    const down = [createTestNode({ down: true }), createTestNode({ down: true })]
    await expect(chainOverNodes(down).chain.balance(testSender, never)).rejects.toMatchObject({ code: 'unavailable', isOfEach: false })
  })
  test('because nothing is served under its path is told so, alone and with one request or many', async () => {
    for (const more of [[], [createTestNode({ down: true })]]) {
      const { chain } = chainOverNodes([createTestNode({ says: wrongPath }), ...more])
      await expect(chain.balance(testSender, never)).rejects.toMatchObject({
        code: 'access-denied',
        message: expect.stringContaining("node 1 of devnet answers 404 to every request: check the URL's path"),
      })
    }
    const once = createTestNode({ says: new Map([['eth_getBalance', unserved]]) })
    await expect(chainOverNodes([once]).chain.balance(testSender, never)).rejects.toMatchObject({ code: 'unavailable' })
  })
  test('is found out at once when its key ends, and comes back with it', async () => {
    const node = createTestNode()
    const { chain, clock } = chainOverNodes([node])
    await chain.balance(testSender, never)
    for (const method of methods) node.says.set(method, httpStatus(401))
    clock.advance(minute)
    await expect(chain.balance(testSender, never)).rejects.toMatchObject({ code: 'access-denied' })
    node.says.clear()
    clock.advance(minute)
    expect(await chain.balance(testSender, never)).toBe(7n)
  })
  test('is another than one that does not allow a single method', async () => {
    const node = createTestNode({ says: new Map([['eth_estimateGas', httpStatus(403)]]) })
    const { chain, clock } = chainOverNodes([node])
    await chain.balance(testSender, never)
    clock.advance(minute)
    await expect(chain.estimateGas(estimate, never)).rejects.toMatchObject({ code: 'rejected', isLasting: true })
  })
})

describe('the identity of a node', () => {
  const other = chainOfBlocks(100, {}, { from: 0, name: 'another network of the same chain id' })

  test('is its genesis too: one of another is not used', async () => {
    const nodes = [createTestNode(), createTestNode({ blocks: other })]
    const { chain, log } = chainOverNodes(nodes)
    await chain.balance(testSender, never)
    expect(await chain.laneCounts(testSender, never)).toMatchObject({ nodes: [{ final: 0 }, undefined] })
    expect(log.join()).toContain('genesis')
  })

  test('is the one of the configuration, where that gives it', async () => {
    const genesis = other[0]?.hash
    const { chain } = chainOverNodes([createTestNode(), createTestNode({ blocks: other })], { config: { genesisHash: genesis } })
    expect(await chain.genesisHash(never)).toBe(genesis)
    const alone = chainOverNodes([createTestNode()], { config: { genesisHash: genesis } })
    await expect(alone.chain.balance(testSender, never)).rejects.toMatchObject({ code: 'wrong-chain' })
  })

  test('is asked again every few minutes', async () => {
    const nodes = [createTestNode(), createTestNode()] as const
    const { chain, clock } = chainOverNodes(nodes)
    await chain.balance(testSender, never)
    nodes[0].blocks = other
    clock.advance(6 * minute)
    forget(...nodes)
    await chain.balance(testSender, never)
    expect(nodes.map(balances)).toEqual([0, 1])
  })

  test('is asked again after a failure', async () => {
    const nodes = [createTestNode(), createTestNode()] as const
    const { chain, clock } = chainOverNodes(nodes)
    await chain.balance(testSender, never)
    nodes[0].down = true
    await chain.balance(testSender, never)
    nodes[0].down = false
    nodes[0].blocks = other
    clock.advance(11_000)
    forget(...nodes)
    await chain.balance(testSender, never)
    expect(nodes.map(balances)).toEqual([0, 1])
  })
})

test('a node that failed is left out of what goes to all until its rest is over and it has shown its head', async () => {
  const nodes = [createTestNode({ down: true }), createTestNode()] as const
  const { chain, clock } = chainOverNodes(nodes)
  expect(await chain.trace([testHash(1)], never)).toMatchObject({ silent: [0] })
  nodes[0].down = false
  expect(await chain.trace([testHash(1)], never)).toMatchObject({ silent: [0] })
  expect(nodes[0].seen).toEqual([])
  clock.advance(11_000)
  await chain.head(never)
  expect(await chain.trace([testHash(1)], never)).toMatchObject({ silent: [] })
})

describe('a block that something was judged by', () => {
  const judgedBy = { number: 50n, hash: chainOfBlocks(50)[50]?.hash ?? ('0x' as const) }
  const has = () => createTestNode()
  const hasAnother = () => createTestNode({ blocks: chainOfBlocks(100, {}, { from: 50, name: 'another' }) })
  const isShorter = () => createTestNode({ blocks: chainOfBlocks(49) })
  const isDown = () => createTestNode({ down: true })
  test.each([
    { what: 'one node has it, and another is on a fork', nodes: [hasAnother(), has()], standing: 'disputed' },
    { what: 'one node has it, and another is down', nodes: [isDown(), has()], standing: 'stands' },
    { what: 'one node has it, and another has not come that far', nodes: [isShorter(), has()], standing: 'stands' },
    { what: 'every node has another', nodes: [hasAnother(), hasAnother()], standing: 'left' },
    { what: 'the only node has another', nodes: [hasAnother()], standing: 'left' },
    { what: 'one node has another, and one is down', nodes: [hasAnother(), isDown()], standing: 'unknown' },
    { what: 'the only node has not come that far', nodes: [isShorter()], standing: 'unknown' },
  ])('is $standing, when $what', async ({ nodes, standing }) => {
    expect(await chainOverNodes(nodes).chain.standing(judgedBy, never)).toBe(standing)
  })

  test('is told by the nodes that go on, and not by one that is stuck on a fork', async () => {
    const nodes = [hasAnother(), has()] as const
    const { chain, clock } = chainOverNodes(nodes)
    for (let block = 101; block <= 110; block++) {
      clock.advance(12_000)
      nodes[1].blocks = chainOfBlocks(block)
      await chain.head(never)
    }
    expect(await chain.standing(judgedBy, never)).toBe('stands')
  })
})
