import type { z } from 'zod'
import { RpcFailure } from '../../lib/json-rpc.ts'
import { ChainError, type ChainReceipt, type EthereumChain, type Hash } from './chain.ts'
import { blockRef, quantity, read, receipt, toHex, transaction } from './rpc-formats.ts'
import type { RpcNode, RpcNodes } from './rpc-nodes.ts'
import { createWorstOfAll } from './worst.ts'

export interface TransactionLookup extends Pick<EthereumChain, 'transaction' | 'receipt'> {
  /** Told of every head that is read. */
  saw(node: RpcNode, head: { readonly latest: bigint; readonly final: bigint }): void
}

/** Looks for single transactions and receipts on all nodes. */
export function createTransactionLookup(nodes: RpcNodes, network: string): TransactionLookup {
  const worst = createWorstOfAll(network)
  /** The highest block that this process was ever told to be final. */
  let knownFinal = 0n
  /** By node, the highest block that it is known to have. */
  const heights: bigint[] = []

  /**
   * Looks for a transaction or receipt on every node: one may have what another has dropped or not seen yet. "Nowhere" is believed only of a
   * node that has every block which we know to be final: otherwise a node that lags could hide a transaction that is mined, and we would
   * make it a second time.
   */
  async function lookUp<T extends { readonly hash: Hash }>(
    method: string,
    schema: z.ZodType<T>,
    hash: Hash,
    signal: AbortSignal,
    check: (node: RpcNode, found: T) => Promise<void> = async () => {},
  ): Promise<T | undefined> {
    const ask = async (node: RpcNode): Promise<T | undefined> => {
      const answer = await node.call(method, [hash], signal)
      if (answer !== null) {
        const found = read(schema, answer, method)
        if (found.hash !== hash.toLowerCase()) throw new RpcFailure('no-answer', `the node answered ${method} with another transaction`)
        await check(node, found)
        return found
      }
      if ((heights[node.index] ?? 0n) < knownFinal)
        heights[node.index] = read(quantity, await node.call('eth_blockNumber', [], signal), 'eth_blockNumber')
      if ((heights[node.index] ?? 0n) < knownFinal) throw new ChainError('unavailable', 'the node lags behind what is known to be final')
      return undefined
    }
    const answers = await nodes.race(ask, (value) => value !== undefined, signal)
    const found = answers.find((answer) => 'value' in answer && answer.value !== undefined)
    if (found !== undefined && 'value' in found) return found.value
    if (answers.some((answer) => 'value' in answer)) return undefined
    throw worst(answers.flatMap((answer) => ('error' in answer ? [answer] : [])))
  }

  /** A receipt counts only when its block is in the chain of the node that shows it. */
  const inOwnChain = async (node: RpcNode, { blockNumber, blockHash }: ChainReceipt, signal: AbortSignal): Promise<void> => {
    const answer = await node.call('eth_getBlockByNumber', [toHex(blockNumber), false], signal)
    if (answer === null || read(blockRef, answer, 'eth_getBlockByNumber').hash !== blockHash)
      throw new ChainError('unavailable', `a node of ${network} shows a receipt of a block that is not in its chain`)
  }

  return {
    saw(node, { latest, final }) {
      knownFinal = final > knownFinal ? final : knownFinal
      heights[node.index] = latest
    },
    transaction: (hash, signal) => lookUp('eth_getTransactionByHash', transaction, hash, signal),
    receipt: (hash, signal) => lookUp('eth_getTransactionReceipt', receipt, hash, signal, (node, found) => inOwnChain(node, found, signal)),
  }
}
