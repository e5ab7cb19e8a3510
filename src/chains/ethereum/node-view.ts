import { RpcFailure, type RpcRequest, type RpcResult } from '../../lib/json-rpc.ts'
import type { ChainView } from './chain.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import { block, blockRef, read, resultOf, toHex } from './rpc-formats.ts'
import type { RpcNode } from './rpc-nodes.ts'

export type Confirmations = EthereumNetworkConfig['confirmations']

/** A node's head and finality, with what else was asked in the same look. */
export interface NodeView {
  readonly latest: ChainView['latest']
  readonly baseFeePerGas: ChainView['baseFeePerGas']
  /** The node's `finalized` block, or so many below its head as the configuration says; 0 before a chain's first finality. */
  readonly final: bigint
  /** Of the requests that were asked beside. */
  readonly results: readonly RpcResult[]
}

const blockBy = (tag: string, whole = false): RpcRequest => ({ method: 'eth_getBlockByNumber', params: [tag, whole] })

/** One look at a node. The latest block comes before the final one, whose finality must not be an older one's. @throws RpcFailure */
export async function viewOf(
  node: RpcNode,
  confirmations: Confirmations,
  requests: readonly RpcRequest[],
  signal: AbortSignal,
): Promise<NodeView> {
  const heads = confirmations === 'finalized' ? [blockBy('latest'), blockBy('finalized')] : [blockBy('latest')]
  const results = await node.batch([...heads, ...requests], signal)
  const answer = resultOf(results[0])
  if (answer === null) throw new RpcFailure('no-answer', 'the node has no latest block')
  const { number, hash, timestamp = 0, baseFeePerGas } = read(block, answer, 'eth_getBlockByNumber')
  node.sees({ height: number, timestamp: timestamp === 0 ? undefined : timestamp })
  const final = confirmations === 'finalized' ? min(finalizedOf(results[1]), number) : max(number - BigInt(confirmations), 0n)
  return { latest: { number, hash, timestamp }, baseFeePerGas, final, results: results.slice(heads.length) }
}

/** Before a chain's first finality nodes answer null or an error. */
function finalizedOf(result: RpcResult | undefined): bigint {
  try {
    const answer = resultOf(result)
    return answer === null ? 0n : read(blockRef, answer, 'eth_getBlockByNumber').number
  } catch (error) {
    if (error instanceof RpcFailure && error.kind === 'node' && /finalized|unknown block/i.test(error.node?.message ?? '')) return 0n
    throw error
  }
}

/** Blocks by number on one node, in one request; undefined where the node has none. @throws RpcFailure */
export async function blocksOf<T>(
  node: RpcNode,
  numbers: readonly bigint[],
  schema: { readonly whole: boolean; readonly read: (answer: unknown) => T },
  signal: AbortSignal,
): Promise<readonly (T | undefined)[]> {
  if (numbers.length === 0) return []
  const results = await node.batch(
    numbers.map((number) => blockBy(toHex(number), schema.whole)),
    signal,
  )
  return results.map((result) => {
    const answer = resultOf(result)
    return answer === null ? undefined : schema.read(answer)
  })
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
