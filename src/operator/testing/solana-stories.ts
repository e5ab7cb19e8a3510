import { expect } from 'vitest'
import type { SolanaStakeSpec } from '../../resources/solana-stake.ts'
import type { Around } from './mortal.ts'
import { createSolanaWorld, KEY, type SolanaOperator, type SolanaWorld } from './solana-world.ts'

/** How the tests of a SolanaStake begin, and how they end an operator at each point of a life. */

/** A world with its signers and one stake. */
export function stakeWorld(change: Partial<SolanaStakeSpec> = {}): SolanaWorld {
  const world = createSolanaWorld()
  world.addSigners()
  world.addStake(change)
  return world
}

/** The same, once the stake is Ready. */
export async function readyStake(): Promise<{ world: SolanaWorld; operator: SolanaOperator; account: string }> {
  const world = stakeWorld()
  const operator = world.start()
  await world.settle(operator)
  expect(world.ready(), world.explain()).toBe(true)
  return { world, operator, account: world.status().stakeAccount ?? '' }
}

/** The points of a run at which the world is about to be changed, or has just been: to end anywhere else is to end at the one before. */
export function pointsAt(changes: RegExp) {
  /** Ends the operator at the point of this number, of those that `of` gives. */
  function endAt(fatal: number): Around {
    let passed = 0
    return (point, operator) => {
      if (changes.test(point) && passed++ === fatal) operator.kill()
    }
  }
  async function of(run: (world: SolanaWorld, operator: SolanaOperator) => Promise<void>): Promise<readonly string[]> {
    const world = stakeWorld()
    const points: string[] = []
    await run(
      world,
      world.start((point) => void (changes.test(point) && points.push(point))),
    )
    return points
  }
  return {
    of,
    endAt,
    /**
     * A stake is deleted after an end at each point of its way to active, and a new operator looks after that: it holds its money, or goes with nothing staked.
     * `leave`: changes what the end has left. `expiries`: how often what was signed expires between two looks. @returns how many did which
     */
    async deletedAfterEach({
      leave = () => {},
      expiries = 1,
    }: {
      readonly leave?: (world: SolanaWorld) => void
      readonly expiries?: number
    } = {}): Promise<{ readonly held: number; readonly gone: number }> {
      const points = await of((world, operator) => world.settle(operator))
      const ends = { held: 0, gone: 0 }
      for (let fatal = 0; fatal < points.length; fatal++) {
        const world = stakeWorld()
        await world.settle(world.start(endAt(fatal)))
        leave(world)
        world.stakes.remove(KEY)
        const operator = world.start()
        for (let round = 0; round < 6 && world.stakes.get(KEY) !== undefined; round++) {
          await world.visit(operator)
          for (let count = 0; count < expiries; count++) world.cluster.expire()
          world.clock.advance(60_000)
        }
        const isHeld = world.stakes.get(KEY) !== undefined
        ends[isHeld ? 'held' : 'gone'] += 1
        try {
          world.assertMoney({ funded: isHeld ? 1 : 0, withdrawn: 0 })
        } catch (error) {
          throw new Error(`deleted after an end at ${points[fatal]}`, { cause: error })
        }
      }
      return ends
    },
  }
}
