import { keccak256, toHex } from 'viem'
import type { Clock } from '../../lib/clock.ts'
import type { Address, BlockHash, Hash, Hex } from './chain.ts'
import { ethereumNetworkConfig } from './networks.ts'
import { createEthereumChain } from './rpc-chain.ts'

export interface TestTransaction {
  readonly hash: Hash
  readonly from: Address
  readonly nonce: number
  /** Fields and signature that have its hash, as a node shows them; without, it is proven by no node alone. */
  readonly signed?: Readonly<Record<string, unknown>>
  readonly logs?: readonly { readonly address: Address; readonly data: Hex; readonly topics?: readonly Hex[] }[]
}
export interface TestBlock {
  readonly hash: BlockHash
  readonly timestamp: number
  readonly transactions: readonly TestTransaction[]
}

export interface TestNode {
  /** By number. Replace it, or take its end away, to fork or to fall behind. */
  blocks: readonly TestBlock[]
  pool: TestTransaction[]
  /** Blocks on top that make one final. */
  depth: number
  /** Answers nothing at all. */
  down: boolean
  /** Instead of the honest answer; an object with `error` is an error, one with `httpStatus` an HTTP status with HTML. */
  readonly says: Map<string, (params: readonly unknown[], honest: () => unknown) => unknown>
  readonly refusesBatches: boolean
  /** Methods, as they were asked. */
  readonly seen: string[]
  /** HTTP requests. */
  requests: number
}

export const hashOf = (text: string): Hex => keccak256(toHex(text))
export const testHash = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`
export const testSender: Address = '0x52908400098527886E0F7030069857D2E4169EE7'

/** Blocks up to a height, 12 s apart, with transactions by the number of their block. */
export const chainOfBlocks = (
  height: number,
  transactions: Readonly<Record<number, readonly TestTransaction[]>> = {},
  fork: { readonly from: number; readonly name: string } = { from: height + 1, name: '' },
): readonly TestBlock[] =>
  Array.from({ length: height + 1 }, (_, number) => ({
    hash: hashOf(`block ${number} ${number >= fork.from ? fork.name : ''}`),
    timestamp: 1_700_000_000 + number * 12,
    transactions: transactions[number] ?? [],
  }))

export const createTestNode = (given: Partial<TestNode> = {}): TestNode => ({
  blocks: chainOfBlocks(100),
  pool: [],
  depth: 40,
  down: false,
  says: new Map(),
  refusesBatches: false,
  seen: [],
  requests: 0,
  ...given,
})

/** A refusal by JSON-RPC. */
export const rpcError = (code: number, message: string) => () => ({ error: { code, message } })
/** A refusal by HTTP, with HTML. */
export const httpStatus = (httpStatus: number) => () => ({ httpStatus })

interface Call {
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

/** A chain over nodes in memory, by the product's own code; the clock is the test's. */
export function chainOverNodes(nodes: readonly TestNode[], more: { readonly clock?: TestTime; readonly config?: object } = {}) {
  const clock = more.clock ?? createTestTime()
  const log: string[] = []
  const note = (fields: object, message: string) => log.push(`${message} ${JSON.stringify(fields)}`)
  let readings: Parameters<NonNullable<Parameters<typeof createEthereumChain>[0]['onNodes']>>[0] = () => []
  const config = ethereumNetworkConfig.parse({
    name: 'devnet',
    chain: 'Ethereum',
    chainId: 5,
    depositContractAddress: `0x${'dc'.repeat(20)}`,
    genesisForkVersion: '0x00000000',
    rpcUrls: nodes.map((_, index) => `https://n${index}.test/secret`),
    ...more.config,
  })
  const chain = createEthereumChain({
    config,
    clock,
    log: { info: note, warn: note },
    onNodes: (read) => {
      readings = read
    },
    fetch: async (url, init) => {
      const node = nodes[Number(new URL(String(url)).hostname.slice(1, -5))]
      if (node === undefined || node.down) throw new TypeError('fetch failed: https://secret')
      node.requests += 1
      return respond(node, JSON.parse(String(init?.body)) as Call | readonly Call[])
    },
  })
  return { chain, clock, log, readings: () => readings() }
}

function respond(node: TestNode, body: Call | readonly Call[]): Response {
  const isBatch = Array.isArray(body)
  if (isBatch && node.refusesBatches) return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no batches' } })
  const answers = [body].flat().map(({ id, method, params }: Call) => {
    node.seen.push(method)
    const honest = () => answerOf(node, method, params)
    const result = node.says.get(method)?.(params, honest) ?? honest()
    const isOdd = typeof result === 'object' && result !== null && ('error' in result || 'httpStatus' in result)
    return { jsonrpc: '2.0', id, ...(isOdd ? result : { result }) }
  })
  const status = answers.flatMap((answer) => ('httpStatus' in answer ? [Number(answer.httpStatus)] : []))[0]
  if (status !== undefined) return new Response('<html>secret</html>', { status })
  return Response.json(isBatch ? answers : answers[0])
}

