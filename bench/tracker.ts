import type { BeaconValidator } from '../src/chains/ethereum/beacon.ts'
import type { ChainReceipt, ChainTransaction, Hex } from '../src/chains/ethereum/chain.ts'
import { ethereumNetworkConfig } from '../src/chains/ethereum/networks.ts'
import { wei } from '../src/lib/amounts.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createLogger } from '../src/lib/log.ts'
import { createDepositFates } from '../src/service/ethereum/deposit-fates.ts'
import { createMissingStakes } from '../src/service/ethereum/missing-stakes.ts'
import type { EthereumNetwork } from '../src/service/ethereum/networks.ts'
import { createPaymentTracker } from '../src/service/ethereum/requests/payments.ts'
import { createRequestTracker } from '../src/service/ethereum/requests/tracker.ts'
import { createUnreportedRequests } from '../src/service/ethereum/requests/unreported.ts'
import { createTracker } from '../src/service/ethereum/tracker.ts'
import { createUnreportedPayments } from '../src/service/ethereum/unreported-payments.ts'
import { createValidatorStatuses } from '../src/service/ethereum/validator-statuses.ts'
import { createMetrics } from '../src/service/metrics.ts'
import { openStore } from '../src/service/store/database.ts'

export interface TrackerResult {
  readonly validators: number
  /** One pass when every stake's transaction is on its way, and when every one is confirmed and its deposit not yet credited. */
  readonly inFlightMs: number
  /** Of the processor: what it takes wherever it runs, and whatever runs beside it. */
  readonly inFlightCpuMs: number
  readonly undecidedMs: number
  /** What the beacon chain shows of all of them. */
  readonly statusesMs: number
}

const hex = (number: number, length: number): Hex => `0x${number.toString(16).padStart(length * 2, '0')}`

/** The service's tracker over so many stakes, on its embedded database; nodes answer at once. */
export async function benchTracker(validators: number, say: (line: string) => void): Promise<TrackerResult> {
  const store = await openStore({ kind: 'embedded', dataDir: 'memory://' })
  try {
    const config = ethereumNetworkConfig.parse({ name: 'mainnet', chain: 'Ethereum', rpcUrls: ['http://127.0.0.1:1'] })
    const deposit = {
      ...{ depositContractAddress: config.depositContractAddress, withdrawalCredentials: hex(2, 32) },
      amountGwei: '32000000000',
      signature: hex(3, 96),
    }
    say(`tracker: making ${validators} stakes`)
    for (let from = 0; from < validators; from += 500) {
      const numbers = Array.from({ length: Math.min(500, validators - from) }, (_, index) => from + index)
      await store.db
        .insertInto('ethereum_stakes')
        .values(
          numbers.map((number) => ({
            ...{ id: hex(number, 16).slice(2), account: 'bench', network: 'mainnet', amount_gwei: 32_000_000_000n },
            ...{
              withdrawal_address: hex(1, 20),
              credentials_type: '0x02' as const,
              key_index: BigInt(number),
              pubkey: hex(number + 1, 48),
            },
            ...{
              deposit_data: JSON.stringify({ ...deposit, pubkey: hex(number + 1, 48) }),
              unsigned_transaction: '{}',
              external_reference: null,
            },
            ...{ status: 'submitted' as const, hash: hex(number + 1, 32), block_number: null, block_hash: null, failure_reason: null },
            ...{ created_at: new Date(), checked_head: null, withdrawal_is_contract: null, consensus_reason: null },
          })),
        )
        .execute()
      await store.db
        .insertInto('ethereum_stake_hashes')
        .values(
          numbers.map((number) => ({
            stake_id: hex(number, 16).slice(2),
            hash: hex(number + 1, 32),
            submitted_at: new Date(),
            sender: hex(9, 20),
            nonce: BigInt(number),
          })),
        )
        .execute()
    }
    const receiptOf = (hash: Hex): ChainReceipt => ({
      ...{ hash, from: hex(9, 20), success: true, blockNumber: 90n, blockHash: hex(90, 32), gasUsed: 60_000n, effectiveGasPrice: wei(1n) },
      // Nobody's deposit: it stays to be followed, which is the dearer way.
      logs: [],
    })
    const transactionOf = (hash: Hex): ChainTransaction => ({
      ...{
        hash,
        from: hex(9, 20),
        to: hex(8, 20),
        nonce: Number(BigInt(hash)) - 1,
        data: '0x',
        valueWei: wei(0n),
        blockNumber: 90n,
        blockHash: hex(90, 32),
      },
    })
    const validatorOf = (pubkey: Hex) => ({ pubkey, status: 'active_ongoing' }) as BeaconValidator
    const network = {
      config,
      chain: {
        head: async () => ({ latest: 100n, final: 80n, baseFeePerGas: wei(1n) }),
        trace: async ([hash = '0x' as Hex]: readonly Hex[]) => ({
          mined: receiptOf(hash),
          lackedBy: new Map(),
          known: new Set(),
          silent: [],
        }),
        transaction: async (hash: Hex) => transactionOf(hash),
        depositsFor: async () => [],
      },
      validators: {
        beacon: {
          spec: async () => ({ slotDurationMs: 12_000, slotsPerEpoch: 32 }),
          genesis: async () => ({ genesisTime: 0, genesisForkVersion: config.genesisForkVersion }),
          depositView: async (pubkeys: readonly Hex[]) => ({
            slot: 1,
            epoch: 0,
            validators: new Map(pubkeys.map((key) => [key, validatorOf(key)])),
            pendingDeposits: [],
          }),
          validators: async (pubkeys: readonly Hex[]) => ({
            slot: 1,
            epoch: 0,
            validators: new Map(pubkeys.map((key) => [key, validatorOf(key)])),
          }),
        },
        reads: {},
      },
    } as unknown as EthereumNetwork
    const log = createLogger({ program: 'bench', level: 'error', destination: { write: () => undefined } })
    const metrics = createMetrics()
    const networks = new Map([['mainnet', network]])
    const tracker = createTracker({
      ...{ store, networks, clock: systemClock, log, metrics, intervalMs: 4_000 },
      unreported: createUnreportedPayments({ store, clock: systemClock, log }),
      missing: createMissingStakes({ store, clock: systemClock, log }),
      fates: createDepositFates({ store, log, metrics }),
      requests: createRequestTracker({
        store,
        log,
        metrics,
        payments: createPaymentTracker({ store, log }),
        unreported: createUnreportedRequests({ store, clock: systemClock, log }),
      }),
    })
    const { signal } = new AbortController()
    const timed = async (work: () => Promise<void>): Promise<number> => {
      const started = performance.now()
      await work()
      return performance.now() - started
    }
    const cpu = process.cpuUsage()
    const inFlightMs = await timed(() => tracker.pass(network, signal))
    const { user, system } = process.cpuUsage(cpu)
    const inFlightCpuMs = (user + system) / 1_000
    await store.db.updateTable('ethereum_stakes').set({ status: 'confirmed', block_number: 90n }).execute()
    const undecidedMs = await timed(() => tracker.pass(network, signal))
    const statuses = createValidatorStatuses({ networks, clock: systemClock, log })
    const stakes = Array.from({ length: validators }, (_, number) => ({
      network: 'mainnet',
      pubkey: hex(number + 1, 48),
      status: 'confirmed',
    }))
    const statusesMs = await timed(() => statuses.refresh(stakes, signal))
    return { validators, inFlightMs, inFlightCpuMs, undecidedMs, statusesMs }
  } finally {
    await store.close()
  }
}
