import type { Clock } from '../../lib/clock.ts'
import { createRpcClient, type OnRpcCall, RpcFailure } from '../../lib/json-rpc.ts'
import type { ChainLog, NodeReading } from '../nodes/nodes.ts'
import type { SolanaAddress } from './addresses.ts'
import { type SolanaChain, SolanaError } from './chain.ts'
import type { LandingFacts } from './expiry.ts'
import { gathered } from './gathered-client.ts'
import { createLooks, historySince } from './looks.ts'
import { decodeMessage, joinTransaction, splitTransaction, transactionSignature } from './message.ts'
import type { SolanaNetworkConfig } from './networks.ts'
import { plainMessage, toSolanaError } from './rpc-errors.ts'
import {
  account,
  epochInfo,
  lamportsValue,
  latestBlockhash,
  parseExact,
  priorityFees,
  read,
  signatureStatuses,
  simulation,
  u64,
  withContext,
} from './rpc-formats.ts'
import { type Ask, createRpcNodes, type RpcNode, type RpcNodes } from './rpc-nodes.ts'
import { createStakeViews } from './stake-views.ts'
import { meaningOf } from './transaction-error.ts'
import { createVoteAccounts } from './vote-accounts.ts'
import { createWorstOfAll, type Worst } from './worst.ts'

export interface SolanaChainOptions {
  readonly config: SolanaNetworkConfig
  readonly clock: Clock
  readonly log?: ChainLog
  /** For one call. Default 15 s. */
  readonly timeoutMs?: number
  /** For one answer. Default 4 MiB. */
  readonly maxResponseBytes?: number
  readonly fetch?: typeof globalThis.fetch
  /** For metrics. */
  readonly onCall?: OnRpcCall
  /** Told once how the nodes' health is read, for metrics. */
  readonly onNodes?: (read: () => readonly NodeReading[]) => void
}

