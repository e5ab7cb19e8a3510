import { describe, expect, test } from 'vitest'
import type { StakingTransactionSpec } from '../../resources/staking-transaction.ts'
import { addressOf, createWorld, hoodi, KEY } from '../testing/world.ts'

/** What the API server holds is the guard: names that are taken, and writes by what was read. */

const signal = AbortSignal.timeout(60_000)
const lane = { chainId: hoodi.chainId, address: addressOf(0) }
const specOf = (name: string): StakingTransactionSpec => ({
  chain: 'Ethereum',
  network: 'hoodi',
  chainId: hoodi.chainId,
  purpose: 'Deposit',
  subject: `0x${'ab'.repeat(48)}`,
  amount: '32 ETH',
  owner: { kind: 'EthereumStake', namespace: 'team-a', name, originUid: `uid-of-${name}` },
  generation: 0,
  signer: 'signer-1',
  from: addressOf(0),
  call: { to: hoodi.depositContractAddress, data: '0x', valueWei: '1' },
})
const by = (name: string) => ({ uid: `uid-of-${name}`, generation: 0, status: {}, name })

describe('of two who make the same record', () => {
  test('the first one’s stands, and the second is told so', async () => {
    const world = createWorld()
    const [one, other] = [world.start(), world.start()]
    await one.transactions.create('deposit-1', specOf('one'), signal)
    const found = await other.transactions.create('deposit-1', specOf('other'), signal)
    expect(found.spec.owner.name).toBe('one')
    expect(world.records.list().map(({ spec }) => spec.owner.name)).toEqual(['one'])
  })
})

describe('of two who take the same place', () => {
  test('the first one has it, and the second is told whose it is', async () => {
    const world = createWorld()
    const [one, other] = [world.start(), world.start()]
    expect(await one.transactions.takePlace(lane, 7, by('one'), signal)).toMatchObject({ transaction: { uid: 'uid-of-one' } })
    expect(await other.transactions.takePlace(lane, 7, by('other'), signal)).toMatchObject({ transaction: { uid: 'uid-of-one' } })
    expect(world.places.list()).toHaveLength(1)
  })
})

describe('a record that was written since it was read', () => {
  const status = { state: 'Waiting' } as const

  test('is not written over', async () => {
    const world = createWorld()
    const [one, other] = [world.start(), world.start()]
    const read = await one.transactions.create('deposit-1', specOf('one'), signal)
    await other.transactions.writeStatus(read, { ...status, closed: [] }, signal)
    await expect(one.transactions.writeStatus(read, status, signal)).rejects.toMatchObject({ verdict: { kind: 'conflict' } })
    await expect(one.transactions.writeSpec(read, { generation: 1 }, signal)).rejects.toMatchObject({ verdict: { kind: 'conflict' } })
  })

  test('is not written over where it is another one of its name', async () => {
    const world = createWorld()
    const operator = world.start()
    const read = await operator.transactions.create('deposit-1', specOf('one'), signal)
    world.records.vanish('deposit-1')
    await operator.transactions.create('deposit-1', specOf('other'), signal)
    await expect(operator.transactions.writeStatus(read, status, signal)).rejects.toMatchObject({ verdict: { kind: 'conflict' } })
  })
})

test('two leaders make one deposit of one stake, whatever their caches hear', async () => {
  const world = createWorld()
  world.addSigner()
  world.addStake()
  const operators = [world.start(), world.start()]
  for (const cache of Object.values(operators[1]?.caches ?? {})) cache.frozen = true
  for (let n = 0; n < 10; n++) {
    await Promise.all(
      operators.map(async (operator) => {
        await operator.visit(KEY)
        await operator.visitLanes()
      }),
    )
    world.clock.advance(12_000)
    world.chain.mine()
  }
  world.assertMoney({ deposits: 1 })
})
