import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type BeaconBlock, type BeaconChain, BeaconError } from '../../../src/chains/ethereum/beacon.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { startQueueRpc } from '../../chains/beacon/queue-rpc.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { createPayer } from './payer.ts'
import { ETH, eventually, startTracked, startValidatorChain, type TrackedService, type ValidatorChain } from './validators.ts'

/**
 * From Gloas on a block's requests are processed by the next block of the beacon chain (EIP-7732), which may be another one by and by. The simulator
 * processes them at once; before it stands a beacon chain that is one slot late, and can be made to have another next block.
 */
type Hex = `0x${string}`
let chain: ValidatorChain
let front: Awaited<ReturnType<typeof startQueueRpc>>
let store: Store
let running: TrackedService
let key: string
/** The slot that is missed on the branch that came in the place of the first; what was to happen there happens in the next one, and cuts what is paid. */
let missed: number | undefined

const late = (beacon: BeaconChain): BeaconChain => {
  const at = (slot: number): BeaconBlock => {
    const isOther = missed !== undefined && slot >= missed
    return { slot, root: `0x${isOther ? 'bb' : 'aa'}${slot.toString(16).padStart(62, '0')}` as Hex }
  }
  return {
    ...beacon,
    spec: async (signal) => ({ ...(await beacon.spec(signal)), gloasForkEpoch: 0 }),
    blockAt: async (slot, signal) => {
      if (slot > (await beacon.head(signal)).slot) throw new BeaconError('behind', `slot ${slot} is ahead`)
      return slot === missed ? undefined : at(slot)
    },
    standing: async ({ slot, root }) => (slot !== missed && at(slot).root === root ? 'stands' : 'left'),
    withdrawalView: async (pubkey, slot, signal) => {
      if (typeof slot !== 'number') return beacon.withdrawalView(pubkey, slot, signal)
      const shown = slot === missed ? slot - 1 : slot
      const view = await beacon.withdrawalView(pubkey, shown - 1, signal)
      const cut = missed === undefined ? 0n : ETH
      return {
        ...view,
        slot,
        block: at(shown),
        pendingPartialWithdrawals: view.pendingPartialWithdrawals.map((entry) => ({
          ...entry,
          amountGwei: (entry.amountGwei - cut) as typeof entry.amountGwei,
        })),
      }
    },
  }
}

beforeAll(async () => {
  chain = await startValidatorChain()
  front = await startQueueRpc(chain.anvil)
  store = await openStore(await memoryDatabase())
  running = await startTracked(store, chain, { config: { rpcUrls: [front.url], confirmations: 6 }, before: late })
  key = await running.service.key()
})
afterEach(() => {
  missed = undefined
})
afterAll(async () => {
  await running?.stop()
  await store?.close()
  await front?.stop()
  await chain?.stop()
})

async function sent(amountGwei: bigint) {
  const path = `/v1/ethereum/validators/${chain.fresh()}/withdrawal-requests`
  const made = await running.service.call('POST', path, {
    key,
    idempotencyKey: randomBytes(8).toString('hex'),
    body: { amountGwei: String(amountGwei) },
  })
  expect(made, made.text).toMatchObject({ status: 201 })
  const { requestId, unsignedTransaction } = made.body
  const hash = await createPayer(chain.anvil).pay(unsignedTransaction)
  await running.service.call('PUT', `${path}/${requestId}/submission`, { key, body: { transactionHash: hash } })
  const { blockNumber } = await chain.anvil.rpc<{ blockNumber: Hex }>('eth_getTransactionReceipt', [hash])
  const { timestamp } = await chain.anvil.rpc<{ timestamp: Hex }>('eth_getBlockByNumber', [blockNumber, false])
  const slot = Math.floor((Number(timestamp) - chain.simulator.genesisTime) / chain.simulator.spec.SECONDS_PER_SLOT)
  const read = async () => (await running.service.call('GET', `${path}/${requestId}`, { key })).body
  const row = () => store.db.selectFrom('ethereum_requests').selectAll().where('id', '=', requestId).executeTakeFirstOrThrow()
  return { slot, read, row }
}
const paid = (amountGwei: bigint, status = 'waiting') => ({
  consensus: { status: 'accepted', payment: { status, amountGwei: String(amountGwei) } },
})

describe('from Gloas on, a request', () => {
  test('is pending until the next block has processed it, and settled when that block is final too', async () => {
    const { slot, read, row } = await sent(3n * ETH)
    await eventually(row, { status: 'submitted', block_number: expect.any(BigInt), consensus_status: 'pending' })
    await chain.anvil.mine(1)
    await eventually(read, paid(3n * ETH))
    expect(await row()).toMatchObject({ consensus_slot: BigInt(slot + 1), consensus_root: expect.stringMatching(/^0xaa/), settled: false })
    await chain.anvil.mine(8)
    await eventually(row, { status: 'confirmed', settled: true, payable_gwei: 3n * ETH })
  })

  test('is judged anew when the block that processed it leaves the chain, while the block that handed it on stays', async () => {
    const { slot, read, row } = await sent(3n * ETH)
    await chain.anvil.mine(2)
    await eventually(read, paid(3n * ETH))
    const { block_hash } = await row()
    missed = slot + 1
    await chain.anvil.mine(1)
    await eventually(read, paid(2n * ETH))
    expect(await row()).toMatchObject({ block_hash, consensus_slot: BigInt(slot + 2), consensus_root: expect.stringMatching(/^0xbb/) })
    await chain.anvil.mine(8)
    await eventually(row, { status: 'confirmed', settled: true, payable_gwei: 2n * ETH })
  })

  test('is not settled by a block that has left the chain after it was judged, however deep its own is', async () => {
    const { slot, row } = await sent(3n * ETH)
    await chain.anvil.mine(2)
    await eventually(row, { consensus_status: 'accepted', payable_gwei: 3n * ETH })
    missed = slot + 1
    await chain.anvil.mine(8)
    await eventually(row, { settled: true })
    expect(await row()).toMatchObject({ payable_gwei: 2n * ETH, consensus_root: expect.stringMatching(/^0xbb/) })
  })
})
