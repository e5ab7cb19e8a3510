import { afterAll, beforeAll, expect, test } from 'vitest'
import { ChainError, type ChainHead } from '../../../src/chains/ethereum/chain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createRequestTracker } from '../../../src/service/ethereum/requests/tracker.ts'
import { createTracker } from '../../../src/service/ethereum/tracker.ts'
import { createMetrics } from '../../../src/service/metrics.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'

/** A transaction that no node tells of, as one of a type that is not known here: whoever reports its hash holds up nobody else. */
let store: Store
beforeAll(async () => {
  store = await openStore(await memoryDatabase())
})
afterAll(() => store?.close())

const hex = (number: number, bytes: number) => `0x${number.toString(16).padStart(bytes * 2, '0')}` as const
const bad = hex(666, 32)
const good = hex(777, 32)
const silent = { info() {}, warn() {}, debug() {}, error() {} } as never
const never = new AbortController().signal
const head = { latest: 20n, final: 10n } as ChainHead
const receipt = (hash: string) => ({
  ...{ hash, from: hex(1, 20), success: true, blockNumber: 15n, blockHash: hex(15, 32), gasUsed: 1n, effectiveGasPrice: 1n, logs: [] },
})
const network = {
  config: { name: 'devnet', pollIntervalMs: 1_000 },
  chain: {
    head: async () => head,
    trace: async ([hash]: readonly string[]) => {
      if (hash === bad) throw new ChainError('unavailable', 'the node gives no usable answer for this transaction')
      return { mined: receipt(hash ?? ''), lackedBy: new Map(), known: new Set(), silent: [] }
    },
    transaction: async () => undefined,
  },
} as never

const insertStake = async (number: number, hash: `0x${string}`) => {
  const stake = {
    id: `s${number}`,
    account: 'main',
    network: 'devnet',
    amount_gwei: 32n,
    withdrawal_address: hex(1, 20),
    key_index: BigInt(number),
  }
  const deposit = {
    depositContractAddress: hex(2, 20),
    pubkey: hex(number, 48),
    withdrawalCredentials: hex(3, 32),
    amountGwei: '32',
    signature: hex(4, 96),
  }
  await store.db
    .insertInto('ethereum_stakes')
    .values({
      ...{ ...stake, credentials_type: '0x02', pubkey: hex(number, 48), deposit_data: JSON.stringify(deposit), unsigned_transaction: '{}' },
      ...{ external_reference: null, withdrawal_is_contract: null, created_at: new Date(0), status: 'submitted', hash },
    } as never)
    .execute()
  await store.db
    .insertInto('ethereum_stake_hashes')
    .values({ stake_id: `s${number}`, hash, submitted_at: new Date(0), sender: hex(1, 20), nonce: 1n })
    .execute()
}
const insertRequest = async (number: number, hash: `0x${string}`) => {
  const request = { id: `r${number}`, account: 'main', network: 'devnet', kind: 'exit', pubkey: hex(number, 48), amount_gwei: null }
  await store.db
    .insertInto('ethereum_requests')
    .values({
      ...{ ...request, sender: hex(1, 20), unsigned_transaction: '{}', fee_wei: '1', quoted_at_block: 1n, external_reference: null },
      ...{ queued_deposits_gwei: null, created_at: new Date(0), status: 'submitted', hash },
    } as never)
    .execute()
  await store.db
    .insertInto('ethereum_request_hashes')
    .values({ request_id: `r${number}`, hash, submitted_at: new Date(0), sender: hex(1, 20), nonce: 1n })
    .execute()
}
const dueAgain = async () => {
  for (const table of ['ethereum_stakes', 'ethereum_requests'] as const)
    await store.db
      .updateTable(table)
      .set({ check_at: new Date(0), checked_head: null })
      .execute()
}

function trackers() {
  const passed: string[] = []
  const part = (name: string) => ({
    pass: async () => {
      passed.push(name)
    },
  })
  const deps = { store, log: silent, metrics: createMetrics() }
  const requests = createRequestTracker({ ...deps, payments: part('payments'), unreported: part('unreported requests') })
  const tracker = createTracker({
    ...{ ...deps, networks: new Map(), clock: systemClock, intervalMs: 1_000, requests },
    ...{ unreported: part('unreported'), missing: part('missing'), fates: part('fates') },
  })
  return { tracker, passed }
}
const everything = ['payments', 'unreported requests', 'unreported', 'missing', 'fates']

test('beside others, it is looked at again, and everything else goes on', async () => {
  await insertStake(1, bad)
  await insertStake(2, good)
  await insertRequest(1, bad)
  await insertRequest(2, good)
  const { tracker, passed } = trackers()
  await tracker.pass(network, never)
  expect(passed).toEqual(everything)
  const stakes = await store.db.selectFrom('ethereum_stakes').select(['id', 'block_number']).orderBy('id').execute()
  expect(stakes).toEqual([
    { id: 's1', block_number: null },
    { id: 's2', block_number: 15n },
  ])
})

test('alone, it is said that nodes don’t tell, after everything else was looked at', async () => {
  for (const table of ['ethereum_stake_hashes', 'ethereum_request_hashes'] as const)
    await store.db.deleteFrom(table).where('hash', '=', good).execute()
  await store.db.deleteFrom('ethereum_stakes').where('id', '=', 's2').execute()
  await store.db.deleteFrom('ethereum_requests').where('id', '=', 'r2').execute()
  await dueAgain()
  const { tracker, passed } = trackers()
  await expect(tracker.pass(network, never)).rejects.toThrow('no usable answer')
  expect(passed).toEqual(everything)
})
