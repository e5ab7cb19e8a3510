import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type BeaconChain, BeaconError } from '../../../src/chains/ethereum/beacon.ts'
import { encodeRequestCalldata, withdrawalRequestContract } from '../../../src/chains/ethereum/requests.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { startQueueRpc } from '../../chains/beacon/queue-rpc.ts'
import { exitOf } from '../../chains/beacon/sender.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { createPayer } from './payer.ts'
import { ETH, eventually, startTracked, startValidatorChain, type TrackedService, type ValidatorChain } from './validators.ts'

/** Requests behind others in the queue of the EIP-7002 contract, what is paid of withdrawals, and what takes that back. */
type Hex = `0x${string}`
let chain: ValidatorChain
let front: Awaited<ReturnType<typeof startQueueRpc>>
let store: Store
let running: TrackedService
let key: string
/** Whether the beacon nodes have thrown their states away. */
let gone = false

beforeAll(async () => {
  chain = await startValidatorChain()
  front = await startQueueRpc(chain.anvil)
  store = await openStore(await memoryDatabase())
  const before = (beacon: BeaconChain): BeaconChain => ({
    ...beacon,
    withdrawalView: async (pubkey, at, signal) => {
      if (gone && typeof at === 'number') throw new BeaconError('state-not-kept', 'the beacon node does not have the state')
      return beacon.withdrawalView(pubkey, at, signal)
    },
  })
  running = await startTracked(store, chain, { config: { rpcUrls: [front.url] }, before })
  key = await running.service.key()
})
afterEach(() => {
  gone = false
})
afterAll(async () => {
  await running?.stop()
  await store?.close()
  await front?.stop()
  await chain?.stop()
})

interface Made {
  readonly requestId: string
  readonly pubkey: string
  readonly unsignedTransaction: { to: Hex; data: Hex; valueWei: string }
}
const pathOf = (pubkey: string, kind: string) => `/v1/ethereum/validators/${pubkey}/${kind}-requests`
async function made(pubkey: string, kind: 'exit' | 'withdrawal', body: object = {}): Promise<Made> {
  const answer = await running.service.call('POST', pathOf(pubkey, kind), { key, idempotencyKey: randomBytes(8).toString('hex'), body })
  expect(answer, answer.text).toMatchObject({ status: 201 })
  return answer.body
}
const read = async (request: Made, kind: string) =>
  (await running.service.call('GET', `${pathOf(request.pubkey, kind)}/${request.requestId}`, { key })).body
/** As `read`. A look at what is paid is due once an epoch, which is minutes here; one that is under way has seen the chain as it was before. */
const lookAgain = (request: Made) => async () => {
  await store.db
    .updateTable('ethereum_requests')
    .set({ check_at: new Date(0) })
    .execute()
  return read(request, 'withdrawal')
}
const report = (request: Made, kind: string, transactionHash: string) =>
  running.service.call('PUT', `${pathOf(request.pubkey, kind)}/${request.requestId}/submission`, { key, body: { transactionHash } })

test('an exit behind 140 requests of others is pending until the queue has passed it, and then accepted', async () => {
  const exit = await made(chain.fresh(), 'exit')
  const stranger = createPayer(chain.anvil, 1)
  const nonce = await stranger.nonce()
  const data = encodeRequestCalldata(exitOf(`0x${'cd'.repeat(48)}`))
  await chain.anvil.setAutomine(false)
  for (let one = 0; one < 140; one += 1) {
    await stranger.broadcast(await stranger.sign({ to: withdrawalRequestContract, data, valueWei: 1_000n }, nonce + one, 40))
  }
  const hash = await createPayer(chain.anvil).pay(exit.unsignedTransaction)
  await chain.anvil.mine(1)
  await chain.anvil.setAutomine(true)
  await report(exit, 'exit', hash)
  const block = Number(BigInt((await chain.anvil.rpc<{ blockNumber: Hex }>('eth_getTransactionReceipt', [hash])).blockNumber))
  await eventually(() => read(exit, 'exit'), {
    consensus: { status: 'pending', reason: expect.stringContaining(`its turn is block ${block + 8}`) },
  })

  // Its transaction is final long before its turn.
  await chain.anvil.mine(7)
  await eventually(() => read(exit, 'exit'), { status: 'confirmed', consensus: { status: 'pending' } })
  await chain.anvil.mine(1)
  await eventually(() => read(exit, 'exit'), { consensus: { status: 'accepted' } })
  await chain.anvil.mine(3)
  await eventually(() => read(exit, 'exit'), { consensus: { status: 'accepted', reason: expect.stringContaining('exits in epoch') } })
})

