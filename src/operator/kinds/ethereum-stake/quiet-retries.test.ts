import { expect, test } from 'vitest'
import { ChainError } from '../../../chains/ethereum/chain.ts'
import { testAddress } from '../../testing/fake-keys.ts'
import { createWorld, ETH, hoodi, KEY, type World } from '../../testing/world.ts'

const version = (world: World) => world.stakes.get(KEY)?.metadata.resourceVersion

/** A stake whose transaction stands written down, and no node takes it. */
async function prepared() {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  let down = true
  const operator = world.start((point) => {
    if (point === 'before chain.send' && down) throw new ChainError('unavailable', 'no answer')
  })
  await world.visit(operator)
  expect(world.status().transaction?.state).toBe('Prepared')
  return {
    world,
    operator,
    recover: () => {
      down = false
    },
  }
}

test('a transaction that no node takes is sent again and again, and nothing is written', async () => {
  const { world, operator } = await prepared()
  const [before, told] = [version(world), world.events.length]
  for (let count = 0; count < 3; count++) {
    const result = await world.visit(operator)
    expect(result.kind).toBe('wait')
  }
  expect(version(world)).toBe(before)
  expect(world.events.length).toBe(told)
})

/** Somebody else deposits for this stake's public key, with the very same data. */
function depositByOther(world: World): void {
  const transaction = world.service.stakes()[0]?.unsignedTransaction
  if (transaction === undefined) throw new Error('no stake was made')
  world.chain.fund(testAddress(2), 100n * ETH)
  world.chain.mineForeign({
    from: testAddress(2),
    to: hoodi.depositContractAddress,
    data: transaction.data,
    valueWei: transaction.valueWei,
  })
}

test('a stalled one that is looked at again writes nothing and warns once', async () => {
  const { world, operator, recover } = await prepared()
  depositByOther(world)
  recover()
  await world.visit(operator)
  expect(world.stalled()).toBe('PubkeyAlreadyDeposited')
  const [before, told] = [version(world), world.events.length]
  for (let count = 0; count < 3; count++) await world.visit(operator)
  expect(version(world)).toBe(before)
  expect(world.events.length).toBe(told)
})

test('deleted, it goes once its place is cancelled, whoever deposited for its public key', async () => {
  const { world, operator, recover } = await prepared()
  depositByOther(world)
  recover()
  await world.visit(operator)
  world.stakes.remove(KEY)
  await world.visit(operator)
  expect(world.stakes.get(KEY), 'it may still land').toBeDefined()
  await world.settle(operator)
  expect(world.stakes.get(KEY)).toBeUndefined()
  expect(world.record()?.status?.closed).toMatchObject([{ nonce: 0, by: 'Cancel' }])
  world.addStake('team-a/next')
  await world.settle(operator, ['team-a/next'])
  expect(world.status('team-a/next').transaction).toMatchObject({ nonce: 1, state: 'Confirmed' })
})
