import { describe, expect, test } from 'vitest'
import { SolanaError } from '../../src/chains/solana/chain.ts'
import { misfortune } from '../../src/operator/testing/misfortune.ts'
import { pointsAt, stakeWorld } from '../../src/operator/testing/solana-stories.ts'
import { KEY, type SolanaOperator, type SolanaWorld } from '../../src/operator/testing/solana-world.ts'
import { seededRandom } from '../../src/operator/testing/test-clock.ts'

const order = ['Active', 'Inactive', 'Withdrawn'] as const
/** From its creation to its withdrawal; what the spec says next is set as soon as the last is reached. */
async function live(world: SolanaWorld, operator: SolanaOperator): Promise<void> {
  for (const desiredState of order) {
    const now = world.stakes.get(KEY)?.spec.desiredState ?? 'Active'
    if (order.indexOf(now) > order.indexOf(desiredState)) continue
    world.editSpec({ desiredState })
    await world.settle(operator)
    if (operator.killed) return
    expect(world.ready(), world.explain()).toBe(true)
    expect(world.status().phase).toBe(desiredState)
  }
}

function assertLivedOnce(world: SolanaWorld): void {
  world.assertMoney({ funded: 1, withdrawn: 1 })
  expect(world.service.stakes()).toHaveLength(1)
  // One of each kind, and none of them tried twice.
  expect(world.cluster.landed().map(({ failure }) => failure)).toEqual([undefined, undefined, undefined])
}

/** Where the world is about to be changed, or has just been: to end anywhere else is to end at the one before. */
const changes = /^(before|after) (stakes\.mergePatch|api\.(create|renew|refresh|submit)|chain\.sendTransaction)/
const { of: pointsOf, endAt, deletedAfterEach } = pointsAt(changes)

test('ended at every point of its life and started again, the operator has funded one account once, and all came back but the fees', async () => {
  const points = await pointsOf(async (world, operator) => {
    await live(world, operator)
    assertLivedOnce(world)
  })
  expect(points.length).toBeGreaterThan(40)

  for (let fatal = 0; fatal < points.length; fatal++) {
    const world = stakeWorld()
    const doomed = world.start(endAt(fatal))
    try {
      await live(world, doomed)
      expect(doomed.killed).toBe(true)
      await live(world, world.start())
      assertLivedOnce(world)
    } catch (error) {
      throw new Error(`after an end at ${points[fatal]}`, { cause: error })
    }
  }
})

test('deleted after an end at any point before its stake is active, it holds its money, or goes with nothing staked', async () => {
  const ends = await deletedAfterEach()
  expect(Math.min(ends.held, ends.gone)).toBeGreaterThan(5)
})

const noAnswer = () => new SolanaError('unavailable', 'no answer')

/** More of them on demand: FUZZ_SEEDS=500. */
const seeds = Array.from({ length: Number(process.env.FUZZ_SEEDS ?? 4) }, (_, seed) => seed)

describe('whatever befalls it', { timeout: 240_000 }, () => {
  test.each(seeds)('it is funded once, and all comes back but the fees (seed %i)', async (seed) => {
    const world = stakeWorld()
    const random = seededRandom(4000 + seed)
    const log: string[] = []
    const around = misfortune({ random, log, most: 100, ends: 0.005, fails: 0.02, ofChain: noAnswer })
    // Two leaders at once: that must cost nothing but time.
    const leaders = [world.start(around), world.start(around)]
    for (let round = 0; round < 200 && !(world.ready() && world.status().phase === 'Withdrawn'); round++) {
      const calm = round > 100
      world.cluster.state.forgetful = !calm && random() < 0.2
      if (!calm && random() < 0.1) world.cluster.forget()
      if (!calm && random() < 0.1) world.cluster.expire()
      if (!calm && random() < 0.05) world.editStatus(() => undefined)
      for (const { caches } of leaders) {
        if (!calm && random() < 0.1) caches.stakes.frozen = true
        else caches.stakes.thaw()
      }
      await Promise.all(leaders.map((leader) => leader.visit(KEY).catch(() => undefined)))
      for (const [index, leader] of leaders.entries()) if (leader.killed) leaders[index] = world.start(around)
      world.cluster.produce(1)
      world.clock.advance(60_000)
      const { phase } = world.status()
      if (phase === 'Activating' || phase === 'Deactivating') world.cluster.nextEpoch()
      if (world.ready() && phase !== 'Withdrawn') world.editSpec({ desiredState: phase === 'Active' ? 'Inactive' : 'Withdrawn' })
    }
    try {
      expect(world.ready(), world.explain()).toBe(true)
      world.assertMoney({ funded: 1, withdrawn: 1 })
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}\n${log.join('\n')}`)
    }
  })
})
