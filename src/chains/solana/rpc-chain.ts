import type { Clock } from '../../lib/clock.ts'
import { createRpcClient, type OnRpcCall, RpcFailure } from '../../lib/json-rpc.ts'
import type { ChainLog, NodeReading } from '../nodes/nodes.ts'
import type { SolanaAddress } from './addresses.ts'
import { type SolanaChain, SolanaError, type SolanaErrorCode, type StakeHistory, type StakeView, type VoteAccountAnswer } from './chain.ts'
import type { Commitment, LandingFacts } from './expiry.ts'
import { features, isFeatureOn } from './features.ts'
import { gathered } from './gathered-client.ts'
import { createLooks, historySince } from './looks.ts'
import { decodeMessage, joinTransaction, splitTransaction, transactionSignature } from './message.ts'
import type { SolanaNetworkConfig } from './networks.ts'
import { clockSysvar, epochRewardsSysvar, stakeHistorySysvar, voteProgram } from './programs.ts'
import { LayoutError } from './reader.ts'
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
  voteAccounts,
  withContext,
} from './rpc-formats.ts'
import { createRpcNodes, type RpcNode, type RpcNodes } from './rpc-nodes.ts'
import { decodeClock, decodeEpochRewards, decodeStakeHistory } from './sysvars.ts'
import { meaningOf } from './transaction-error.ts'
import { decodeVoteTerms, type VoteTerms, voteTermsBytes } from './vote-account.ts'

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
  const clients = config.rpcUrls.map((url) => gathered(createRpcClient({ url, ...transport, ...fetch }), clock))
  const nodes = createRpcNodes({ clients, config, clock, log })
  options.onNodes?.(nodes.readings)

  /** Does what a call says and reads its answer. */
  const ask = <T>(method: string, params: readonly unknown[], schema: Parameters<typeof read<T>>[0], signal: AbortSignal): Promise<T> =>
    nodes.first(async (node) => read(schema, await node.call(method, params, signal), method), signal)

  const accounts = (addresses: readonly SolanaAddress[], commitment: Commitment, signal: AbortSignal) =>
    ask(
      'getMultipleAccounts',
      [addresses, { commitment, encoding: 'base64' }],
      withContext(account.array().length(addresses.length)),
      signal,
    )

  let finalHistory: KnownHistory | undefined
  /** At one slot; undefined where the history that is known is another epoch's. */
  async function viewOf(
    address: SolanaAddress,
    commitment: Commitment,
    known: KnownHistory | undefined,
    signal: AbortSignal,
  ): Promise<StakeView | undefined> {
    const always = [address, clockSysvar, epochRewardsSysvar, features.fixedPointStake]
    const { context, value } = await accounts(known === undefined ? [...always, stakeHistorySysvar] : always, commitment, signal)
    const [stake, clockAccount, rewardsAccount, feature, historyAccount] = value
    if (!clockAccount || (known === undefined && !historyAccount))
      throw new SolanaError('unavailable', 'the node does not hold the sysvars of stakes')
    const clock = sysvar(decodeClock, clockAccount.data)
    if (known !== undefined && known.epoch !== clock.epoch) return undefined
    return {
      slot: context.slot,
      account: stake ?? undefined,
      clock,
      history: historyAccount ? sysvar(decodeStakeHistory, historyAccount.data) : (known?.history ?? new Map()),
      rewardsActive: rewardsAccount ? sysvar(decodeEpochRewards, rewardsAccount.data).active : false,
      arithmetic: isFeatureOn(feature) ? 'fixed-point' : 'float',
    }
  }

  const landingFacts = createLandingFacts(nodes)

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

    stakeView: async (address, commitment, signal) => {
      // 23 kB that change with the epoch: read once in each, by all stakes, of what is final.
      const known = commitment === 'finalized' ? finalHistory : undefined
      const view = await viewOf(address, commitment, known, signal)
      const read = view ?? (await viewOf(address, commitment, undefined, signal))
      if (read === undefined) throw new SolanaError('unavailable', 'the node does not hold the sysvars of stakes')
      if (commitment === 'finalized') finalHistory = { epoch: read.clock.epoch, history: read.history }
      return read
    },

    voteAccount: async (address, signal): Promise<VoteAccountAnswer> => {
      const slice = { commitment: 'confirmed', encoding: 'base64', dataSlice: { offset: 0, length: voteTermsBytes } }
      const { value } = await ask(
        'getMultipleAccounts',
        [[address, features.admissionTicket], slice],
        withContext(account.array().length(2)),
        signal,
      )
      const [found = null, ticket = null] = value
      if (found === null) return { kind: 'missing' }
      if (found.owner !== voteProgram) return { kind: 'not-a-vote-account' }
      const filter = { commitment: 'confirmed', votePubkey: address, keepUnstakedDelinquents: true }
      const { current, delinquent } = await ask('getVoteAccounts', [filter], voteAccounts, signal)
      const of = (list: typeof current) => list.find(({ votePubkey }) => votePubkey === address)
      const listed = of(current) ?? of(delinquent)
      if (listed === undefined) return { kind: 'not-voting' }
      const { nodePubkey, activatedStake } = listed
      const terms = termsOf(found.data)
      return {
        kind: 'vote-account',
        account: {
          address,
          node: nodePubkey,
          commission: terms === undefined ? listed.commission : terms.commissionBps / 100,
          activatedStake,
          delinquent: of(current) === undefined,
          ...(terms?.blockRevenueBps === undefined ? {} : { blockRevenueCommission: terms.blockRevenueBps / 100 }),
          ...(terms?.blsKey === undefined ? {} : { blsKey: terms.blsKey }),
          ...(isFeatureOn(ticket) ? { needsBlsKey: true } : {}),
        },
      }
    },

    landingFacts,
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
      if (found.length === 0) throw mostTelling(answers.flatMap((answer) => ('error' in answer ? [answer.error] : [])))
      return found.find((fee) => fee !== undefined)
    },

    recentPriorityFee: async (writable, signal) => {
      const ask75 = async (node: RpcNode): Promise<bigint> => {
        try {
          const fees = read(priorityFees, await node.call('getRecentPrioritizationFees', [writable], signal), 'getRecentPrioritizationFees')
          const sorted = fees.map(({ prioritizationFee }) => prioritizationFee).toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
          return sorted[Math.floor((sorted.length * 3) / 4)] ?? 0n
        } catch (error) {
          // -32601: a node without the method. Nothing is known then, and nothing is offered.
          if (error instanceof RpcFailure && error.node?.code === -32601) return 0n
          throw error
        }
      }
      return nodes.first(ask75, signal)
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
      throw mostTelling(answers.flatMap((answer) => ('error' in answer ? [answer.error] : [])))
    },
  }
}

