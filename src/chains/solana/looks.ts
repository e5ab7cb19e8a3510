import { RpcFailure } from '../../lib/json-rpc.ts'
import type { NodeLook, PastTransaction, SolanaChain } from './chain.ts'
import { SolanaError } from './chain.ts'
import { splitTransaction } from './message.ts'
import { toSolanaError } from './rpc-errors.ts'
import { account, epochInfo, pastTransaction, pastTransactions, read, signatureStatuses, u64, withContext } from './rpc-formats.ts'
import type { RpcNode, RpcNodes } from './rpc-nodes.ts'
import type { Worst } from './worst.ts'

/** What all nodes of a cluster say, each for itself. */
export function createLooks(nodes: RpcNodes, worst: Worst): Pick<SolanaChain, 'looks' | 'past' | 'message'> {
  /** By node; throws when none has answered. */
  async function ofAll<T>(use: (node: RpcNode) => Promise<T>, signal: AbortSignal): Promise<readonly (T | undefined)[]> {
    const answers = await nodes.each(use, signal)
    const found = answers.map((answer) => (answer !== undefined && 'value' in answer ? answer.value : undefined))
    if (found.some((value) => value !== undefined)) return found
    throw worst(answers.flatMap((answer) => (answer !== undefined && 'error' in answer ? [answer] : [])))
  }

  return {
    looks: (address, signatures, signal) =>
      ofAll(async (node): Promise<NodeLook> => {
        // The order matters: what is read after a height covers it.
        const { blockHeight, absoluteSlot } = read(
          epochInfo,
          await node.call('getEpochInfo', [{ commitment: 'finalized' }], signal),
          'getEpochInfo',
        )
        const atLeast = { minContextSlot: Number(absoluteSlot) }
        const [found, { statuses, hasHistory }] = await Promise.all([
          node.call('getAccountInfo', [address, { commitment: 'finalized', encoding: 'base64', ...atLeast }], signal),
          signatures.length === 0 ? { statuses: [], hasHistory: true } : statusesOf(node, signatures, absoluteSlot, signal),
        ])
        const { context, value } = read(withContext(account), found, 'getAccountInfo')
        // Behind one URL there may be several nodes.
        if (context.slot < absoluteSlot)
          throw new SolanaError('node-behind', 'the node shows an account of an earlier slot than its height')
        const isOpen = statuses.some((status) => status === undefined)
        const since = !isOpen ? undefined : hasHistory ? await historySince(node, signal) : absoluteSlot
        return {
          finalizedBlockHeight: blockHeight,
          slot: context.slot,
          account: value ?? undefined,
          statuses,
          ...(since === undefined ? {} : { historySince: since }),
        }
      }, signal),

    async past(address, atSlot, signal) {
      const lists = await ofAll(
        async (node) =>
          read(
            pastTransactions,
            await node.call(
              'getSignaturesForAddress',
              [address, { commitment: 'finalized', limit: 1000, minContextSlot: Number(atSlot) }],
              signal,
            ),
            'getSignaturesForAddress',
          ),
        signal,
      )
      const all = new Map<string, PastTransaction>()
      for (const one of lists.flatMap((list) => list ?? [])) all.set(one.signature, one)
      return [...all.values()].toSorted((a, b) => (a.slot === b.slot ? 0 : a.slot > b.slot ? -1 : 1))
    },

    async message(signature, signal) {
      const options = { commitment: 'finalized', encoding: 'base64', maxSupportedTransactionVersion: 0 }
      const found = await ofAll(
        async (node) => read(pastTransaction, await node.call('getTransaction', [signature, options], signal), 'getTransaction'),
        signal,
      )
      const [text] = found.find((one) => one !== null && one !== undefined)?.transaction ?? []
      return text === undefined ? undefined : splitTransaction(new Uint8Array(Buffer.from(text, 'base64'))).message
    },
  }
}

/**
 * What became of signatures, by a node that is not behind `since`: behind one URL there may be several nodes. Of one that keeps no history, only what
 * happened just now.
 */
async function statusesOf(
  node: RpcNode,
  signatures: readonly string[],
  since: bigint,
  signal: AbortSignal,
): Promise<{ readonly statuses: NodeLook['statuses']; readonly hasHistory: boolean }> {
  const method = 'getSignatureStatuses'
  const ask = (searchTransactionHistory: boolean) => node.call(method, [signatures, { searchTransactionHistory }], signal)
  let hasHistory = true
  const answer = await ask(true).catch((error: unknown) => {
    if (toSolanaError(error).code !== 'no-history') throw error
    hasHistory = false
    return ask(false)
  })
  const { context, value } = read(signatureStatuses, answer, method)
  if (value.length !== signatures.length) throw new RpcFailure('no-answer', 'the node left signatures out')
  if (context.slot < since) throw new SolanaError('node-behind', 'the node tells of signatures at an earlier slot than its height')
  return { statuses: value.map((status) => status ?? undefined), hasHistory }
}

/** First slot of the node's ledger; nodes behind a gateway may not serve the method, and then nothing is known. */
export async function historySince(node: RpcNode, signal: AbortSignal): Promise<bigint | undefined> {
  try {
    return read(u64, await node.call('getFirstAvailableBlock', [], signal), 'getFirstAvailableBlock')
  } catch (error) {
    if (error instanceof RpcFailure && (error.node !== undefined || error.kind === 'refused')) return undefined
    throw error
  }
}