/** A cluster by JSON-RPC. Share one per network and process. */
export function createSolanaChain(options: SolanaChainOptions): SolanaChain {
  const { config, clock, log, timeoutMs = 15_000, maxResponseBytes = 4_194_304 } = options
  const transport = { clock, timeoutMs, maxBytes: maxResponseBytes, parse: parseExact, onCall: options.onCall }
  const fetch = options.fetch === undefined ? {} : { fetch: options.fetch }
  const clients = config.rpcUrls.map((url, index) =>
    gathered(createRpcClient({ url, ...transport, ...fetch, node: { network: config.name, number: index + 1 } }), clock),
  )
  const nodes = createRpcNodes({ clients, config, clock, log })
  const mostTelling = createWorstOfAll(config.name)
  options.onNodes?.(nodes.readings)

  const ask: Ask = (method, params, schema, signal) =>
    nodes.first(async (node) => read(schema, await node.call(method, params, signal), method), signal)

  return {
    network: config.name,

    epochInfo: async (commitment, signal) => {
      const { absoluteSlot, ...info } = await ask('getEpochInfo', [{ commitment }], epochInfo, signal)
      return { ...info, slot: absoluteSlot }
    },

    blockHeight: (commitment, signal) => ask('getBlockHeight', [{ commitment }], u64, signal),

    latestBlockhash: (signal) =>
      nodes.first(async (node) => {
        const method = 'getLatestBlockhash'
        const { context, value } = read(latestBlockhash, await node.call(method, [{ commitment: 'confirmed' }], signal), method)
        // What is made with it would be dead on arrival.
        if (node.isLagging()) throw new SolanaError('node-behind', plainMessage('node-behind'))
        return { ...value, slot: context.slot }
      }, signal),

    account: async (address, commitment, signal) =>
      (await ask('getAccountInfo', [address, { commitment, encoding: 'base64' }], withContext(account), signal)).value ?? undefined,

    balance: async (address, commitment, signal) =>
      (await ask('getBalance', [address, { commitment }], withContext(lamportsValue), signal)).value,

    rentExemption: (bytes, signal) => ask('getMinimumBalanceForRentExemption', [bytes, { commitment: 'confirmed' }], lamportsValue, signal),

    minimumDelegation: async (signal) =>
      (await ask('getStakeMinimumDelegation', [{ commitment: 'confirmed' }], withContext(lamportsValue), signal)).value,

    stakeView: createStakeViews(ask),
    voteAccount: createVoteAccounts(ask),
    landingFacts: createLandingFacts(nodes, mostTelling),
    ...createLooks(nodes, mostTelling),

    feeFor: async (message, signal) => {
      const params = [Buffer.from(message).toString('base64'), { commitment: 'confirmed' }]
      const feeBy = async (node: RpcNode) => {
        const answer = await node.call('getFeeForMessage', params, signal)
        return read(withContext(lamportsValue.nullable()), answer, 'getFeeForMessage').value ?? undefined
      }
      // A node that lags doesn't know a new blockhash yet: one that does is enough.
      const answers = await nodes.race(feeBy, (fee) => fee !== undefined, signal)
      const found = answers.flatMap((answer) => ('value' in answer ? [answer.value] : []))
      if (found.length === 0) throw mostTelling(answers.flatMap((answer) => ('error' in answer ? [answer] : [])))
      return found.find((fee) => fee !== undefined)
    },

    recentPriorityFee: async (writable, signal) => {
      let isRefused = false
      const ask75 = async (node: RpcNode): Promise<bigint> => {
        try {
          const fees = read(priorityFees, await node.call('getRecentPrioritizationFees', [writable], signal), 'getRecentPrioritizationFees')
          const sorted = fees.map(({ prioritizationFee }) => prioritizationFee).toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
          return sorted[Math.floor((sorted.length * 3) / 4)] ?? 0n
        } catch (error) {
          isRefused ||= toSolanaError(error).code === 'rejected'
          throw error
        }
      }
      try {
        return await nodes.first(ask75, signal)
      } catch (error) {
        signal.throwIfAborted()
        // A node without the method, or that serves it to others only: nothing is known then, and nothing is offered.
        if (isRefused && error instanceof SolanaError) return 0n
        throw error
      }
    },

    simulate: async (message, { watch = [], replaceBlockhash = false, minContextSlot }, signal) => {
      const transaction = Buffer.from(joinTransaction(message)).toString('base64')
      const config = {
        encoding: 'base64',
        commitment: 'confirmed',
        sigVerify: false,
        replaceRecentBlockhash: replaceBlockhash,
        ...(minContextSlot === undefined ? {} : { minContextSlot: Number(minContextSlot) }),
        ...(watch.length === 0 ? {} : { accounts: { encoding: 'base64', addresses: watch } }),
      }
      const { value } = await ask('simulateTransaction', [transaction, config], simulation, signal)
      const failure = value.err
      return {
        ...(failure === undefined ? {} : { failure, meaning: meaningOf(failure, programsOf(message)) }),
        unitsConsumed: value.unitsConsumed ?? 0n,
        accounts: (value.accounts ?? []).map((found) => found ?? undefined),
      }
    },

    sendTransaction: async (raw, { skipPreflight }, signal) => {
      const signature = transactionSignature(raw)
      const programs = programsOf(splitTransaction(raw).message)
      const params = [
        Buffer.from(raw).toString('base64'),
        { encoding: 'base64', skipPreflight, ...(skipPreflight ? {} : { preflightCommitment: 'confirmed' }) },
      ]
      const send = async (node: RpcNode): Promise<void> => {
        try {
          await node.call('sendTransaction', params, signal)
        } catch (caught) {
          signal.throwIfAborted()
          const error = toSolanaError(caught, programs)
          // It is in a block: what was to be reached.
          if (error.code !== 'already-processed') throw error
        }
      }
      const answers = await nodes.race(send, () => true, signal)
      if (answers.some((answer) => 'value' in answer)) return signature
      throw mostTelling(answers.flatMap((answer) => ('error' in answer ? [answer] : [])))
    },
  }
}

/** Asks every node. */
function createLandingFacts(nodes: RpcNodes, mostTelling: Worst): SolanaChain['landingFacts'] {
  return async (signatures, signal) => {
    const factsOf = async (node: RpcNode): Promise<LandingFacts> => {
      // The order matters: a height read first is covered by a history read after it.
      const finalized = [{ commitment: 'finalized' }]
      const finalizedBlockHeight = read(u64, await node.call('getBlockHeight', finalized, signal), 'getBlockHeight')
      if (signatures.length === 0) return { finalizedBlockHeight, statuses: [] }
      const answer = await node.call('getSignatureStatuses', [signatures, { searchTransactionHistory: true }], signal)
      const { value } = read(signatureStatuses, answer, 'getSignatureStatuses')
      if (value.length !== signatures.length) throw new RpcFailure('no-answer', 'the node left signatures out')
      const statuses = value.map((status) => status ?? undefined)
      const since = statuses.every((status) => status === undefined) ? await historySince(node, signal) : undefined
      return { finalizedBlockHeight, statuses, ...(since === undefined ? {} : { historySince: since }) }
    }
    const answers = await nodes.each(factsOf, signal)
    const facts = answers.map((answer) => (answer !== undefined && 'value' in answer ? answer.value : undefined))
    if (facts.some((fact) => fact !== undefined)) return facts
    throw mostTelling(answers.flatMap((answer) => (answer !== undefined && 'error' in answer ? [answer] : [])))
  }
}

const programsOf = (message: Uint8Array): readonly SolanaAddress[] => decodeMessage(message).instructions.map(({ program }) => program)
