import { afterAll, beforeAll, expect, test } from 'vitest'
import type { WithdrawalView } from '../../../src/chains/ethereum/beacon.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import { createPaymentTracker } from '../../../src/service/ethereum/requests/payments.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'

/** Which payment of a block of the execution layer is which withdrawal's, by a beacon chain and blocks of the test's own. */
const never = new AbortController().signal
const pubkey = `0x${'ab'.repeat(48)}` as const
const hash = `0x${'11'.repeat(32)}` as const
const eth = 1_000_000_000n
let store: Store

beforeAll(async () => {
  store = await openStore(await memoryDatabase())
})
afterAll(() => store?.close())

const insert = (id: string, hash: `0x${string}`, account = 'main') =>
  store.db
    .insertInto('ethereum_requests')
    .values({
      ...{ id, account, network: 'devnet', kind: 'withdrawal', pubkey, amount_gwei: 2n * eth, sender: `0x${'52'.repeat(20)}` as const },
      ...{ unsigned_transaction: '{}', fee_wei: '1', quoted_at_block: 1n, external_reference: null, created_at: new Date(0) },
      ...{ status: 'confirmed', hash, block_number: 5n, block_hash: hash, settled: true, check_at: new Date(0) },
      ...{ consensus_status: 'accepted', consensus_block: 5n, payment_status: 'waiting', payable_gwei: 2n * eth, withdrawable_epoch: 10n },
    })
    .execute()

/** Blocks a slot apart; `paid` by block. */
function networkOf(paid: Readonly<Record<number, readonly bigint[]>>, slot = 352) {
  const spec = { slotDurationMs: 12_000, slotsPerEpoch: 32 }
  const view: Partial<WithdrawalView> = {
    slot,
    epoch: Math.floor(slot / 32),
    pendingPartialWithdrawals: [],
    validator: { index: 7 } as never,
  }
  const blockAt = async (number: bigint) => ({
    ...{ number, hash, parentHash: hash, timestamp: Number(number) * 12 },
    withdrawals: (paid[Number(number)] ?? [9n * eth]).map((amount) => ({
      validatorIndex: amount === 9n * eth ? 1 : 7,
      amountGwei: gwei(amount),
    })),
  })
  const validators = {
    beacon: { spec: async () => spec, genesis: async () => ({ genesisTime: 0 }), withdrawalView: async () => view },
    reads: { blockAt },
  }
  return { config: { name: 'devnet', pollIntervalMs: 50 }, validators } as never
}
const silent = { info() {}, warn() {}, debug() {}, error() {} } as never
const states = async () =>
  (await store.db.selectFrom('ethereum_requests').select(['payment_status', 'paid_block']).orderBy('id').execute()).map(
    ({ payment_status, paid_block }) => [payment_status, paid_block],
  )

test('of two withdrawals alike, of which one was paid, one is paid and the other void; and each has its own where both were', async () => {
  const tracker = createPaymentTracker({ store, log: silent })
  const pass = async (paid: Readonly<Record<number, readonly bigint[]>>) => {
    await store.db.deleteFrom('ethereum_requests').execute()
    await insert('0001', `0x${'01'.repeat(32)}`)
    await insert('0002', `0x${'02'.repeat(32)}`)
    // Both are due at once: one of them may have to look again.
    for (let look = 0; look < 3; look += 1) {
      await store.db
        .updateTable('ethereum_requests')
        .set({ check_at: new Date(0) })
        .execute()
      await tracker.pass(networkOf(paid), { latest: 500n, final: 490n } as never, never)
    }
    return (await states()).toSorted()
  }
  expect(await pass({ 330: [2n * eth] })).toEqual([
    ['paid', 330n],
    ['void', null],
  ])
  expect(await pass({ 330: [2n * eth], 331: [2n * eth] })).toEqual([
    ['paid', 330n],
    ['paid', 331n],
  ])
  expect(await pass({ 330: [2n * eth, 2n * eth] })).toEqual([
    ['paid', 330n],
    ['paid', 330n],
  ])
})

test('another account that follows the same transaction takes no payment away', async () => {
  const tracker = createPaymentTracker({ store, log: silent })
  await store.db.deleteFrom('ethereum_requests').execute()
  await insert('0001', hash, 'stranger')
  const network = networkOf({ 330: [2n * eth] })
  await tracker.pass(network, { latest: 500n, final: 490n } as never, never)
  await insert('0002', hash)
  await tracker.pass(network, { latest: 500n, final: 490n } as never, never)
  expect(await states()).toEqual([
    ['paid', 330n],
    ['paid', 330n],
  ])
})

test.each([
  { what: 'that pays it', paid: { 2000: [2n * eth] }, expected: ['paid', 2000n] },
  { what: 'that pays less, as the balance had fallen', paid: { 2000: [eth] }, expected: ['paid', 2000n] },
  { what: 'none of which pays it: it is not taken for paid', paid: {}, expected: ['void', null] },
])(
  'a service that was away looks on, over several looks, through all blocks $what',
  async ({ paid, expected }) => {
    const tracker = createPaymentTracker({ store, log: silent })
    await store.db.deleteFrom('ethereum_requests').execute()
    await insert('0001', hash)
    const seen: unknown[] = []
    for (let look = 0; look < 3; look += 1) {
      await store.db
        .updateTable('ethereum_requests')
        .set({ check_at: new Date(0) })
        .execute()
      await tracker.pass(networkOf(paid, 2_400), { latest: 2_500n, final: 2_490n } as never, never)
      seen.push((await states())[0])
    }
    expect(seen[0]).toEqual(['waiting', null])
    expect(seen.at(-1)).toEqual(expected)
  },
  60_000,
)

test('nodes of the execution layer that are behind the beacon chain have not shown the payment yet: it is waited for', async () => {
  const tracker = createPaymentTracker({ store, log: silent })
  await store.db.deleteFrom('ethereum_requests').execute()
  await insert('0001', hash)
  const seen: unknown[] = []
  for (const latest of [300n, 350n, 370n, 500n]) {
    await store.db
      .updateTable('ethereum_requests')
      .set({ check_at: new Date(0) })
      .execute()
    await tracker.pass(networkOf({ 340: [eth], 380: [2n * eth] }, 400), { latest, final: latest - 10n } as never, never)
    seen.push((await states())[0])
  }
  expect(seen).toEqual([
    ['waiting', null],
    ['waiting', null],
    ['waiting', null],
    ['paid', 380n],
  ])
})
