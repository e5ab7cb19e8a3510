import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { wei } from '../../lib/amounts.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import type { Hex } from './chain.ts'
import { ethereumNetworkConfig } from './networks.ts'
import { createEthereumChain } from './rpc-chain.ts'

const never = new AbortController().signal
const hash: Hex = `0x${'ab'.repeat(32)}`
const address = '0x52908400098527886E0F7030069857D2E4169EE7'
const canary = 'canary-5f3a'
const raw: Hex = '0x02c0'

type Reply =
  | { result: unknown }
  | { error: { code: number; message: string }; status?: number; headers?: Record<string, string> }
  | { html: number }
  | 'hang'
  | 'refuse'
  | 'flood'
type NodeScript = Record<string, Reply | ((params: unknown[]) => Reply)>

const block = (number: number) => ({ number: `0x${number.toString(16)}`, hash, baseFeePerGas: '0x7' })
const goodNode = (more: NodeScript = {}): NodeScript => ({
  eth_chainId: { result: '0x88bb0' },
  eth_getBlockByNumber: ([tag]) => ({ result: block(tag === 'finalized' ? 60 : 100) }),
  eth_blockNumber: { result: '0x64' },
  ...more,
})

/** A chain over nodes that answer by script; `seen` lists each call as `node:method`. */
function chainOver(
  scripts: NodeScript[],
  more: { confirmations?: number; clock?: Clock; timeoutMs?: number; maxResponseBytes?: number } = {},
) {
  const seen: string[] = []
  type Call = { method: string; params: unknown[]; id: number }
  const replyOf = (node: number, { method, params }: Call): Reply => {
    seen.push(`${node}:${method}`)
    const script = scripts[node - 1]?.[method] ?? { error: { code: -32601, message: 'method not found' } }
    return typeof script === 'function' ? script(params) : script
  }
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const node = Number(new URL(String(input)).hostname.slice(1, 2))
    const body = JSON.parse(String(init?.body)) as Call | Call[]
    const replies = [body].flat().map((call) => ({ id: call.id, reply: replyOf(node, call) }))
    // What befalls one call of a batch befalls the request.
    const reply = replies.map((one) => one.reply).find((one) => typeof one === 'string' || 'html' in one) ?? replies[0]?.reply ?? 'refuse'
    if (reply === 'refuse') throw new TypeError(`fetch failed ${canary}`, { cause: new Error(String(input)) })
    if (reply === 'hang') {
      return new Promise<Response>((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
    }
    if (reply === 'flood') return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1000)) }))
    if ('html' in reply) return new Response(`<html>${canary}</html>`, { status: reply.html })
    const { status = 200, headers = {} } = reply as { status?: number; headers?: Record<string, string> }
    const answers = replies.map(({ id, reply: one }) => {
      const { status: _status, headers: _headers, ...content } = one as Record<string, unknown>
      return { jsonrpc: '2.0', id, ...content }
    })
    return Response.json(Array.isArray(body) ? answers : answers[0], { status, headers })
  }
  const config = ethereumNetworkConfig.parse({
    name: 'hoodi',
    chain: 'Ethereum',
    rpcUrls: scripts.map((_, index) => `https://n${index + 1}.test/${canary}`),
    ...(more.confirmations === undefined ? {} : { confirmations: more.confirmations }),
  })
  const log: string[] = []
  const note = (fields: object, message: string) => log.push(`${JSON.stringify(fields)} ${message}`)
  const chain = createEthereumChain({
    config,
    clock: more.clock ?? systemClock,
    fetch,
    timeoutMs: more.timeoutMs ?? 1000,
    maxResponseBytes: more.maxResponseBytes ?? 10_000,
    log: { info: note, warn: note },
  })
  return { chain, seen, log }
}

const failure = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  expect(inspect(error, { depth: 9 })).not.toContain(canary)
  return error
}

