import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { createPayer } from './payer.ts'
import { eventually, startTracked, startValidatorChain, type TrackedService, type ValidatorChain } from './validators.ts'

/** What the consensus layer makes of deposits that the contract took: a validator, or nothing. */
let chain: ValidatorChain
let store: Store
let running: TrackedService | undefined

beforeAll(async () => {
  chain = await startValidatorChain()
  store = await openStore(await memoryDatabase())
})
afterAll(async () => {
  await running?.stop()
  await store?.close()
  await chain?.stop()
})

/** As a service that was configured otherwise before. */
async function restart(more: Parameters<typeof startTracked>[2] = {}) {
  await running?.stop()
  running = await startTracked(store, chain, more)
  return running.service
}

test('a deposit that was signed for another fork is dropped when its turn has passed, and said to be; a right one is accepted', async () => {
  const amount = { network: 'devnet', amountEth: 32, withdrawalAddress: chain.account(0).address }
  const pay = async (service: TrackedService['service'], key: string, idempotencyKey: string) => {
    const made = await service.call('POST', '/v1/ethereum/stakes', { key, idempotencyKey, body: amount })
    expect(made, made.text).toMatchObject({ status: 201 })
    const transactionHash = await createPayer(chain.anvil).pay(made.body.unsignedTransaction)
    const path = `/v1/ethereum/stakes/${made.body.stakeId}`
    await service.call('PUT', `${path}/submission`, { key, body: { transactionHash } })
    return { path, pubkey: made.body.depositData.pubkey as `0x${string}` }
  }
  // A networks file with another fork version, and no beacon node that would say so.
  const misled = await restart({ config: { genesisForkVersion: '0x00000001' }, beaconUrls: [] })
  const key = await misled.key()
  const wrong = await pay(misled, key, 'wrong')
  await chain.anvil.mine(4)
  await eventually(async () => (await misled.call('GET', wrong.path, { key })).body, { transaction: { status: 'confirmed' } })

  const service = await restart()
  const right = await pay(service, key, 'right')
  const read = async ({ path }: { path: string }) => (await service.call('GET', path, { key })).body
  await chain.anvil.mine(4)
  await eventually(() => read(right), { transaction: { status: 'confirmed' }, consensus: { status: 'pending' } })
  expect((await read(wrong)).consensus).toMatchObject({ status: 'pending' })

  for (let epoch = 0; epoch < 16 && (await chain.simulator.lostDeposits()).length === 0; epoch += 1) await chain.simulator.advanceEpochs(1)
  expect(await chain.simulator.lostDeposits()).toEqual([wrong.pubkey])
  // What is final only: the state in which its turn has passed.
  await chain.simulator.advanceEpochs(4)
  // A look is due once an epoch, which is minutes here.
  const due = () =>
    store.db
      .updateTable('ethereum_stakes')
      .set({ consensus_at: new Date(0) })
      .execute()
  const lookAgain = (stake: typeof wrong) => async () => {
    await due()
    return read(stake)
  }
  await eventually(lookAgain(wrong), { consensus: { status: 'dropped', reason: expect.stringMatching(/^invalid-signature: /) } })
  await eventually(lookAgain(right), {
    consensus: { status: 'accepted' },
    validator: { status: expect.stringMatching(/^(pending|active)/) },
  })
  // It stays said.
  await restart({ beaconUrls: [] })
  expect((await running?.service.call('GET', wrong.path, { key }))?.body.consensus).toMatchObject({ status: 'dropped' })
})
