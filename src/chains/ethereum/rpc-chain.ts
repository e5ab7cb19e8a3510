import { keccak256 } from 'viem'
import type { z } from 'zod'
import { type Wei, wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { createRpcCall, type OnRpcCall, RpcFailure } from '../../lib/json-rpc.ts'
import { shareCall } from '../../lib/shared-call.ts'
import { ChainError, type ChainErrorCode, type ChainHead, type ContractReads, type EthereumChain, type Hex } from './chain.ts'
import { createDepositHistory } from './deposit-history.ts'
import { depositNode } from './deposit-node.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import type { QueueReads } from './request-queue.ts'
import { classifyNodeError } from './rpc-errors.ts'
import { block, blockTimestamp, callData, quantity, read, receipt, smallNumber, toHex, transaction } from './rpc-formats.ts'
import { type ChainLog, createRpcNodes, type RpcNode } from './rpc-nodes.ts'
import { createQueueReads } from './rpc-queue-reads.ts'

export interface EthereumChainOptions {
  readonly config: EthereumNetworkConfig
  readonly clock: Clock
  readonly log?: ChainLog
  /** For one call. Default 15 s. */
  readonly timeoutMs?: number
  /** For one answer. Default 32 MiB: a few thousand blocks of deposit logs. */
  readonly maxResponseBytes?: number
  readonly fetch?: typeof globalThis.fetch
  /** For metrics. */
  readonly onCall?: OnRpcCall
  /** Ends the reading of the deposit history, which goes on between calls. */
  readonly signal?: AbortSignal
  /** How long `depositsFor` waits for the history before it throws `history-syncing`. Default 5 s. */
  readonly historyWaitMs?: number
}

/** A network by JSON-RPC. Share one per network and process: the deposit history is read once. */
export function createEthereumChain(options: EthereumChainOptions): EthereumChain & ContractReads & QueueReads {
  const { config, clock, log, timeoutMs = 15_000, maxResponseBytes = 33_554_432 } = options
  const transport = {
    clock,
    timeoutMs,
    maxBytes: maxResponseBytes,
    onCall: options.onCall,
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  }
  const nodes = createRpcNodes({
    calls: config.rpcUrls.map((url) => createRpcCall({ url, ...transport })),
    chainId: config.chainId,
    network: config.name,
    clock,
    log,
  })

  /** The highest block that this process was ever told to be final. */
  let knownFinal = 0n

  const blockBy = async (node: RpcNode, tag: 'latest' | 'finalized', signal: AbortSignal) => {
    const answer = await node.call('eth_getBlockByNumber', [tag, false], signal)
    return answer === null ? undefined : read(block, answer, 'eth_getBlockByNumber')
  }

  /** The node's `finalized` block; none before a chain's first finality, which nodes tell by null or by an error. */
  const finalizedBy = async (node: RpcNode, signal: AbortSignal): Promise<bigint> => {
    try {
      return (await blockBy(node, 'finalized', signal))?.number ?? 0n
    } catch (error) {
      if (error instanceof RpcFailure && /finalized|unknown block/i.test(error.node?.message ?? '')) return 0n
      throw error
    }
  }

  const headOf = async (node: RpcNode, signal: AbortSignal): Promise<ChainHead & { hash: Hex }> => {
    const byTag = config.confirmations === 'finalized'
    const latest = await blockBy(node, 'latest', signal)
    if (latest === undefined) throw new RpcFailure('no-answer', 'the node has no latest block')
    // After it, and not beside it: whoever has looked at this head needn't look again before the next one, so its finality must not be an older one's.
    const finalized = byTag ? await finalizedBy(node, signal) : 0n
    node.latest = latest.number
    const depth = config.confirmations === 'finalized' ? 0n : BigInt(config.confirmations)
    const final = byTag ? min(finalized, latest.number) : max(latest.number - depth, 0n)
    knownFinal = max(knownFinal, final)
    return { latest: latest.number, final, baseFeePerGas: latest.baseFeePerGas, hash: latest.hash }
  }

  /**
   * Looks for a transaction or receipt on every node: one may have what another has dropped or not seen yet. "Nowhere" is believed only of a
   * node that has every block which we know to be final: otherwise a node that lags could hide a transaction that is mined, and we would
   * make it a second time.
   */
  const lookUp = async <T extends { readonly hash: Hex }>(
    method: string,
    schema: z.ZodType<T>,
    hash: Hex,
    signal: AbortSignal,
  ): Promise<T | undefined> => {
    const ask = async (node: RpcNode): Promise<T | undefined> => {
      const answer = await node.call(method, [hash], signal)
      if (answer !== null) {
        const found = read(schema, answer, method)
        if (found.hash !== hash.toLowerCase()) throw new RpcFailure('no-answer', `the node answered ${method} with another transaction`)
        return found
      }
      if (node.latest < knownFinal) node.latest = read(quantity, await node.call('eth_blockNumber', [], signal), 'eth_blockNumber')
      if (node.latest < knownFinal) throw new ChainError('unavailable', 'the node lags behind what is known to be final')
      return undefined
    }
    const answers = await nodes.all(ask, { awakeOnly: true, enough: (value) => value !== undefined }, signal)
    const found = answers.find((answer) => 'value' in answer && answer.value !== undefined)
    if (found !== undefined && 'value' in found) return found.value
    if (answers.some((answer) => 'value' in answer)) return undefined
    throw worst(answers.flatMap((answer) => ('error' in answer ? [answer.error] : [])))
  }

  // Each call within has its own time-out, so that this needs no signal.
  const never = new AbortController().signal
  const head = shareCall(() => nodes.first((node) => headOf(node, never), never))
  const lifetime = options.signal ?? never
  const history = createDepositHistory({
    first: (use) =>
      nodes.first((node) => use(depositNode({ node, config, headOf: () => headOf(node, lifetime), signal: lifetime })), lifetime),
    fromBlock: BigInt(config.depositContractBlock),
    network: config.name,
    clock,
    log,
    waitMs: options.historyWaitMs ?? 5000,
    signal: lifetime,
  })

  return {
    network: config.name,
    ...createQueueReads(nodes),

    head: async (signal) => {
      const { latest, final, baseFeePerGas } = await head(signal)
      return { latest, final, baseFeePerGas }
    },

    transactionCount: (address, at, signal) =>
      nodes.first(async (node) => {
        const tag = at === 'final' ? toHex((await headOf(node, signal)).final) : at
        return read(smallNumber, await node.call('eth_getTransactionCount', [address, tag], signal), 'eth_getTransactionCount')
      }, signal),

    balance: (address, signal) =>
      nodes.first(
        async (node) => wei(read(quantity, await node.call('eth_getBalance', [address, 'latest'], signal), 'eth_getBalance')),
        signal,
      ),

    priorityFee: (signal) => nodes.first((node) => priorityFee(node, signal), signal),

    estimateGas: ({ from, to, data, valueWei }, signal) =>
      nodes.first(
        async (node) =>
          read(quantity, await node.call('eth_estimateGas', [{ from, to, data, value: toHex(valueWei) }], signal), 'eth_estimateGas'),
        signal,
      ),

    broadcast: async (raw, signal) => {
      const hash = keccak256(raw)
      const send = async (node: RpcNode): Promise<void> => {
        try {
          await node.call('eth_sendRawTransaction', [raw], signal)
        } catch (error) {
          const known = error instanceof RpcFailure && error.node !== undefined && classifyNodeError(error.node) === 'already-known'
          if (!known) throw error
        }
      }
      const answers = await nodes.all(send, { awakeOnly: false, enough: () => true }, signal)
      if (answers.some((answer) => 'value' in answer)) return hash
      throw worst(answers.flatMap((answer) => ('error' in answer ? [answer.error] : [])))
    },

    transaction: (hash, signal) => lookUp('eth_getTransactionByHash', transaction, hash, signal),
    receipt: (hash, signal) => lookUp('eth_getTransactionReceipt', receipt, hash, signal),
    depositsFor: (pubkey, signal) => history.depositsFor(pubkey, signal),

    call: ({ to, data, blockNumber }, signal) =>
      nodes.first(async (node) => {
        const at = blockNumber === undefined ? 'latest' : toHex(blockNumber)
        return read(callData, await node.call('eth_call', [{ to, data }, at], signal), 'eth_call')
      }, signal),

    blockTime: (blockNumber, signal) =>
      nodes.first(async (node) => {
        const answer = await node.call('eth_getBlockByNumber', [toHex(blockNumber), false], signal)
        if (answer === null) throw new ChainError('unavailable', `the node has no block ${blockNumber}`)
        return read(blockTimestamp, answer, 'eth_getBlockByNumber').timestamp
      }, signal),
  }
}

async function priorityFee(node: RpcNode, signal: AbortSignal): Promise<Wei> {
  try {
    return wei(read(quantity, await node.call('eth_maxPriorityFeePerGas', [], signal), 'eth_maxPriorityFeePerGas'))
  } catch (error) {
    // -32601: a node without the method. Its gas price is base fee and tip in one.
    if (!(error instanceof RpcFailure) || error.node?.code !== -32601) throw error
    const [price, latest] = await Promise.all([
      node.call('eth_gasPrice', [], signal),
      node.call('eth_getBlockByNumber', ['latest', false], signal),
    ])
    return wei(max(read(quantity, price, 'eth_gasPrice') - read(block, latest, 'eth_getBlockByNumber').baseFeePerGas, 0n))
  }
}

/** What several nodes' refusals mean together: the one that says most about the transaction. */
const sayMost: readonly ChainErrorCode[] = [
  'nonce-too-low',
  'replacement-underpriced',
  'insufficient-funds',
  'underpriced',
  'reverted',
  'rejected',
  'wrong-chain',
]
const worst = (errors: readonly ChainError[]): ChainError =>
  errors.toSorted((a, b) => rank(a.code) - rank(b.code))[0] ?? new ChainError('unavailable', 'no node answered')
const rank = (code: ChainErrorCode): number => (sayMost.includes(code) ? sayMost.indexOf(code) : sayMost.length)

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