describe('the next node is asked', () => {
  test.each<{ name: string; first: NodeScript }>([
    { name: 'is not reached', first: { eth_chainId: 'refuse' } },
    { name: 'serves another chain', first: goodNode({ eth_chainId: { result: '0x1' } }) },
    { name: 'says nothing', first: goodNode({ eth_getBalance: 'hang' }) },
    { name: 'answers HTML', first: goodNode({ eth_getBalance: { html: 200 } }) },
    { name: 'answers 502', first: goodNode({ eth_getBalance: { html: 502 } }) },
    { name: 'never ends its answer', first: goodNode({ eth_getBalance: 'flood' }) },
    { name: 'answers another shape', first: goodNode({ eth_getBalance: { result: 12 } }) },
    { name: 'answers null', first: goodNode({ eth_getBalance: { result: null } }) },
    { name: 'limits the rate', first: goodNode({ eth_getBalance: { error: { code: 429, message: 'Too Many Requests' }, status: 429 } }) },
    { name: 'has pruned the state', first: goodNode({ eth_getBalance: { error: { code: -32000, message: 'missing trie node' } } }) },
  ])('when the first $name', async ({ first }) => {
    const { chain, log } = chainOver([first, goodNode({ eth_getBalance: { result: '0x5' } })], { timeoutMs: 30 })
    expect(await chain.balance(address, never)).toBe(5n)
    expect(log.join()).not.toContain(canary)
    expect(log).not.toEqual([])
  })

  test('and the one that failed rests for a while', async () => {
    let now = 0
    const clock = { ...systemClock, monotonicMs: () => now }
    const { chain, seen } = chainOver([goodNode({ eth_getBalance: { html: 500 } }), goodNode({ eth_getBalance: { result: '0x5' } })], {
      clock,
    })
    await chain.balance(address, never)
    seen.length = 0
    await chain.balance(address, never)
    expect(seen).toEqual(['2:eth_getBalance'])
    now += 10_000
    seen.length = 0
    await chain.balance(address, never)
    // After a failure its chain id and genesis are asked again.
    expect(seen).toEqual(['1:eth_chainId', '1:eth_getBlockByNumber', '1:eth_getBalance', '2:eth_getBalance'])
  })

  test('but not when the first has refused for good', async () => {
    const { chain, seen } = chainOver([
      goodNode({ eth_estimateGas: { error: { code: 3, message: `execution reverted: ${canary}` } } }),
      goodNode(),
    ])
    expect(await failure(chain.estimateGas({ from: address, to: address, data: '0x', valueWei: wei(1n) }, never))).toMatchObject({
      code: 'reverted',
    })
    expect(seen).not.toContain('2:eth_estimateGas')
  })

  test('and when none can, that is said without URL or answer', async () => {
    const { chain } = chainOver([{ eth_chainId: 'refuse' }, goodNode({ eth_getBalance: { html: 503 } })])
    expect(await failure(chain.balance(address, never))).toMatchObject({ code: 'unavailable' })
  })
})

describe('finality', () => {
  test('is what the node says', async () => {
    const { chain } = chainOver([goodNode()])
    expect(await chain.head(never)).toEqual({ latest: 100n, final: 60n, baseFeePerGas: 7n })
  })
  test.each([
    { confirmations: 0, final: 100n },
    { confirmations: 12, final: 88n },
    { confirmations: 200, final: 0n },
  ])('or a depth of $confirmations', async ({ confirmations, final }) => {
    const { chain, seen } = chainOver(
      [goodNode({ eth_getTransactionCount: ([, at]) => ({ result: String(at).startsWith('0x') ? at : '0x64' }) })],
      { confirmations },
    )
    expect((await chain.head(never)).final).toBe(final)
    expect(await chain.transactionCount(address, 'final', never)).toBe(Number(final))
    expect(seen.filter((call) => call === '1:eth_getBlockByNumber')).toHaveLength(2)
  })
  test.each<{ name: string; finalized: Reply }>([
    { name: 'null', finalized: { result: null } },
    { name: 'an error', finalized: { error: { code: -39001, message: 'finalized block not found' } } },
  ])('is block 0 before the first, told by $name', async ({ finalized }) => {
    const { chain } = chainOver([goodNode({ eth_getBlockByNumber: ([tag]) => (tag === 'finalized' ? finalized : { result: block(100) }) })])
    expect((await chain.head(never)).final).toBe(0n)
  })
  test('many who ask at the same time share one call', async () => {
    const { chain, seen } = chainOver([goodNode()])
    await Promise.all(Array.from({ length: 100 }, () => chain.head(never)))
    expect(seen).toEqual(['1:eth_chainId', '1:eth_getBlockByNumber', '1:eth_getBlockByNumber'])
  })
})

const receipt = {
  transactionHash: hash,
  from: address,
  status: '0x1',
  blockNumber: '0x3c',
  blockHash: hash,
  gasUsed: '0x1',
  effectiveGasPrice: '0x1',
  logs: [],
}

