import { lowerCase } from '../../lib/chain-types.ts'
import { createGathering } from '../../lib/gather.ts'
import { RpcFailure } from '../../lib/json-rpc.ts'
import type { EthereumChain, FinalBlock, Hash, Hex, Sent } from './chain.ts'
import { countsOf, laneCountsOf } from './lane-counts.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import { blocksOf, viewOf } from './node-view.ts'
import { nameNonceUse, unproven } from './nonce-use.ts'
import { createRequestLogs, type RequestScan } from './request-logs.ts'
import { classifyNodeError } from './rpc-errors.ts'
import { blockRef, read, receipt, resultOf } from './rpc-formats.ts'
import type { RpcNode, RpcNodes } from './rpc-nodes.ts'
import { blocksAt, heightsOf, isIn, isSameResult, lookFor, traceOf } from './trace.ts'
import { createWorstOfAll } from './worst.ts'

/** Transactions looked for in one look: two questions each, in batches of twenty. */
const TRACED_AT_ONCE = 32

type Agreement = Pick<EthereumChain, 'laneCounts' | 'trace' | 'finalEverywhere' | 'nonceUse' | 'send' | 'requestLogs' | 'view'> &
  RequestScan

/** What decides about money: each question goes to all nodes, and each answer is one node's view. */
export function createAgreement({ nodes, config }: { readonly nodes: RpcNodes; readonly config: EthereumNetworkConfig }): Agreement {
  const { confirmations } = config
  const worst = createWorstOfAll(config.name)
  const indexes = Array.from({ length: nodes.count }, (_, index) => index)

  /** By node; and the nodes that gave none. @throws ChainError when none gave one and `required` */
  const askAll = async <T>(use: (node: RpcNode) => Promise<T>, signal: AbortSignal, only: readonly number[] = indexes) => {
    const answers = await nodes.each(use, signal, only)
    const values = answers.map((answer) => (answer !== undefined && 'value' in answer ? answer.value : undefined))
    const errors = answers.flatMap((answer) => (answer !== undefined && 'error' in answer ? [answer] : []))
    return { values, errors, silent: indexes.filter((index) => values[index] === undefined) }
  }

  /** One look of all nodes at some transactions: where each is, and the nodes' own blocks there. */
  const lookAt = async (hashes: readonly Hash[], signal: AbortSignal) => {
    const first = await askAll((node) => lookFor(node, confirmations, hashes, signal), signal)
    const answers = first.values.filter((look) => look !== undefined)
    const heights = heightsOf(answers)
    const second = await askAll(
      (node) => blocksAt(node, heights, signal),
      signal,
      answers.map(({ index }) => index),
    )
    const looks = answers.flatMap((look) => {
      const blocks = second.values[look.index]
      return blocks === undefined ? [] : [{ ...look, blocks, healthy: !nodes.isOut(look.index) }]
    })
    const answered = looks.map(({ index }) => index)
    return {
      asked: hashes.length,
      looks,
      silent: indexes.filter((index) => !answered.includes(index)),
      errors: [...first.errors, ...second.errors],
    }
  }
  // Each call within has its own time-out.
  const never = new AbortController().signal
  const gathered = createGathering((hashes: readonly Hash[]) => lookAt(hashes, never), { atMost: TRACED_AT_ONCE, atOnce: 2 })

  const finalEverywhere = async (block: FinalBlock, signal: AbortSignal) => {
    const { hash, receipt: shown } = block.holds ?? {}
    const verdict = async (node: RpcNode): Promise<'agreed' | 'disagreed' | 'behind'> => {
      const asked = shown === undefined ? [] : [{ method: 'eth_getTransactionReceipt', params: [shown.hash] }]
      const { final, latest, results } = await viewOf(node, confirmations, asked, signal)
      if (latest.number < block.number) return 'behind'
      const own = (await blocksAt(node, [block.number], signal)).get(block.number)
      if (own === undefined) return 'behind'
      if (own.hash !== block.hash.toLowerCase() || (hash !== undefined && !isIn(own, own.hash, lowerCase(hash)))) return 'disagreed'
      if (final < block.number) return 'behind'
      if (shown === undefined) return 'agreed'
      const answer = resultOf(results[0])
      if (answer === null) return 'behind'
      const its = read(receipt, answer, 'eth_getTransactionReceipt')
      return its.hash === shown.hash && its.blockHash === own.hash && isSameResult(its, shown) ? 'agreed' : 'disagreed'
    }
    const { values } = await askAll(verdict, signal)
    const against = indexes.filter((index) => values[index] === 'disagreed')
    if (against.length > 0) {
      nodes.disagreed(against)
      return 'disagreed'
    }
    return values.every((value) => value === 'agreed') ? 'agreed' : 'unknown'
  }

  return {
    laneCounts: async (address, signal) => {
      const { values, errors, silent } = await askAll(async (node) => (await countsOf(node, confirmations, address, signal)).counts, signal)
      if (silent.length === nodes.count) throw worst(errors)
      return laneCountsOf(values)
    },

    trace: async (given, signal) => {
      const hashes = [...new Set(given.map((hash) => lowerCase(hash)))]
      let seen = await gathered(hashes, signal)
      // What a node can't say of one transaction must not silence it about the others.
      if (seen.silent.length > 0 && seen.asked > hashes.length) seen = await lookAt(hashes, signal)
      if (seen.looks.length === 0) throw worst(seen.errors)
      const trace = traceOf(hashes, seen.looks, seen.silent)
      if (trace.disagreement !== undefined) nodes.disagreed(trace.disagreement.nodes.map((number) => number - 1))
      return trace
    },

    finalEverywhere,

    nonceUse: async (address, nonce, signal) => {
      const { values, silent } = await askAll((node) => countsOf(node, confirmations, address, signal), signal)
      const seen = values.filter((one) => one !== undefined)
      if (seen.some(({ counts }) => counts.final <= nonce)) return { is: 'unused' }
      if (silent.length > 0) return { is: 'unproven', why: unproven.notEverywhere(silent) }
      const at = seen.map(({ finalHeight }) => finalHeight).reduce((lowest, height) => (height < lowest ? height : lowest))
      const named = await firstOf(indexes, async (index) => {
        const { values: names } = await askAll((node) => nameNonceUse(node, { address, nonce, at }, signal), signal, [index])
        return names[index]
      })
      if (named === undefined) return { is: 'unproven', why: unproven.unnamed }
      const block = { number: named.receipt.blockNumber, hash: named.receipt.blockHash }
      // One node has named it: that it is in that block is every node's to say.
      const verdict = await finalEverywhere({ ...block, holds: { hash: named.transaction.hash } }, signal)
      if (verdict === 'agreed') return { is: 'used', ...named }
      return { is: 'unproven', why: unproven[verdict](block) }
    },

    send: async (raw, chosen, signal) => {
      const answers = await nodes.each((node) => sendRaw(node, raw, signal), signal, chosen === 'all' ? indexes : chosen)
      return answers.flatMap((answer, node): Sent[] => {
        if (answer === undefined) return []
        if ('value' in answer) return [{ node, is: 'taken' }]
        const { code, message } = answer.error
        return [{ node, is: 'refused', code, ...(code === 'rejected' || code === 'access-denied' ? { said: message } : {}) }]
      })
    },

    ...createRequestLogs({ nodes, confirmations, worst }),

    view: (signal) =>
      nodes.first(async (node) => {
        const { latest, baseFeePerGas, final } = await viewOf(node, confirmations, [], signal)
        const [block] = await blocksOf(
          node,
          [final],
          { whole: false, read: (answer) => read(blockRef, answer, 'eth_getBlockByNumber') },
          signal,
        )
        if (block === undefined || block.number !== final) throw new RpcFailure('no-answer', 'the node does not have its own final block')
        return { latest, final: { number: final, hash: block.hash }, baseFeePerGas }
      }, signal),
  }
}

async function firstOf<T>(indexes: readonly number[], ask: (index: number) => Promise<T | undefined>): Promise<T | undefined> {
  for (const index of indexes) {
    const found = await ask(index)
    if (found !== undefined) return found
  }
  return undefined
}

/** A node that has the bytes has taken them. @throws RpcFailure */
export async function sendRaw(node: RpcNode, raw: Hex, signal: AbortSignal): Promise<true> {
  try {
    await node.call('eth_sendRawTransaction', [raw], signal)
  } catch (error) {
    const known = error instanceof RpcFailure && error.node !== undefined && classifyNodeError(error.node) === 'already-known'
    if (!known) throw error
  }
  return true
}
