import { RpcFailure } from '../../lib/json-rpc.ts'
import type { NodeLook, PastTransaction, SolanaChain } from './chain.ts'
import { SolanaError } from './chain.ts'
import { splitTransaction } from './message.ts'
import { account, epochInfo, pastTransaction, pastTransactions, read, signatureStatuses, u64, withContext } from './rpc-formats.ts'
import type { RpcNode, RpcNodes } from './rpc-nodes.ts'

/** What all nodes of a cluster say, each for itself. */
export function createLooks(
  nodes: RpcNodes,
  worst: (errors: readonly SolanaError[]) => SolanaError,
): Pick<SolanaChain, 'looks' | 'past' | 'message'> {
  /** By node; throws when none has answered. */
  async function ofAll<T>(use: (node: RpcNode) => Promise<T>, signal: AbortSignal): Promise<readonly (T | undefined)[]> {
    const answers = await nodes.each(use, signal)
    const found = answers.map((answer) => (answer !== undefined && 'value' in answer ? answer.value : undefined))
    if (found.some((value) => value !== undefined)) return found
    throw worst(answers.flatMap((answer) => (answer !== undefined && 'error' in answer ? [answer.error] : [])))
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
        const [found, statuses] = await Promise.all([
          node.call('getAccountInfo', [address, { commitment: 'finalized', encoding: 'base64' }], signal),
          signatures.length === 0 ? [] : statusesOf(node, signatures, signal),
        ])
        const { context, value } = read(withContext(account), found, 'getAccountInfo')
        // Behind one URL there may be several nodes.
        if (context.slot < absoluteSlot)
          throw new SolanaError('node-behind', 'the node shows an account of an earlier slot than its height')
        const since = statuses.some((status) => status === undefined) ? await historySince(node, signal) : undefined
        return {
          finalizedBlockHeight: blockHeight,
          slot: context.slot,
          account: value ?? undefined,
          statuses,
          ...(since === undefined ? {} : { historySince: since }),
        }
      }, signal),

    async past(address, signal) {
      const lists = await ofAll(
        async (node) =>
          read(
            pastTransactions,
            await node.call('getSignaturesForAddress', [address, { commitment: 'finalized', limit: 1000 }], signal),
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

async function statusesOf(node: RpcNode, signatures: readonly string[], signal: AbortSignal): Promise<NodeLook['statuses']> {
  const answer = await node.call('getSignatureStatuses', [signatures, { searchTransactionHistory: true }], signal)
  const { value } = read(signatureStatuses, answer, 'getSignatureStatuses')
  if (value.length !== signatures.length) throw new RpcFailure('no-answer', 'the node left signatures out')
  return value.map((status) => status ?? undefined)
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