describe('a receipt', () => {
  const nowhere = goodNode({ eth_getTransactionReceipt: { result: null } })

  test('is found on any node', async () => {
    const { chain } = chainOver([nowhere, goodNode({ eth_getTransactionReceipt: { result: receipt } })])
    expect(await chain.receipt(hash, never)).toMatchObject({ hash, success: true, blockNumber: 60n })
  })

  test('is nowhere when a node that has all final blocks says so', async () => {
    const { chain } = chainOver([nowhere])
    await chain.head(never)
    expect(await chain.receipt(hash, never)).toBeUndefined()
  })

  test('is not known when only a node that lags says that it is nowhere', async () => {
    let down = false
    const fresh = goodNode({ eth_getTransactionReceipt: () => (down ? 'refuse' : { result: null }) })
    const lagging = goodNode({ eth_blockNumber: { result: '0x3b' }, eth_getTransactionReceipt: { result: null } })
    const { chain } = chainOver([fresh, lagging])
    expect((await chain.head(never)).final).toBe(60n)
    down = true
    expect(await failure(chain.receipt(hash, never))).toMatchObject({ code: 'unavailable' })
  })

  test('of another transaction is not taken', async () => {
    const { chain } = chainOver([
      goodNode({ eth_getTransactionReceipt: { result: { ...receipt, transactionHash: `0x${'cd'.repeat(32)}` } } }),
    ])
    expect(await failure(chain.receipt(hash, never))).toMatchObject({ code: 'unavailable' })
  })
})

describe('a broadcast', () => {
  const says = (message: string): NodeScript => goodNode({ eth_sendRawTransaction: { error: { code: -32000, message } } })
  const takes = goodNode({ eth_sendRawTransaction: { result: hash } })

  test('goes to every node on the right chain, and to no other', async () => {
    const { chain, seen } = chainOver([takes, { ...takes, eth_chainId: { result: '0x1' } }, takes])
    await chain.broadcast(raw, never)
    const sent = () => seen.filter((call) => call.endsWith('eth_sendRawTransaction'))
    await expect.poll(sent).toHaveLength(2)
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(sent().toSorted()).toEqual(['1:eth_sendRawTransaction', '3:eth_sendRawTransaction'])
  })

  test.each<{ name: string; nodes: NodeScript[]; expected: string }>([
    { name: 'one takes it', nodes: [says('nonce too low'), takes], expected: 'ok' },
    { name: 'one has it already', nodes: [says('already known'), says('insufficient funds for gas * price + value')], expected: 'ok' },
    { name: 'one hangs and one takes it', nodes: [goodNode({ eth_sendRawTransaction: 'hang' }), takes], expected: 'ok' },
    {
      name: 'all refuse: the one that says most',
      nodes: [says('something odd'), says('transaction underpriced'), says('nonce too low')],
      expected: 'nonce-too-low',
    },
    {
      name: 'one is down and one refuses',
      nodes: [{ eth_chainId: 'refuse' }, says('replacement transaction underpriced')],
      expected: 'replacement-underpriced',
    },
    {
      name: 'all are down',
      nodes: [{ eth_chainId: 'refuse' }, goodNode({ eth_sendRawTransaction: { html: 502 } })],
      expected: 'unavailable',
    },
    { name: 'no answer in time', nodes: [goodNode({ eth_sendRawTransaction: 'hang' })], expected: 'unavailable' },
    { name: 'all serve another chain', nodes: [{ ...takes, eth_chainId: { result: '0x1' } }], expected: 'wrong-chain' },
  ])('$name → $expected', async ({ nodes, expected }) => {
    const { chain, seen } = chainOver(nodes, { timeoutMs: 50 })
    const outcome = await chain.broadcast(raw, never).then(
      () => ({ code: 'ok' }),
      (error: unknown) => error,
    )
    expect(outcome).toMatchObject({ code: expected })
    // Never twice to the same node: nothing is retried here.
    const sent = seen.filter((call) => call.endsWith('eth_sendRawTransaction'))
    expect(new Set(sent).size).toBe(sent.length)
  })
})

test('the caller leaves with the reason of its signal', async () => {
  const { chain } = chainOver([goodNode({ eth_getBalance: 'hang', eth_getTransactionReceipt: 'hang' })])
  const reason = new Error('lease lost')
  for (const call of [(signal: AbortSignal) => chain.balance(address, signal), (signal: AbortSignal) => chain.receipt(hash, signal)]) {
    const controller = new AbortController()
    setTimeout(() => controller.abort(reason), 5)
    await expect(call(controller.signal)).rejects.toBe(reason)
    await expect(call(AbortSignal.abort(reason))).rejects.toBe(reason)
  }
})

test('a node without eth_maxPriorityFeePerGas: its gas price less the base fee', async () => {
  const { chain } = chainOver([goodNode({ eth_gasPrice: { result: '0x9' } })])
  expect(await chain.priorityFee(never)).toBe(2n)
})