test('a withdrawal that waits in the queue keeps what it asks for: the beacon chain shows nothing of it yet', async () => {
  const pubkey = chain.fresh()
  const first = await made(pubkey, 'withdrawal', { amountGwei: String(6n * ETH) })
  const stranger = createPayer(chain.anvil, 1)
  const nonce = await stranger.nonce()
  const data = encodeRequestCalldata(exitOf(`0x${'cd'.repeat(48)}`))
  await chain.anvil.setAutomine(false)
  for (let one = 0; one < 20; one += 1) {
    await stranger.broadcast(await stranger.sign({ to: withdrawalRequestContract, data, valueWei: 1_000n }, nonce + one, 40))
  }
  const hash = await createPayer(chain.anvil).pay(first.unsignedTransaction)
  await chain.anvil.mine(1)
  await chain.anvil.setAutomine(true)
  await report(first, 'withdrawal', hash)
  await eventually(() => read(first, 'withdrawal'), {
    consensus: { status: 'pending', reason: expect.stringContaining('its turn is block') },
  })
  const ask = (amountGwei: bigint) =>
    running.service.call('POST', pathOf(pubkey, 'withdrawal'), {
      key,
      idempotencyKey: randomBytes(8).toString('hex'),
      body: { amountGwei: String(amountGwei) },
    })
  expect(await ask(5n * ETH)).toMatchObject({ status: 422, body: { code: 'validation-failed' } })
  await chain.anvil.mine(1)
  await eventually(() => read(first, 'withdrawal'), { consensus: { status: 'accepted' } })
  expect(await ask(2n * ETH)).toMatchObject({ status: 201 })
})

test('a withdrawal that is cut says what will be paid, and a slashing before its turn says that nothing is', async () => {
  const pubkey = chain.fresh()
  const first = await made(pubkey, 'withdrawal', { amountGwei: String(6n * ETH) })
  // One that nobody has submitted for a week keeps nothing any more: both can be asked for.
  await store.db
    .updateTable('ethereum_requests')
    .set({ created_at: new Date(0) })
    .where('id', '=', first.requestId)
    .execute()
  const second = await made(pubkey, 'withdrawal', { amountGwei: String(5n * ETH) })
  for (const request of [first, second]) {
    const hash = await createPayer(chain.anvil).pay(request.unsignedTransaction)
    await report(request, 'withdrawal', hash)
  }
  await chain.anvil.mine(3)
  await eventually(() => read(first, 'withdrawal'), {
    consensus: { status: 'accepted', payment: { status: 'waiting', amountGwei: String(6n * ETH) } },
  })
  await eventually(() => read(second, 'withdrawal'), {
    amountGwei: String(5n * ETH),
    consensus: { status: 'accepted', payment: { status: 'waiting', amountGwei: String(2n * ETH), withdrawableEpoch: expect.any(Number) } },
  })
  await chain.simulator.slash(pubkey)
  // The state after it becomes final, and is looked at.
  await chain.simulator.advanceEpochs(3)
  for (const request of [first, second]) {
    await eventually(lookAgain(request), {
      consensus: { status: 'accepted', payment: { status: 'void', reason: expect.stringContaining('slashed') } },
    })
  }
})

test('accepted before it was final, a cut withdrawal stays accepted when the states are gone by then', async () => {
  const request = await made(chain.fresh(), 'withdrawal', { amountGwei: String(8n * ETH) })
  await chain.simulator.setBalance(request.pubkey as Hex, 34n * ETH)
  const hash = await createPayer(chain.anvil).pay(request.unsignedTransaction)
  await report(request, 'withdrawal', hash)
  const accepted = { status: 'accepted', reason: expect.stringMatching(/^2000000000 gwei of the 8000000000 gwei/) }
  await eventually(() => read(request, 'withdrawal'), { status: 'submitted', consensus: accepted })
  gone = true
  await chain.anvil.mine(3)
  await eventually(() => read(request, 'withdrawal'), { status: 'confirmed', consensus: accepted })
  const row = () => store.db.selectFrom('ethereum_requests').selectAll().where('id', '=', request.requestId).executeTakeFirstOrThrow()
  await eventually(row, { settled: true, payment_status: 'waiting', payable_gwei: 2n * ETH })
})

test('a withdrawal that is paid says so', async () => {
  const request = await made(chain.fresh(), 'withdrawal', { amountGwei: String(2n * ETH) })
  await report(request, 'withdrawal', await createPayer(chain.anvil).pay(request.unsignedTransaction))
  await chain.anvil.mine(3)
  await eventually(() => read(request, 'withdrawal'), { consensus: { status: 'accepted', payment: { status: 'waiting' } } })
  await chain.simulator.advanceEpochs(chain.simulator.spec.MIN_VALIDATOR_WITHDRAWABILITY_DELAY + 6)
  await eventually(lookAgain(request), { consensus: { payment: { status: 'paid', amountGwei: String(2n * ETH) } } })
})
