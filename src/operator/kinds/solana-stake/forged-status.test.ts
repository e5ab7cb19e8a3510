import { describe, expect, test } from 'vitest'
import type { SolanaStakeStatus } from '../../../resources/solana-stake.ts'
import { type StakingTransaction, stakingTransaction } from '../../../resources/staking-transaction.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { stakeWorld } from '../../testing/solana-stories.ts'
import { KEY, type SolanaWorld } from '../../testing/solana-world.ts'

/** Whoever may write status says what the log does not: nothing is shown as done by that, and nothing goes. */

const OTHER = 'team-a/other'
const isForgotten = (world: SolanaWorld): void => {
  const log = world.collection<StakingTransaction & KubeObject>(stakingTransaction)
  for (const { metadata, spec } of [...log.list()]) if (spec.owner.name === 'stake-1') log.vanish(metadata.name)
}
/** The stake, and another that is Ready. @returns what the other's status shows */
async function twoStakes(): Promise<{ world: SolanaWorld; others: SolanaStakeStatus }> {
  const world = stakeWorld()
  world.addStake({}, OTHER)
  await world.settle(world.start(), { key: OTHER })
  expect(world.ready(OTHER)).toBe(true)
  return { world, others: world.status(OTHER) }
}

describe('status that a tenant has written', () => {
  test("is another's that is Ready, before anything is signed: it is not Ready by that, and says what to do", async () => {
    const { world, others } = await twoStakes()
    await world.visit(
      world.start((point, self) => {
        if (point === 'before keys.signOffchainMessage') self.kill()
      }),
    )
    world.editStatus(() => others)
    const operator = world.start()
    for (let look = 0; look < 2; look++) await world.visit(operator)
    expect(world.stalled(), world.explain()).toBe('VerificationFailed')
    expect(world.ready()).toBe(false)
    expect(world.condition('Confirmed')?.status).not.toBe('True')
    expect(world.status().phase).toBe('Stalled')
    expect(world.condition('Stalled')?.message).toContain('remove status.stakeId and status.transactions')

    world.editStatus(({ stakeId: _id, transactions: _all, ...rest }) => rest)
    await world.settle(operator)
    expect(world.ready(), world.explain()).toBe(true)
    world.assertMoney({ funded: 2, withdrawn: 0 })
  })

  test('says that nothing was ever staked, and the log is lost: the money comes out all the same', async () => {
    const { world } = await twoStakes()
    await world.settle(world.start())
    isForgotten(world)
    world.editStatus(({ transactions: _gone, ...rest }) => ({ ...rest, looked: true }))
    world.editSpec({ desiredState: 'Withdrawn' })
    await world.settle(world.start())
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().phase).toBe('Withdrawn')
    world.assertMoney({ funded: 2, withdrawn: 1 })
  })

  test("names another's stake, and the log is lost: deleted, it stays while it holds money", async () => {
    const { world, others } = await twoStakes()
    await world.settle(world.start())
    isForgotten(world)
    world.editStatus(() => ({ ...others, transactions: undefined, looked: true, cancelled: true }))
    world.stakes.remove(KEY)
    const operator = world.start()
    for (let look = 0; look < 4; look++) {
      await world.visit(operator)
      world.cluster.expire()
      world.clock.advance(60_000)
    }
    expect(world.stakes.get(KEY), world.explain()).toBeDefined()
    expect(world.condition('Ready')?.message).toContain('not withdrawn')
  })
})

test('a stake that the staking API has lost before it was paid says where the money may be, and what to do', async () => {
  const world = stakeWorld()
  let isLost = false
  const operator = world.start((point) => {
    if (point !== 'after api.createSolanaStake' || isLost) return
    isLost = true
    queueMicrotask(() => world.service.forget())
  })
  for (let look = 0; look < 3; look++) await world.visit(operator)
  expect(world.stalled(), world.explain()).not.toBe('')
  expect(world.condition('Stalled')?.message).toContain(world.status().stakeAccount)
  expect(world.condition('Stalled')?.message).toContain('delete this resource and create it again')
})

test('a stake to take over that the staking API does not have names the field', async () => {
  const world = stakeWorld({ adopt: { stakeId: '0'.repeat(32) } })
  await world.visit(world.start())
  expect(world.stalled()).toBe('RequestRefused')
  expect(world.condition('Stalled')?.message).toContain('spec.adopt.stakeId')
})
