import { RpcFailure, type RpcResult } from '../../lib/json-rpc.ts'
import { type Address, ChainError, type ChainReceipt, type ChainTransaction } from './chain.ts'
import { blocksOf } from './node-view.ts'
import { blockWithTransactions, read, receipt, resultOf, smallNumber, toHex, transaction } from './rpc-formats.ts'
import type { RpcNode } from './rpc-nodes.ts'

const method = 'eth_getTransactionCount'
/** Heights asked about in one request. */
const probesAtOnce = 15n

/**
 * Names the transaction that used a nonce, on one node: by the number of transactions that the address had sent at each height, which only grows.
 * Undefined when the node can't: it does not keep states so old, or no transaction of that sender has the nonce (EIP-7702 lets others raise it).
 * @param at A height at which the nonce is used. @throws RpcFailure
 */
export async function nameNonceUse(
  node: RpcNode,
  { address, nonce, at }: { readonly address: Address; readonly nonce: number; readonly at: bigint },
  signal: AbortSignal,
): Promise<{ readonly transaction: ChainTransaction; readonly receipt: ChainReceipt } | undefined> {
  const height = await firstHeight(node, { address, nonce, at }, signal)
  if (height === undefined) return undefined
  const [block] = await blocksOf(
    node,
    [height],
    { whole: true, read: (answer) => read(blockWithTransactions, answer, 'eth_getBlockByNumber') },
    signal,
  )
  const raw = block?.transactions.find((one) => one.from.toLowerCase() === address.toLowerCase() && BigInt(one.nonce) === BigInt(nonce))
  if (block === undefined || raw === undefined) return undefined
  const found = read(transaction, raw, 'eth_getBlockByNumber')
  const [answer] = await node.batch([{ method: 'eth_getTransactionReceipt', params: [found.hash] }], signal)
  const value = resultOf(answer)
  if (value === null) return undefined
  const its = read(receipt, value, 'eth_getTransactionReceipt')
  if (its.hash !== found.hash || its.blockHash !== block.hash || its.blockNumber !== height)
    throw new RpcFailure('no-answer', 'the node shows a receipt of another block than the transaction has')
  return { transaction: { ...found, blockNumber: height, blockHash: block.hash }, receipt: its }
}

/** The lowest height at which the address had sent more than `nonce` transactions. Undefined when the node does not keep the states that tell. */
async function firstHeight(
  node: RpcNode,
  { address, nonce, at }: { readonly address: Address; readonly nonce: number; readonly at: bigint },
  signal: AbortSignal,
): Promise<bigint | undefined> {
  /** Used at each; whether it was in the states that the node doesn't keep is not known. */
  const usedAt = async (heights: readonly bigint[]): Promise<readonly (boolean | undefined)[]> => {
    const results = await node.batch(
      heights.map((height) => ({ method, params: [address, toHex(height)] })),
      signal,
    )
    return results.map((result) => {
      const count = countIn(result)
      return count === undefined ? undefined : count > nonce
    })
  }
  // Downwards in doubling steps, since it was used lately as a rule; then between the two that are found.
  const steps: bigint[] = [at]
  for (let step = 1n; step < at; step *= 2n) steps.push(at - step)
  const used = await usedAt(steps)
  if (used[0] !== true) return undefined
  const below = used.indexOf(false)
  // Before block 0 nobody has sent anything.
  let low: bigint | undefined = below < 0 ? (used.includes(undefined) ? undefined : 0n) : steps[below]
  let high: bigint = steps[used.lastIndexOf(true)] ?? at
  if (low === undefined) return undefined
  while (high - low > 1n) {
    const heights = between(low, high)
    const answers = await usedAt(heights)
    const before: { readonly low: bigint; readonly high: bigint } = { low, high }
    for (const [index, height] of heights.entries()) {
      if (answers[index] === true && height < high) high = height
      if (answers[index] === false && height > low) low = height
    }
    if (low === before.low && high === before.high) return undefined
  }
  return high
}

const between = (low: bigint, high: bigint): readonly bigint[] => {
  const gap = high - low
  const count = gap - 1n < probesAtOnce ? gap - 1n : probesAtOnce
  return Array.from({ length: Number(count) }, (_, index) => low + (gap * BigInt(index + 1)) / (count + 1n))
}

/** Undefined where the node does not keep the state. @throws RpcFailure for any other failure */
function countIn(result: RpcResult): number | undefined {
  if ('failure' in result && result.failure.kind === 'node') return undefined
  return read(smallNumber, resultOf(result), method)
}

/** Plain words for `unproven`. */
export const unproven = {
  notEverywhere: (silent: readonly number[]): string =>
    `${silent.length === 1 ? 'node' : 'nodes'} ${silent.map((index) => index + 1).join(', ')} did not answer sanely: all configured nodes must show the nonce as used in their final blocks`,
  unnamed: 'no node can name the transaction that used the nonce: configure one that keeps older states (an archive node)',
  disagreed: (block: { readonly number: bigint }): string =>
    `the nodes have different blocks at height ${block.number}, or not the same in it`,
  unknown: (block: { readonly number: bigint }): string => `not every node shows block ${block.number} as final yet`,
  failed: (error: unknown): string => (error instanceof ChainError ? error.message : 'the nodes did not answer'),
}
