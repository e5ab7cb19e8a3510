import type { BeaconValidator, PendingPartialWithdrawal } from '../src/chains/ethereum/beacon.ts'
import type { ChainReceipt, ChainTransaction, Hex } from '../src/chains/ethereum/chain.ts'
import { ethereumNetworkConfig } from '../src/chains/ethereum/networks.ts'
import type { RequestScan } from '../src/chains/ethereum/request-logs.ts'
import { encodeRequestCalldata, type ValidatorRequest, withdrawalRequestContract } from '../src/chains/ethereum/requests.ts'
import { gwei, wei } from '../src/lib/amounts.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createLogger } from '../src/lib/log.ts'
import type { EthereumNetwork } from '../src/service/ethereum/networks.ts'
import { createPaymentTracker } from '../src/service/ethereum/requests/payments.ts'
import { createRequestTracker } from '../src/service/ethereum/requests/tracker.ts'
import { createUnreportedRequests } from '../src/service/ethereum/requests/unreported.ts'
import { createMetrics } from '../src/service/metrics.ts'
import { openStore, type Store } from '../src/service/store/database.ts'

export interface RequestsResult {
  readonly requests: number
  /** EIP-7002 logs of everybody that are read. */
  readonly logs: number
  /** The longest pass while nobody has reported any of them, and how many there were until each was found. */
  readonly unreportedMs: number
  readonly unreportedPasses: number
  /** One pass when each is judged by the states that processed it, one when nothing is new of any, and one when each is settled. */
  readonly judgedMs: number
  readonly unchangedMs: number
  readonly settledMs: number
  /** One pass when all of them wait to be paid. */
  readonly payingMs: number
}

const perBlock = 16
/** Two days of mainnet. */
const blocks = 14_400
const firstBlock = 1_000
const head = { latest: BigInt(firstBlock + blocks + 200), final: BigInt(firstBlock + blocks + 100), baseFeePerGas: wei(1n) }
const maxPasses = 40
const owner: Hex = `0x${'52'.repeat(20)}`
const hex = (number: number, length: number): Hex => `0x${number.toString(16).padStart(length * 2, '0')}`
const amount = gwei(1_000_000_000n)

/** Block and place of each log; every `every`-th is one of ours, by its number. */
interface Logged {
  readonly source: Hex
  readonly request: ValidatorRequest
  readonly transactionHash: Hex
  readonly blockNumber: bigint
  readonly blockHash: Hex
}

/**
 * The service's tracker over one withdrawal of each of so many validators, in a chain whose EIP-7002 contract is full for two days; on the embedded database.
 * Nodes answer at once.
 */
