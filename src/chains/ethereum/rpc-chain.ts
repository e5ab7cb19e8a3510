import { keccak256 } from 'viem'
import { type Wei, wei } from '../../lib/amounts.ts'
import { lowerCase } from '../../lib/chain-types.ts'
import type { Clock } from '../../lib/clock.ts'
import { createRpcClient, type OnRpcCall, RpcFailure } from '../../lib/json-rpc.ts'
import { shareCall } from '../../lib/shared-call.ts'
import type { NodeReading } from '../nodes/nodes.ts'
import { createAgreement, sendRaw } from './agreement.ts'
import { ChainError, type ContractReads, type EthereumChain } from './chain.ts'
import { readCheckpointFile } from './checkpoint-file.ts'
import type { DepositCheckpoint } from './deposit-checkpoint.ts'
import { createDepositHistory } from './deposit-history.ts'
import { depositNode } from './deposit-node.ts'
import { createDepositScan, type DepositScan } from './deposit-scan.ts'
import { countsOf } from './lane-counts.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import { viewOf } from './node-view.ts'
import type { RequestScan } from './request-logs.ts'
import type { BlockWitness, QueueReads } from './request-queue.ts'
import { block, blockRef, blockTimestamp, callData, quantity, read, smallNumber, toHex } from './rpc-formats.ts'
import { type ChainLog, createRpcNodes, type RpcNode } from './rpc-nodes.ts'
import { createQueueReads } from './rpc-queue-reads.ts'
import { createStorageGasReads } from './storage-gas-reads.ts'
import { createTransactionLookup } from './transaction-lookup.ts'
import { createWorstOfAll } from './worst.ts'

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
  /** How often `depositsFor` reads the head at most, in ms, where many ask. Default: whenever somebody asks and it isn't being read. */
  readonly historyEveryMs?: number
}

/** For `history build`. */
export interface DepositReads {
  /** All deposits that are settled, to begin with at the next start. Reads all logs twice. */
  depositCheckpoint(signal: AbortSignal): Promise<DepositCheckpoint>
}

/** A network by JSON-RPC. Share one per network and process: the deposit history is read once. */
export function createEthereumChain(
  options: EthereumChainOptions,
): EthereumChain & ContractReads & QueueReads & BlockWitness & DepositReads & DepositScan & RequestScan {
  const { config, clock, log, timeoutMs = 15_000, maxResponseBytes = 33_554_432 } = options
  const transport = {
    clock,
    timeoutMs,
    maxBytes: maxResponseBytes,
    onCall: options.onCall,
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  }
  const nodes = createRpcNodes({
    clients: config.rpcUrls.map((url, index) => createRpcClient({ url, ...transport, node: { network: config.name, number: index + 1 } })),
    config,
    clock,
    log,
  })
  options.onNodes?.(nodes.readings)

  const worst = createWorstOfAll(config.name)
  const lookup = createTransactionLookup(nodes, config.name)

  const headOf = async (node: RpcNode, signal: AbortSignal) => {
    const view = await viewOf(node, config.confirmations, [], signal)
    lookup.saw(node, { latest: view.latest.number, final: view.final })
    return view
  }

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
    everyMs: options.historyEveryMs,
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

    broadcast: async (raw, signal) => {
      const hash = keccak256(raw)
      const answers = await nodes.race(
        (node) => sendRaw(node, raw, signal),
        () => true,
        signal,
      )
      if (answers.some((answer) => 'value' in answer)) return hash
      throw worst(answers.flatMap((answer) => ('error' in answer ? [answer] : [])))
    },

    storageGas: createStorageGasReads(nodes, clock),
    transaction: lookup.transaction,
    receipt: lookup.receipt,
    depositsFor: (pubkey, signal) => history.depositsFor(pubkey, signal),
    depositCheckpoint: (signal) =>
      history.checkpoint({ chainId: config.chainId, contract: lowerCase(config.depositContractAddress) }, signal),
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