function answerOf(node: TestNode, method: string, params: readonly unknown[]): unknown {
  const [first, second] = params
  const located = (hash: unknown) => {
    for (const [number, block] of node.blocks.entries())
      for (const transaction of block.transactions) if (transaction.hash === hash) return { number, block, transaction }
    return undefined
  }
  switch (method) {
    case 'eth_chainId':
      return '0x5'
    case 'eth_blockNumber':
      return toHex(node.blocks.length - 1)
    case 'eth_getBalance':
      return '0x7'
    case 'eth_getBlockByNumber':
      return blockAnswer(node, heightOf(node, first), second === true)
    case 'eth_getTransactionCount': {
      const height = heightOf(node, second)
      const mined = node.blocks.slice(0, height + 1).flatMap(({ transactions }) => transactions)
      let count = mined.filter(({ from }) => from === first).length
      if (second === 'pending') while (node.pool.some(({ from, nonce }) => from === first && nonce === count)) count += 1
      return toHex(count)
    }
    case 'eth_getTransactionByHash': {
      const found = located(first)
      if (found !== undefined) return transactionAnswer(found.transaction, found.number, found.block)
      const waiting = node.pool.find(({ hash }) => hash === first)
      return waiting === undefined ? null : transactionAnswer(waiting)
    }
    case 'eth_getTransactionReceipt': {
      const found = located(first)
      return found === undefined ? null : receiptAnswer(found.transaction, found.number, found.block.hash)
    }
    case 'eth_sendRawTransaction':
      return keccak256(first as Hex)
    case 'eth_getLogs':
      return logsAnswer(node, first as { address: string; fromBlock: Hex; toBlock: Hex })
    default:
      return { error: { code: -32601, message: 'the method does not exist' } }
  }
}

function heightOf(node: TestNode, at: unknown): number {
  const latest = node.blocks.length - 1
  if (at === 'latest' || at === 'pending') return latest
  if (at === 'finalized') return Math.max(0, latest - node.depth)
  return Number(at)
}

function blockAnswer(node: TestNode, number: number, whole: boolean): unknown {
  const block = node.blocks[number]
  if (block === undefined) return null
  return {
    number: toHex(number),
    hash: block.hash,
    timestamp: toHex(block.timestamp),
    baseFeePerGas: '0x7',
    transactions: block.transactions.map((one) => (whole ? transactionAnswer(one, number, block) : one.hash)),
  }
}

const transactionAnswer = ({ hash, from, nonce, signed = {} }: TestTransaction, number?: number, block?: TestBlock) => ({
  hash,
  from: from.toLowerCase(),
  to: `0x${'aa'.repeat(20)}`,
  nonce: toHex(nonce),
  input: '0x',
  value: '0x1',
  ...signed,
  blockNumber: number === undefined ? null : toHex(number),
  blockHash: block?.hash ?? null,
})

export const receiptAnswer = ({ hash, from }: TestTransaction, number: number, blockHash: BlockHash) => ({
  transactionHash: hash,
  from: from.toLowerCase(),
  status: '0x1',
  blockNumber: toHex(number),
  blockHash,
  gasUsed: '0x1',
  effectiveGasPrice: '0x1',
  logs: [],
})

function logsAnswer(node: TestNode, { address, fromBlock, toBlock }: { address: string; fromBlock: Hex; toBlock: Hex }): unknown {
  return node.blocks.flatMap((block, number) =>
    number < Number(fromBlock) || number > Number(toBlock)
      ? []
      : block.transactions.flatMap((one) =>
          (one.logs ?? [])
            .filter((log) => log.address.toLowerCase() === address.toLowerCase())
            .map((log) => ({
              address: log.address,
              topics: log.topics ?? [],
              data: log.data,
              blockNumber: toHex(number),
              blockHash: block.hash,
              transactionHash: one.hash,
            })),
        ),
  )
}

/** Time that passes when told; sleeps never end by themselves. The wall clock begins at block 100 of `chainOfBlocks`. */
export interface TestTime extends Clock {
  advance(ms: number): void
}
export function createTestTime(start = 1_700_000_000_000 + 100 * 12_000): TestTime {
  let now = 0
  return {
    now: () => new Date(start + now),
    monotonicMs: () => now,
    sleep: (_ms, signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    advance: (ms) => {
      now += ms
    },
  }
}
