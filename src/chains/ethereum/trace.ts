import { RpcFailure } from '../../lib/json-rpc.ts'
import type { BlockHash, ChainReceipt, ChainTransaction, Hash, Trace } from './chain.ts'
import { blocksOf, type Confirmations, viewOf } from './node-view.ts'
import { blockWithHashes, read, receipt, resultOf, transaction } from './rpc-formats.ts'
import type { RpcNode } from './rpc-nodes.ts'

/** What one node says of some transactions. */
export interface NodeLook {
  /** From 0. */
  readonly index: number
  readonly healthy: boolean
  readonly latest: bigint
  readonly final: bigint
  /** By hash in lower case. */
  readonly found: ReadonlyMap<Hash, { readonly transaction?: ChainTransaction | undefined; readonly receipt?: ChainReceipt | undefined }>
  /** The node's own blocks at the heights that matter; absent where it has none. */
  readonly blocks: ReadonlyMap<bigint, BlockContent>
}
export interface BlockContent {
  readonly hash: BlockHash
  /** Hashes, where the node gives them. */
  readonly transactions?: readonly Hash[] | undefined
}

/** The first look: heads, transactions and receipts. Blocks are read afterwards, on all nodes, when it is known which matter. @throws RpcFailure */
export async function lookFor(
  node: RpcNode,
  confirmations: Confirmations,
  hashes: readonly Hash[],
  signal: AbortSignal,
): Promise<Omit<NodeLook, 'blocks' | 'healthy'>> {
  const requests = hashes.flatMap((hash) => [
    { method: 'eth_getTransactionByHash', params: [hash] },
    { method: 'eth_getTransactionReceipt', params: [hash] },
  ])
  const view = await viewOf(node, confirmations, requests, signal)
  const found = new Map<Hash, { transaction?: ChainTransaction; receipt?: ChainReceipt }>()
  for (const [position, hash] of hashes.entries()) {
    const one = resultOf(view.results[2 * position])
    const two = resultOf(view.results[2 * position + 1])
    found.set(hash, {
      ...(one === null ? {} : { transaction: sameHash(hash, read(transaction, one, 'eth_getTransactionByHash')) }),
      ...(two === null ? {} : { receipt: sameHash(hash, read(receipt, two, 'eth_getTransactionReceipt')) }),
    })
  }
  return { index: node.index, latest: view.latest.number, final: view.final, found }
}

function sameHash<T extends { readonly hash: Hash }>(hash: Hash, found: T): T {
  if (found.hash !== hash) throw new RpcFailure('no-answer', 'the node answered with another transaction than the one asked for')
  return found
}

/** The heights at which the nodes' chains are compared. */
export const heightsOf = (looks: readonly Pick<NodeLook, 'found'>[]): readonly bigint[] => [
  ...new Set(
    looks.flatMap(({ found }) =>
      [...found.values()].flatMap(({ transaction, receipt }) => receipt?.blockNumber ?? transaction?.blockNumber ?? []),
    ),
  ),
]

/** @throws RpcFailure */
export async function blocksAt(node: RpcNode, heights: readonly bigint[], signal: AbortSignal): Promise<ReadonlyMap<bigint, BlockContent>> {
  const readBlock = (answer: unknown) => read(blockWithHashes, answer, 'eth_getBlockByNumber')
  const blocks = await blocksOf(node, heights, { whole: false, read: readBlock }, signal)
  return new Map(
    heights.flatMap((height, position) => {
      const block = blocks[position]
      return block === undefined || block.number !== height ? [] : [[height, block] as const]
    }),
  )
}

/** What all looks together say. Pure. */
export function traceOf(hashes: readonly Hash[], looks: readonly NodeLook[], silent: readonly number[]): Trace {
  const landed: { readonly look: NodeLook; readonly receipt: ChainReceipt }[] = []
  const disagreements: { readonly height: bigint; readonly indexes: readonly number[] }[] = []
  const lackedBy = new Map<Hash, number[]>()
  const known = new Set<Hash>()
  for (const hash of hashes) {
    const lacking: number[] = []
    for (const look of looks) {
      const { transaction, receipt } = look.found.get(hash) ?? {}
      const own = receipt !== undefined && isIn(look.blocks.get(receipt.blockNumber), receipt.blockHash, hash)
      if (own) landed.push({ look, receipt })
      else if (receipt !== undefined) disagreements.push({ height: receipt.blockNumber, indexes: [look.index] })
      if (own || (receipt === undefined && transaction !== undefined && isHeld(transaction, look))) known.add(hash)
      else lacking.push(look.index)
    }
    lackedBy.set(hash, lacking)
  }
  /** ▸ Nodes that contradict a receipt: by another block at its height, by that block without the transaction, or by another result of it. */
  const against = (receipt: ChainReceipt): readonly number[] =>
    looks.flatMap(({ index, blocks, found }) => {
      const block = blocks.get(receipt.blockNumber)
      const other = found.get(receipt.hash)?.receipt
      const isOther = other !== undefined && other.blockHash === receipt.blockHash && !isSameResult(other, receipt)
      return isOther || (block !== undefined && !isIn(block, receipt.blockHash, receipt.hash)) ? [index] : []
    })
  for (const { look, receipt } of landed) {
    const others = against(receipt)
    if (others.length > 0) disagreements.push({ height: receipt.blockNumber, indexes: [look.index, ...others] })
  }

  const byHealthy = landed.filter(({ look }) => look.healthy)
  const final = byHealthy.find(({ look, receipt }) => receipt.blockNumber <= look.final && against(receipt).length === 0)?.receipt
  const mined = final === undefined ? byHealthy[0]?.receipt : undefined
  const height = disagreements.map((one) => one.height).toSorted((a, b) => (a < b ? -1 : 1))[0]
  return {
    ...(final === undefined ? {} : { final }),
    ...(mined === undefined ? {} : { mined }),
    ...(height === undefined ? {} : { disagreement: { height, nodes: numbersAt(height, disagreements) } }),
    lackedBy,
    known,
    silent,
  }
}

/** Whether two nodes say the same of what a transaction did. */
export const isSameResult = (a: ChainReceipt, b: ChainReceipt): boolean =>
  a.success === b.success &&
  a.logs.length === b.logs.length &&
  a.logs.every((log, position) => {
    const other = b.logs[position]
    return other !== undefined && log.address === other.address && log.data === other.data && log.topics.join() === other.topics.join()
  })

export const isIn = (block: BlockContent | undefined, blockHash: BlockHash, transactionHash: Hash): boolean =>
  block !== undefined && block.hash === blockHash && (block.transactions === undefined || block.transactions.includes(transactionHash))

/** In the pool, or in a block of the node's chain whose receipt it doesn't show yet. */
const isHeld = ({ blockNumber, blockHash, hash }: ChainTransaction, { blocks }: NodeLook): boolean =>
  blockNumber === undefined || (blockHash !== undefined && isIn(blocks.get(blockNumber), blockHash, hash))

const numbersAt = (height: bigint, all: readonly { readonly height: bigint; readonly indexes: readonly number[] }[]): readonly number[] =>
  [...new Set(all.filter((one) => one.height === height).flatMap(({ indexes }) => indexes))]
    .toSorted((a, b) => a - b)
    .map((index) => index + 1)
