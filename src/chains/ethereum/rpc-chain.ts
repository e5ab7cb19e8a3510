import { keccak256 } from 'viem'
import type { z } from 'zod'
import { type Wei, wei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { createRpcClient, type OnRpcCall, RpcFailure } from '../../lib/json-rpc.ts'
import { shareCall } from '../../lib/shared-call.ts'
import type { NodeReading } from '../nodes/nodes.ts'
import { createAgreement, sendRaw, worst } from './agreement.ts'
import { ChainError, type ChainReceipt, type ContractReads, type EthereumChain, type Hex } from './chain.ts'
import { readCheckpointFile } from './checkpoint-file.ts'
import type { DepositCheckpoint } from './deposit-checkpoint.ts'
import { createDepositHistory } from './deposit-history.ts'
import { depositNode } from './deposit-node.ts'
import { createDepositScan, type DepositScan } from './deposit-scan.ts'
import { countsOf } from './lane-counts.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import { viewOf } from './node-view.ts'
import type { QueueReads } from './request-queue.ts'
import { block, blockRef, blockTimestamp, callData, quantity, read, receipt, smallNumber, toHex, transaction } from './rpc-formats.ts'
import { type ChainLog, createRpcNodes, type RpcNode } from './rpc-nodes.ts'
import { createQueueReads } from './rpc-queue-reads.ts'
import { dearer, fromAmsterdam, measureStorageGas, type StorageGas } from './storage-gas.ts'

/** A fork is announced for months: what a slot costs is measured so often. */
const storageGasMs = 600_000

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
  /** Told once how the nodes' health is read, for metrics. */
  readonly onNodes?: (read: () => readonly NodeReading[]) => void
  /** Ends the reading of the deposit history, which goes on between calls. */
  readonly signal?: AbortSignal
  /** How long `depositsFor` waits for the history before it throws `history-syncing`. Default 5 s. */
  readonly historyWaitMs?: number
}

/** For `history build`. */
export interface DepositReads {
  /** All deposits that are settled, to begin with at the next start. Reads all logs twice. */
  depositCheckpoint(signal: AbortSignal): Promise<DepositCheckpoint>
}

