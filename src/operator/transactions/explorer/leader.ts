import { createAsking } from './asking.ts'
import { createCaches } from './caches.ts'
import type { Reason } from './decide.ts'
import { createFollowing } from './following.ts'
import { createGround } from './ground.ts'
import { createImporting } from './importing.ts'
import { AT, type Emit, type State } from './state.ts'
import { createTending } from './tending.ts'
import { createUnderWay } from './under-way.ts'
import { action } from './words.ts'
import type { World } from './world.ts'

/**
 * What a leader may do next, one atomic step at a time: the product's program without its order. A read and the decision made of it are one step;
 * each write, each word to the staking API and each sending is one of its own, so that anything can happen between two.
 */
export interface Leaders {
  readonly steps: (s: State, emit: Emit) => void
  /** Why a leader with fresh caches does nothing for this purpose: `moves` when it can. */
  readonly reason: (s: State, purpose: number) => Reason
}
export function createLeaders(world: World, isHealing: () => boolean): Leaders {
  const ground = createGround(world, isHealing)
  const { at, word, has, decide } = ground
  const forLedger = createImporting(ground)
  const { forOwners, forPlaces } = createAsking(ground)
  const forRecords = createFollowing(ground)
  const forLanes = createTending(ground)
  const goOn = createUnderWay(ground)
  const { catchUp, refresh } = createCaches(ground)

  return {
    steps: (s, emit) => {
      const active = isHealing() ? 1 : at.leaders.length
      for (let leader = 0; leader < active; leader++) {
        const cache = at.leaders[leader]
        if (cache === undefined) continue
        if (word(s, cache.pc) === AT.idle) {
          forOwners(s, leader, cache, emit)
          if (world.hasLedger(s)) {
            forLedger(s, leader, cache, emit)
            if (has.importFirst) continue
          }
          forPlaces(s, leader, cache, emit)
          forRecords(s, leader, cache, emit)
          forLanes(s, leader, cache, emit)
        } else {
          if (word(s, cache.pc) === AT.catchUp) catchUp(s, leader, cache, emit)
          else goOn(s, leader, cache, emit)
          if (world.budget(s, 'crash') > 0) {
            const t = world.fork(s)
            world.spend(t, 'crash')
            world.restart(t, leader)
            emit(t, action('crash', leader))
          }
        }
        refresh(s, leader, cache, emit)
      }
    },
    reason: (s, purpose) => {
      const cache = at.leaders[0]
      if (cache === undefined) return 'no-record'
      const decision = decide(s, cache, purpose)
      return decision.is === 'none' ? decision.why : 'moves'
    },
  }
}