test('user name and password of a URL become Basic authentication', async () => {
  const sent: (RequestInit | undefined)[] = []
  const urls: string[] = []
  const chain = createEthereumChain({
    config: ethereumNetworkConfig.parse({ name: 'hoodi', chain: 'Ethereum', rpcUrls: ['https://user:p%40ss@node.test/'] }),
    clock: systemClock,
    fetch: async (url, init) => {
      urls.push(String(url))
      sent.push(init)
      return Response.json({ result: String(init?.body).includes('chainId') ? '0x88bb0' : '0x1' })
    },
  })
  await chain.balance(address, never)
  expect(urls[0]).toBe('https://node.test/')
  expect(sent[0]?.headers).toMatchObject({ authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}` })
})

describe('a call of a contract', () => {
  const echo = goodNode({ eth_call: ([call, at]) => ({ result: `0x${Buffer.from(JSON.stringify([call, at])).toString('hex')}` }) })
  const textOf = (data: Hex): unknown => JSON.parse(Buffer.from(data.slice(2), 'hex').toString())

  test.each<{ name: string; more: { blockNumber?: bigint }; at: string }>([
    { name: 'the latest block', more: {}, at: 'latest' },
    { name: 'a block that is named', more: { blockNumber: 100n }, at: '0x64' },
  ])('is made at $name', async ({ more, at }) => {
    const { chain } = chainOver([echo])
    expect(textOf(await chain.call({ to: address, data: '0x', ...more }, never))).toEqual([{ to: address, data: '0x' }, at])
  })

  test('that would be reverted says so', async () => {
    const { chain } = chainOver([goodNode({ eth_call: { error: { code: 3, message: `execution reverted ${canary}` } } })])
    expect(await failure(chain.call({ to: address, data: '0x' }, never))).toMatchObject({ code: 'reverted' })
  })

  test('goes on to a node that has the block', async () => {
    const { chain } = chainOver([goodNode({ eth_call: { error: { code: -32000, message: 'header not found' } } }), echo])
    expect(textOf(await chain.call({ to: address, data: '0x', blockNumber: 3n }, never))).toEqual([{ to: address, data: '0x' }, '0x3'])
  })

  test('whose answer is no data is no answer', async () => {
    const { chain } = chainOver([goodNode({ eth_call: { result: '0x1' } })])
    expect(await failure(chain.call({ to: address, data: '0x' }, never))).toMatchObject({ code: 'unavailable' })
  })
})

test('the time of a block is in seconds, and a block that no node has is not known', async () => {
  const { chain } = chainOver([
    goodNode({ eth_getBlockByNumber: ([number]) => ({ result: number === '0x5' ? { ...block(5), timestamp: '0x67d80ec0' } : null }) }),
  ])
  expect(await chain.blockTime(5n, never)).toBe(1_742_212_800)
  expect(await failure(chain.blockTime(6n, never))).toMatchObject({ code: 'unavailable' })
})

describe('what a new storage slot costs', () => {
  /** A node whose new slot costs so much: 53,000 for a creation, and for each store of something a slot. */
  const nodeOf = (newSlot: number): NodeScript =>
    goodNode({
      eth_estimateGas: ([call]) => {
        const stores = (call as { data: string }).data.match(/600160..55/g)?.length ?? 0
        return { result: `0x${(53_000 + stores * newSlot).toString(16)}` }
      },
    })

  test.each([
    { what: 'under the fork in force, when that is dearer than any known', script: nodeOf(150_000), newSlot: 150_000n },
    {
      what: 'the dearest fork that is known, when the one in force is cheaper: it may be mined after the next',
      script: nodeOf(20_000),
      newSlot: 110_000n,
    },
    { what: 'that as well, where a node has no estimates', script: goodNode(), newSlot: 110_000n },
    { what: 'that as well, where an estimate is absurd', script: nodeOf(50_000_000), newSlot: 110_000n },
  ])('is $what', async ({ script, newSlot }) => {
    const { chain } = chainOver([script])
    expect(await chain.storageGas(never)).toEqual({ newSlot })
  })

  test('is measured once in a while, and not for every transaction', async () => {
    let now = 0
    const { chain, seen } = chainOver([nodeOf(150_000)], { clock: { ...systemClock, monotonicMs: () => now } })
    const asked = () => seen.filter((call) => call.endsWith('eth_estimateGas')).length
    await chain.storageGas(never)
    await chain.storageGas(never)
    expect(asked()).toBe(2)
    now = 600_001
    await chain.storageGas(never)
    expect(asked()).toBe(4)
  })
})
