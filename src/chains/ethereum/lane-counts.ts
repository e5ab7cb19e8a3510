import { RpcFailure } from '../../lib/json-rpc.ts'
import type { Address, LaneCounts } from './chain.ts'
import { type Confirmations, viewOf } from './node-view.ts'
import { read, resultOf, smallNumber, toHex } from './rpc-formats.ts'
import type { RpcNode } from './rpc-nodes.ts'

export type Counts = NonNullable<LaneCounts['nodes'][number]>

const method = 'eth_getTransactionCount'

/**
 * How many transactions of an address a node counts, in its final chain, its latest block and its pool. A node whose counts can't be (some gateways answer
 * for a final block as for the pool) is refused. @throws RpcFailure
 */
export async function countsOf(
  node: RpcNode,
  confirmations: Confirmations,
  address: Address,
  signal: AbortSignal,
): Promise<{ readonly counts: Counts; readonly finalHeight: bigint }> {
  const view = await viewOf(node, confirmations, [], signal)
  const results = await node.batch(
    [toHex(view.final), 'latest', 'pending'].map((at) => ({ method, params: [address, at] })),
    signal,
  )
  const [final = 0, latest = 0, pending = 0] = results.map((result) => read(smallNumber, resultOf(result), method))
  if (final > latest || latest > pending)
    throw new RpcFailure('no-answer', `the node's transaction counts can't be: ${final} final, ${latest} mined, ${pending} with its pool`)
  return { counts: { final, latest, pending }, finalHeight: view.final }
}

/** Over all nodes; at least one is defined. */
export function laneCountsOf(nodes: readonly (Counts | undefined)[]): LaneCounts {
  const sane = nodes.filter((counts) => counts !== undefined)
  return {
    final: Math.max(...sane.map(({ final }) => final)),
    finalEverywhere: sane.length < nodes.length ? undefined : Math.min(...sane.map(({ final }) => final)),
    latest: Math.max(...sane.map(({ latest }) => latest)),
    pending: Math.max(...sane.map(({ pending }) => pending)),
    nodes,
  }
}
