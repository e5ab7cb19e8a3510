import { expect } from 'vitest'
import type { SolanaStakeSpec } from '../../resources/solana-stake.ts'
import type { Around } from './mortal.ts'
import { createSolanaWorld, type SolanaOperator, type SolanaWorld } from './solana-world.ts'

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
  return {
    async of(run: (world: SolanaWorld, operator: SolanaOperator) => Promise<void>): Promise<readonly string[]> {
      const world = stakeWorld()
      const points: string[] = []
      await run(
        world,
        world.start((point) => void (changes.test(point) && points.push(point))),
      )
      return points
    },
    /** Ends the operator at the point of this number, of those that `of` gives. */
    endAt(fatal: number): Around {
      let passed = 0
      return (point, operator) => {
        if (changes.test(point) && passed++ === fatal) operator.kill()
      }
    },
  }
}
