import { z } from 'zod'
import { RpcFailure } from '../../lib/json-rpc.ts'
import type { NodeFailure } from '../nodes/together.ts'
import type { BlockHash, ChainError, EthereumChain, Hash, RequestLog } from './chain.ts'
import { createLogReader } from './log-reader.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import { viewOf } from './node-view.ts'
import { decodeRequestLog, type LoggedRequest, withdrawalRequestContract } from './requests.ts'
import { type RawLog, rawLog, read, toHex } from './rpc-formats.ts'
import type { RpcNode, RpcNodes } from './rpc-nodes.ts'
import type { Worst } from './worst.ts'

/** A request of whoever made it, as the EIP-7002 contract logged it. */
export interface ScannedRequest extends LoggedRequest {
  readonly transactionHash: Hash
  readonly blockNumber: bigint
}

/** The requests of everybody on a network, for those that nobody has reported. Every call throws `ChainError`. */
export interface RequestScan {
  /**
   * What the contract logged in the blocks from `from` to `to`, both included: all that any healthy node shows, in order. `isWhole`: every node that is neither
   * behind the others nor refuses logs has answered, so that the blocks need not be read again.
   */
  requestsBetween(
    from: bigint,
    to: bigint,
    signal: AbortSignal,
  ): Promise<{ readonly requests: readonly ScannedRequest[]; readonly isWhole: boolean }>
}

/** What the EIP-7002 contract logged, by all nodes: one of them may leave out what another one shows. */
export function createRequestLogs(deps: {
  readonly nodes: Pick<RpcNodes, 'each' | 'isOut'>
  readonly confirmations: EthereumNetworkConfig['confirmations']
  /** Of several failures, the one that says most. */
  readonly worst: Worst
}): RequestScan & Pick<EthereumChain, 'requestLogs'> {
  const { nodes, confirmations, worst } = deps

  const readAll = async (from: bigint, to: bigint | 'latest', signal: AbortSignal) => {
    const answers = await nodes.each(async (node) => {
      // Heads first, or it isn't known who is out.
      const { latest } = await viewOf(node, confirmations, [], signal)
      const end = to === 'latest' ? latest.number : to
      if (latest.number < end) throw new RpcFailure('no-answer', `the node has no block ${end} yet`)
      const logs: RawLog[] = []
      const source = { logs: (first: bigint, last: bigint) => logsIn(node, first, last, signal) }
      for await (const chunk of createLogReader().read(source, from, end, end)) logs.push(...chunk.logs)
      return logs
    }, signal)
    const views: (readonly RawLog[])[] = []
    const errors: NodeFailure<ChainError>[] = []
    let isWhole = true
    for (const [index, answer] of answers.entries()) {
      if (answer === undefined) continue
      if ('error' in answer) errors.push(answer)
      if (nodes.isOut(index)) continue
      if ('value' in answer) views.push(answer.value)
      else if (!isUseless(answer.error)) isWhole = false
    }
    if (views.length === 0) throw worst(errors)
    return { requests: unionOf(views), isWhole }
  }

  return {
    requestsBetween: readAll,
    requestLogs: async ({ sender, pubkey, fromBlock }, signal) => {
      const { requests } = await readAll(fromBlock, 'latest', signal)
      return requests.flatMap(({ source, request, ...mined }): RequestLog[] =>
        source === sender.toLowerCase() && request.pubkey === pubkey.toLowerCase()
          ? [{ amountGwei: request.kind === 'exit' ? 0n : request.amountGwei, ...mined }]
          : [],
      )
    },
  }
}

/** The node will not serve logs, or nothing at all, however often it is asked. */
const isUseless = ({ code, isLasting }: ChainError): boolean => isLasting || code === 'access-denied' || code === 'wrong-chain'

async function logsIn(node: RpcNode, from: bigint, to: bigint, signal: AbortSignal): Promise<readonly RawLog[]> {
  const filter = { address: withdrawalRequestContract, fromBlock: toHex(from), toBlock: toHex(to) }
  const logs = read(z.array(rawLog), await node.call('eth_getLogs', [filter], signal), 'eth_getLogs')
  const wrong = logs.some(
    ({ address, blockNumber, removed }) =>
      removed || address.toLowerCase() !== withdrawalRequestContract.toLowerCase() || blockNumber < from || blockNumber > to,
  )
  if (wrong) throw new RpcFailure('no-answer', 'the node answered eth_getLogs with logs that were not asked for')
  return logs
}

/** Logs of one transaction are told apart by their order in it: their index in the block is another one on another fork. */
function unionOf(views: readonly (readonly RawLog[])[]): readonly (ScannedRequest & { readonly blockHash: BlockHash })[] {
  const found = new Map<string, ScannedRequest & { readonly blockHash: BlockHash }>()
  for (const logs of views) {
    const seen = new Map<string, number>()
    for (const log of logs) {
      if (log.topics.length !== 0 || log.data.length !== 2 + 2 * 76 || log.blockHash === undefined) continue
      const { transactionHash, blockNumber, blockHash } = log
      const position = seen.get(transactionHash) ?? 0
      seen.set(transactionHash, position + 1)
      const key = `${transactionHash}/${position}`
      if (!found.has(key)) found.set(key, { ...decodeRequestLog(log), transactionHash, blockNumber, blockHash })
    }
  }
  return [...found.values()].toSorted((a, b) => (a.blockNumber < b.blockNumber ? -1 : a.blockNumber > b.blockNumber ? 1 : 0))
}