/** A network by JSON-RPC. Share one per network and process: the deposit history is read once. */
export function createEthereumChain(
  options: EthereumChainOptions,
): EthereumChain & ContractReads & QueueReads & DepositReads & DepositScan {
  const { config, clock, log, timeoutMs = 15_000, maxResponseBytes = 33_554_432 } = options
  const transport = {
    clock,
    timeoutMs,
    maxBytes: maxResponseBytes,
    onCall: options.onCall,
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  }
  const nodes = createRpcNodes({ clients: config.rpcUrls.map((url) => createRpcClient({ url, ...transport })), config, clock, log })
  options.onNodes?.(nodes.readings)

  /** The highest block that this process was ever told to be final. */
  let knownFinal = 0n
  /** By node, the highest block that it is known to have. */
  const heights: bigint[] = []

  const headOf = async (node: RpcNode, signal: AbortSignal) => {
    const view = await viewOf(node, config.confirmations, [], signal)
    knownFinal = max(knownFinal, view.final)
    heights[node.index] = view.latest.number
    return view
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
    check: (node: RpcNode, found: T) => Promise<void> = async () => {},
  ): Promise<T | undefined> => {
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
    throw worst(answers.flatMap((answer) => ('error' in answer ? [answer.error] : [])))
  }

  /** A receipt counts only when its block is in the chain of the node that shows it. */
  const inOwnChain = async (node: RpcNode, { blockNumber, blockHash }: ChainReceipt, signal: AbortSignal): Promise<void> => {
    const answer = await node.call('eth_getBlockByNumber', [toHex(blockNumber), false], signal)
    if (answer === null || read(blockRef, answer, 'eth_getBlockByNumber').hash !== blockHash)
      throw new ChainError('unavailable', `a node of ${config.name} shows a receipt of a block that is not in its chain`)
  }

  let storage: { readonly at: number; readonly gas: StorageGas } | undefined
  // Each call within has its own time-out, so that this needs no signal.
  const never = new AbortController().signal
  const head = shareCall(() => nodes.first((node) => headOf(node, never), never))
  const lifetime = options.signal ?? never
  const settledHead = async (node: RpcNode) => {
    const { latest, final } = await headOf(node, lifetime)
    // A deposit that others made may be in the blocks that it doesn't have.
    if (node.isLagging()) throw new ChainError('unavailable', `node ${node.index + 1} of ${config.name} is behind the others`)
    return { latest: latest.number, hash: latest.hash, final }
  }
  const history = createDepositHistory({
    first: (use) => nodes.first((node) => use(depositNode({ node, config, headOf: () => settledHead(node), signal: lifetime })), lifetime),
    fromBlock: BigInt(config.depositContractBlock),
    network: config.name,
    clock,
    log,
    waitMs: options.historyWaitMs ?? 5000,
    signal: lifetime,
    checkpoint: readCheckpointFile(config, log),
  })

  return {
    network: config.name,
    ...createQueueReads(nodes),
    ...createDepositScan({
      network: config.name,
      first: (use, signal) => nodes.first((node) => use(depositNode({ node, config, headOf: () => settledHead(node), signal })), signal),
    }),

    genesisHash: (signal) =>
      nodes.first(async (node) => {
        if (node.identity.genesisHash !== undefined) return node.identity.genesisHash
        return read(blockRef, await node.call('eth_getBlockByNumber', ['0x0', false], signal), 'eth_getBlockByNumber').hash
      }, signal),

    head: async (signal) => {
      const { latest, final, baseFeePerGas } = await head(signal)
      return { latest: latest.number, final, baseFeePerGas }
    },

    transactionCount: (address, at, signal) =>
      nodes.first(async (node) => {
        if (at === 'final') return (await countsOf(node, config.confirmations, address, signal)).counts.final
        return read(smallNumber, await node.call('eth_getTransactionCount', [address, at], signal), 'eth_getTransactionCount')
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

    storageGas: async (signal) => {
      const now = clock.monotonicMs()
      if (storage !== undefined && now - storage.at < storageGasMs) return storage.gas
      // A node refuses a creation that it can't afford to look at, or has no estimates of any: what is known is taken then, for a while too.
      const gas = await nodes
        .first(
          (node) =>
            measureStorageGas(async (data) => read(quantity, await node.call('eth_estimateGas', [{ data }], signal), 'eth_estimateGas')),
          signal,
        )
        .then(
          (measured) => dearer(measured),
          (error: unknown) => {
            signal.throwIfAborted()
            if (error instanceof ChainError || error instanceof RangeError) return fromAmsterdam
            throw error
          },
        )
      storage = { at: now, gas }
      return gas
    },

    broadcast: async (raw, signal) => {
      const hash = keccak256(raw)
      const answers = await nodes.race(
        (node) => sendRaw(node, raw, signal),
        () => true,
        signal,
      )
      if (answers.some((answer) => 'value' in answer)) return hash
      throw worst(answers.flatMap((answer) => ('error' in answer ? [answer.error] : [])))
    },

    transaction: (hash, signal) => lookUp('eth_getTransactionByHash', transaction, hash, signal),
    receipt: (hash, signal) => lookUp('eth_getTransactionReceipt', receipt, hash, signal, (node, found) => inOwnChain(node, found, signal)),
    depositsFor: (pubkey, signal) => history.depositsFor(pubkey, signal),
    depositCheckpoint: (signal) =>
      history.checkpoint({ chainId: config.chainId, contract: config.depositContractAddress.toLowerCase() as Hex }, signal),
    ...createAgreement({ nodes, config }),

    call: ({ to, data, blockNumber }, signal) =>
      nodes.first(async (node) => {
        const at = blockNumber === undefined ? 'latest' : toHex(blockNumber)
        return read(callData, await node.call('eth_call', [{ to, data }, at], signal), 'eth_call')
      }, signal),

    code: (address, signal) =>
      nodes.first(async (node) => read(callData, await node.call('eth_getCode', [address, 'latest'], signal), 'eth_getCode'), signal),

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
    // A node without the method: its gas price is base fee and tip in one.
    if (!(error instanceof RpcFailure) || error.kind !== 'refused') throw error
    const [price, latest] = await Promise.all([
      node.call('eth_gasPrice', [], signal),
      node.call('eth_getBlockByNumber', ['latest', false], signal),
    ])
    return wei(max(read(quantity, price, 'eth_gasPrice') - read(block, latest, 'eth_getBlockByNumber').baseFeePerGas, 0n))
  }
}

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