export async function benchRequests(requests: number, say: (line: string) => void): Promise<RequestsResult> {
  const store = await openStore({ kind: 'embedded', dataDir: 'memory://' })
  try {
    const every = Math.max(1, Math.floor((blocks * perBlock) / requests))
    say(`requests: making ${requests} requests among ${blocks * perBlock} logs`)
    const logs = Array.from({ length: blocks * perBlock }, (_, place): Logged => {
      const number = place % every === 0 && place / every < requests ? place / every : undefined
      const block = firstBlock + Math.floor(place / perBlock)
      return {
        // A thousand other owners.
        source: number === undefined ? hex(1_000 + (place % 1_000), 20) : owner,
        request: { kind: 'withdrawal', pubkey: hex(number === undefined ? 1_000_000 + place : number + 1, 48), amountGwei: amount },
        transactionHash: hex(place + 1, 32),
        blockNumber: BigInt(block),
        blockHash: hex(block, 32),
      }
    })
    await insertRequests(store, requests)
    const finality = { is: head.final }
    const network = networkOf(logs, finality)
    const log = createLogger({ program: 'bench', level: 'error', destination: { write: () => undefined } })
    const tracker = createRequestTracker({
      ...{ store, log, metrics: createMetrics() },
      payments: createPaymentTracker({ store, log }),
      unreported: createUnreportedRequests({ store, clock: systemClock, log }),
    })
    const { signal } = new AbortController()
    await store.db
      .insertInto('request_marks')
      .values({ network: 'mainnet', block: BigInt(firstBlock - 1) })
      .execute()
    const left = async (which: { status: 'awaiting_submission' } | { settled: boolean }): Promise<number> => {
      const [column, value] = Object.entries(which)[0] ?? []
      const { count } = await store.db
        .selectFrom('ethereum_requests')
        .select((select) => select.fn.countAll<bigint>().as('count'))
        .where(column as 'status', '=', value as 'awaiting_submission')
        .executeTakeFirstOrThrow()
      return Number(count)
    }
    const pass = async (): Promise<number> => {
      await store.db
        .updateTable('request_marks')
        .set({ check_at: new Date(0) })
        .execute()
      await store.db
        .updateTable('ethereum_requests')
        .set({ check_at: new Date(0), checked_head: null })
        .execute()
      const started = performance.now()
      await tracker.pass(network, { ...head, final: finality.is }, signal)
      return performance.now() - started
    }
    const until = async (which: Parameters<typeof left>[0]) => {
      const times: number[] = []
      while (times.length < maxPasses && (await left(which)) > 0) times.push(await pass())
      if ((await left(which)) > 0) throw new Error(`after ${maxPasses} passes requests are left`)
      return { longest: Math.max(0, ...times), passes: times.length }
    }
    const unreported = await until({ status: 'awaiting_submission' })
    say(`requests: found in ${unreported.passes} passes`)
    // As if all had been sent a moment ago, and nothing of it were final.
    finality.is = BigInt(firstBlock - 1)
    const inFlight = { settled: false, status: 'submitted' as const, block_number: null, block_hash: null }
    await store.db
      .updateTable('ethereum_requests')
      .set({
        ...inFlight,
        consensus_status: 'pending',
        consensus_block: null,
        payment_status: null,
        payable_gwei: null,
        withdrawable_epoch: null,
      })
      .execute()
    const judgedMs = await pass()
    const unchangedMs = await pass()
    finality.is = head.final
    const settledMs = await pass()
    if ((await left({ settled: false })) > 0) throw new Error('a pass has not settled what is final')
    const payingMs = await pass()
    return {
      ...{ requests, logs: logs.length, judgedMs, unchangedMs, settledMs, payingMs },
      ...{ unreportedMs: unreported.longest, unreportedPasses: unreported.passes },
    }
  } finally {
    await store.close()
  }
}

async function insertRequests(store: Store, requests: number): Promise<void> {
  for (let from = 0; from < requests; from += 500) {
    const numbers = Array.from({ length: Math.min(500, requests - from) }, (_, index) => from + index)
    await store.db
      .insertInto('ethereum_requests')
      .values(
        numbers.map((number) => ({
          ...{
            id: hex(number, 16).slice(2),
            account: 'bench',
            network: 'mainnet',
            kind: 'withdrawal' as const,
            pubkey: hex(number + 1, 48),
          },
          ...{ amount_gwei: amount, sender: owner, unsigned_transaction: '{}', fee_wei: '1', quoted_at_block: BigInt(firstBlock - 1) },
          ...{ external_reference: null, queued_deposits_gwei: null, created_at: new Date() },
        })),
      )
      .execute()
  }
}