interface KnownHistory {
  readonly epoch: bigint
  readonly history: StakeHistory
}

/** Asks every node. */
function createLandingFacts(nodes: RpcNodes): SolanaChain['landingFacts'] {
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
    throw mostTelling(answers.flatMap((answer) => (answer !== undefined && 'error' in answer ? [answer.error] : [])))
  }
}

/** What several nodes' refusals mean together: the one that says most about the transaction. A lagging node may not know the blockhash yet. */
const saysLittle: readonly SolanaErrorCode[] = [
  'no-history',
  'rejected',
  'blockhash-not-found',
  'node-behind',
  'wrong-cluster',
  'unavailable',
]
const mostTelling = (errors: readonly SolanaError[]): SolanaError =>
  errors.toSorted((a, b) => saysLittle.indexOf(a.code) - saysLittle.indexOf(b.code) || Number(a.isLasting) - Number(b.isLasting))[0] ??
  new SolanaError('unavailable', plainMessage('unavailable'))

const programsOf = (message: Uint8Array): readonly SolanaAddress[] => decodeMessage(message).instructions.map(({ program }) => program)

/** Undefined for an account of a version that is not known here: then the node's word is all there is. */
function termsOf(data: Uint8Array): VoteTerms | undefined {
  try {
    return decodeVoteTerms(data)
  } catch (error) {
    if (error instanceof LayoutError) return undefined
    throw error
  }
}

function sysvar<T>(decode: (data: Uint8Array) => T, data: Uint8Array): T {
  try {
    return decode(data)
  } catch (error) {
    if (error instanceof LayoutError) throw new SolanaError('unavailable', error.message)
    throw error
  }
}
