import { afterAll, beforeAll, expect, test } from 'vitest'
import { BeaconError } from '../../../src/chains/ethereum/beacon.ts'
import { ChainError } from '../../../src/chains/ethereum/chain.ts'
import { createDepositFates } from '../../../src/service/ethereum/deposit-fates.ts'
import { createMetrics } from '../../../src/service/metrics.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'

/** What became of deposits, by nodes that don't tell all that is asked. */
let store: Store
beforeAll(async () => {
  store = await openStore(await memoryDatabase())
})
afterAll(() => store?.close())

const pubkeyOf = (number: number) => `0x${number.toString(16).padStart(96, '0')}` as const
const hash = `0x${'11'.repeat(32)}` as const
const silent = { info() {}, warn() {}, debug() {}, error() {} } as never

const spec = async () => ({ slotDurationMs: 12_000, slotsPerEpoch: 32 })
const genesis = async () => ({ genesisTime: 0 })
const withdrawalCredentials = `0x02${'00'.repeat(11)}${'22'.repeat(20)}` as const
const view = { slot: 64, epoch: 2, validators: new Map([[pubkeyOf(1), { index: 1, withdrawalCredentials }]]) }

test.each<{ what: string; access: object; reason: string }>([
  {
    what: 'serves no queue of deposits',
    access: {
      beacon: {
        ...{ spec, genesis, validators: async () => view },
        depositView: async () => {
          throw new BeaconError('unavailable', 'the beacon node does not serve pending_deposits', undefined, 'pending_deposits')
        },
      },
      reads: { blockTime: async () => 60 },
    },
    reason: 'does not serve pending_deposits',
  },
  {
    what: 'does not tell of the block of one of them',
    access: {
      beacon: { spec, genesis, depositView: async () => ({ ...view, pendingDeposits: [] }) },
      reads: {
        blockTime: async () => {
          throw new ChainError('unavailable', 'the node has no block 5')
        },
      },
    },
    reason: 'the slot that queued the deposit is not known',
  },
])(
  'where a node $what, a validator that the registry knows is accepted, and of the others it is said why nothing is known',
  async ({ access, reason }) => {
    await store.db.deleteFrom('ethereum_stakes').execute()
    for (const number of [1, 2]) {
      await store.db
        .insertInto('ethereum_stakes')
        .values({
          ...{ id: `000${number}`, account: 'main', network: 'devnet', amount_gwei: 32_000_000_000n, withdrawal_address: hash },
          ...{
            key_index: BigInt(number),
            credentials_type: '0x02',
            pubkey: pubkeyOf(number),
            deposit_data: JSON.stringify({ pubkey: pubkeyOf(number), withdrawalCredentials, amountGwei: '32000000000', signature: '0x' }),
            unsigned_transaction: '{}',
          },
          ...{ external_reference: null, withdrawal_is_contract: null, created_at: new Date(0), status: 'confirmed', hash },
          ...{ block_number: 5n, block_hash: hash, consensus_at: new Date(0) },
        } as never)
        .execute()
    }
    const network = { config: { name: 'devnet', pollIntervalMs: 1_000 }, validators: access } as never
    await createDepositFates({ store, log: silent, metrics: createMetrics() }).pass(network, new AbortController().signal)
    const rows = await store.db.selectFrom('ethereum_stakes').select(['consensus_status', 'consensus_reason']).orderBy('id').execute()
    expect(rows).toEqual([
      { consensus_status: 'accepted', consensus_reason: null },
      { consensus_status: 'pending', consensus_reason: expect.stringContaining(reason) },
    ])
  },
  60_000,
)