/** A chain and a beacon chain of these logs: each block hands on its own sixteen, and slots are blocks. */
function networkOf(logs: readonly Logged[], finality: { readonly is: bigint }): EthereumNetwork {
  const config = ethereumNetworkConfig.parse({ name: 'mainnet', chain: 'Ethereum', rpcUrls: ['http://127.0.0.1:1'], pollIntervalMs: 1_000 })
  const byHash = new Map(logs.map((one) => [one.transactionHash, one]))
  const inBlock = Map.groupBy(logs, ({ blockHash }) => blockHash)
  const queue = logs.flatMap(({ source, request }, place): PendingPartialWithdrawal[] =>
    source === owner ? [{ validatorIndex: Number(BigInt(request.pubkey)), amountGwei: amount, withdrawableEpoch: 10_000 + place }] : [],
  )
  const logOf = ({ source, request, transactionHash }: Logged) => ({
    ...{ address: withdrawalRequestContract, topics: [], transactionHash },
    data: `${source}${encodeRequestCalldata(request).slice(2)}` as Hex,
  })
  const receiptOf = (one: Logged): ChainReceipt => ({
    ...{ hash: one.transactionHash, from: owner, success: true, blockNumber: one.blockNumber, blockHash: one.blockHash },
    ...{ gasUsed: 60_000n, effectiveGasPrice: wei(1n), logs: [logOf(one)] },
  })
  const transactionOf = (one: Logged): ChainTransaction => ({
    ...{ hash: one.transactionHash, from: owner, to: withdrawalRequestContract, nonce: 0, data: '0x', valueWei: wei(0n) },
    ...{ blockNumber: one.blockNumber, blockHash: one.blockHash },
  })
  const blockOf = (number: bigint) => ({
    number,
    hash: hex(Number(number), 32),
    parentHash: hex(Number(number) - 1, 32),
    timestamp: Number(number) * 12,
  })
  /** Our withdrawals that are queued after a slot. */
  const queuedAt = (slot: number): readonly PendingPartialWithdrawal[] =>
    queue.slice(
      0,
      queue.findLastIndex(({ withdrawableEpoch }) => firstBlock + Math.floor((withdrawableEpoch - 10_000) / perBlock) <= slot) + 1,
    )
  const kept = new Map<number, readonly PendingPartialWithdrawal[]>()
  const listAt = (slot: number): readonly PendingPartialWithdrawal[] => {
    const known = kept.get(slot) ?? queuedAt(slot)
    kept.set(slot, known)
    return known
  }
  const requests: RequestScan = {
    requestsBetween: async (from, to) => ({
      requests: logs.slice(Math.max(0, (Number(from) - firstBlock) * perBlock), Math.max(0, (Number(to) + 1 - firstBlock) * perBlock)),
      isWhole: true,
    }),
  }
  return {
    config,
    requests,
    chain: {
      trace: async ([hash = '0x' as Hex]: readonly Hex[]) => {
        const found = byHash.get(hash)
        const isFinal = found !== undefined && found.blockNumber <= finality.is
        const receipt = found === undefined ? {} : isFinal ? { final: receiptOf(found) } : { mined: receiptOf(found) }
        return { ...receipt, lackedBy: new Map(), known: new Set(), silent: [] }
      },
      transaction: async (hash: Hex) => {
        const found = byHash.get(hash)
        return found === undefined ? undefined : transactionOf(found)
      },
      requestLogs: async () => [],
    },
    validators: {
      beacon: {
        spec: async () => ({ slotDurationMs: 12_000, slotsPerEpoch: 32, minActivationBalanceGwei: gwei(32_000_000_000n) }),
        genesis: async () => ({ genesisTime: 0, genesisForkVersion: config.genesisForkVersion }),
        // Slots are blocks, and roots their hashes.
        executionOf: async ({ root }: { root: Hex }) => ({ carries: root, confirms: undefined }),
        withdrawalView: async (pubkey: Hex, at: number | 'head' | 'finalized') => {
          const slot = typeof at === 'number' ? at : Number(head.final)
          const validator = {
            ...{ index: Number(BigInt(pubkey)), pubkey, status: 'active_ongoing', balanceGwei: gwei(40_000_000_000n) },
            ...{ effectiveBalanceGwei: gwei(40_000_000_000n), withdrawalCredentials: `0x02${'00'.repeat(11)}${owner.slice(2)}` },
            ...{ slashed: false, activationEpoch: 1 },
          } as unknown as BeaconValidator
          const block = { slot, root: hex(slot, 32) }
          return {
            slot,
            epoch: Math.floor(slot / 32),
            block,
            validator,
            pendingPartialWithdrawals: listAt(slot),
            pendingConsolidations: [],
          }
        },
      },
      reads: {
        blockAt: async (at: bigint | Hex) => blockOf(BigInt(at)),
        blockTime: async (number: bigint) => Number(number) * 12,
        logsIn: async (_address: Hex, hash: Hex) => (inBlock.get(hash) ?? []).map(logOf),
        countLogs: async (_address: Hex, from: bigint, to: bigint) => Number(to - from + 1n) * perBlock,
        standing: async () => 'stands',
        storageAt: async (_address: Hex, slots: readonly bigint[], hash: Hex) => {
          const entries = (inBlock.get(hash) ?? []).flatMap(({ source, request }) => {
            const data = encodeRequestCalldata(request).slice(2).padEnd(128, '0')
            return [BigInt(source), BigInt(`0x${data.slice(0, 64)}`), BigInt(`0x${data.slice(64)}`)]
          })
          // Each block empties the queue: head and tail are 0 after it.
          return slots.map((slot) => (slot < 4n ? 0n : (entries[Number(slot - 4n)] ?? 0n)))
        },
      },
    },
  } as unknown as EthereumNetwork
}
