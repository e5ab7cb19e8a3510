import type { z } from 'zod'
import { sameHex } from '../../lib/hex.ts'
import { RpcFailure } from '../../lib/json-rpc.ts'
import { ChainError, type ChainReceipt, type ChainTransaction, type EthereumChain, type Hash } from './chain.ts'
import { isProven } from './proven-transaction.ts'
import { blockRef, quantity, read, receipt, toHex, transaction } from './rpc-formats.ts'
import type { RpcNode, RpcNodes } from './rpc-nodes.ts'
import { createWorstOfAll } from './worst.ts'

export interface TransactionLookup extends Pick<EthereumChain, 'transaction' | 'receipt'> {
  /** Told of every head that is read. */
  saw(node: RpcNode, head: { readonly latest: bigint; readonly final: bigint }): void
}

interface Lookup<T> {
  readonly method: string
  readonly schema: z.ZodType<T>
  /** @returns whether no other node's word is needed @throws where it can't be so */
  isEnough(found: T, answer: unknown, node: RpcNode, signal: AbortSignal): Promise<boolean>
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
   * @returns what the nodes show, up to the first that is enough; empty where none shows any
   */
  async function lookUp<T extends { readonly hash: Hash }>(
    { method, schema, isEnough }: Lookup<T>,
    hash: Hash,
    signal: AbortSignal,
  ): Promise<readonly Found<T>[]> {
    const ask = async (node: RpcNode): Promise<Found<T> | undefined> => {
      const answer = await node.call(method, [hash], signal)
      if (answer !== null) {
        const found = read(schema, answer, method)
        if (found.hash !== hash.toLowerCase()) throw new RpcFailure('no-answer', `the node answered ${method} with another transaction`)
        return { found, isEnough: await isEnough(found, answer, node, signal) }
      }
      if ((heights[node.index] ?? 0n) < knownFinal)
        heights[node.index] = read(quantity, await node.call('eth_blockNumber', [], signal), 'eth_blockNumber')
      if ((heights[node.index] ?? 0n) < knownFinal) throw new ChainError('unavailable', 'the node lags behind what is known to be final')
      return undefined
    }
    const answers = await nodes.race(ask, (value) => value?.isEnough === true, signal)
    if (answers.every((answer) => 'error' in answer)) throw worst(answers.flatMap((answer) => ('error' in answer ? [answer] : [])))
    return answers.flatMap((answer) => ('value' in answer && answer.value !== undefined ? [answer.value] : []))
  }

  const receipts: Lookup<ChainReceipt> = {
    method: 'eth_getTransactionReceipt',
    schema: receipt,
    // It counts only when its block is in the chain of the node that shows it.
    isEnough: async ({ blockNumber, blockHash }, _answer, node, signal) => {
      const answer = await node.call('eth_getBlockByNumber', [toHex(blockNumber), false], signal)
      if (answer !== null && read(blockRef, answer, 'eth_getBlockByNumber').hash === blockHash) return true
      throw new ChainError('unavailable', `a node of ${network} shows a receipt of a block that is not in its chain`)
    },
  }
  const transactions: Lookup<ChainTransaction> = {
    method: 'eth_getTransactionByHash',
    schema: transaction,
    isEnough: (found, answer) => isProven(answer, found),
  }

  return {
    saw(node, { latest, final }) {
      knownFinal = final > knownFinal ? final : knownFinal
      heights[node.index] = latest
    },
    receipt: async (hash, signal) => (await lookUp(receipts, hash, signal))[0]?.found,
    async transaction(hash, signal) {
      const shown = await lookUp(transactions, hash, signal)
      const proven = shown.find(({ isEnough }) => isEnough)
      if (proven !== undefined) return proven.found
      const [first, ...others] = shown.map(({ found }) => found)
      // ▸ What its hash does not prove is believed where each node of the network shows the same.
      if (first === undefined || (shown.length === nodes.count && others.every((other) => isSameTransaction(first, other)))) return first
      throw new ChainError(
        'unavailable',
        `a node of ${network} shows transaction ${hash}, and its hash and signature don't prove that it is that: it is believed once every node of the network shows the same`,
      )
    },
  }
}

interface Found<T> {
  readonly found: T
  /** Beside it, no other node's word is needed. */
  readonly isEnough: boolean
}

const isSameTransaction = (one: ChainTransaction, other: ChainTransaction): boolean =>
  one.from === other.from &&
  one.nonce === other.nonce &&
  one.valueWei === other.valueWei &&
  sameHex(one.data, other.data) &&
  sameHex(one.to ?? '0x', other.to ?? '0x')
