import type { Ablation } from './config.ts'
import type { Found } from './explore.ts'

/** A rule left out: in which world its counterexample is found, what it shows, and in how many steps at least. */
export interface Case {
  readonly rule: Ablation
  /** What stands behind the rule and is left out too: it would prevent the worst by itself. */
  readonly and?: readonly Ablation[]
  readonly world: string
  readonly finds: Found
  readonly steps: number
}

/** The staking API knows nothing and refuses nothing. */
const blind = ['toldFirst', 'apiRefuses'] as const satisfies readonly Ablation[]

export const cases: readonly Case[] = [
  // Money.
  { rule: 'oneName', and: blind, world: '13', finds: 'paid twice', steps: 15 },
  { rule: 'fence', and: blind, world: '15', finds: 'paid twice', steps: 17 },
  { rule: 'namedOnly', and: blind, world: '15', finds: 'paid twice', steps: 15 },
  { rule: 'lowestPlace', world: '11b', finds: 'paid twice', steps: 15 },
  { rule: 'waitForPools', world: '11e', finds: 'paid twice', steps: 22 },
  { rule: 'witnesses', world: '11b', finds: 'paid twice', steps: 16 },
  { rule: 'witnessesEach', world: '11c', finds: 'paid twice', steps: 27 },
  { rule: 'toldFirst', world: '09', finds: 'paid twice', steps: 21 },
  { rule: 'allNodes', and: blind, world: '07', finds: 'paid twice', steps: 15 },
  { rule: 'content', and: ['witnessesEach', ...blind], world: '08', finds: 'paid twice', steps: 20 },
  { rule: 'attemptWritten', and: ['content', 'witnesses', ...blind], world: '05', finds: 'paid twice', steps: 18 },
  { rule: 'forgottenPlaces', world: '11c', finds: 'paid twice', steps: 15 },
  { rule: 'recordPruned', world: '18b', finds: 'paid twice', steps: 20 },
  { rule: 'importFirst', world: '28', finds: 'paid twice', steps: 9 },
  { rule: 'legacyFillers', world: '28d', finds: 'paid twice', steps: 17 },
  { rule: 'freshStart', world: '28g', finds: 'paid twice', steps: 19 },
  { rule: 'finalByAll', world: '11d', finds: 'paid twice', steps: 16 },
  { rule: 'endsWhenSetBack', world: '11b', finds: 'paid twice', steps: 18 },
  { rule: 'apiRefuses', and: ['endsWhenSetBack'], world: '10', finds: 'paid twice', steps: 19 },
  // What is shown, and what is signed for whom.
  { rule: 'nobodyContradicts', world: '07', finds: 'wrong Ready', steps: 12 },
  { rule: 'freshOwner', world: '03', finds: 'signed against the owner', steps: 7 },
  { rule: 'placeNames', world: '17', finds: 'one nonce given out twice', steps: 8 },
  { rule: 'limit', world: '29', finds: 'over the limit', steps: 14 },
  { rule: 'limitPlaces', world: '29', finds: 'over the limit', steps: 15 },
  // Every lane moves, and nobody is called for nothing.
  { rule: 'cancels', world: '03', finds: 'stuck', steps: 5 },
  { rule: 'fillers', world: '03', finds: 'stuck', steps: 4 },
  { rule: 'fillsUnnamed', world: '04', finds: 'stuck', steps: 4 },
  { rule: 'freshUse', world: '13', finds: 'stuck', steps: 25 },
  { rule: 'freshCancel', world: '27', finds: 'stuck', steps: 29 },
  { rule: 'versionsOfLane', world: '15', finds: 'stuck', steps: 6 },
  { rule: 'shownPlaces', world: '13', finds: 'stuck', steps: 20 },
  { rule: 'followed', world: '28e', finds: 'stuck', steps: 16 },
  { rule: 'takenBack', world: '07', finds: 'stuck', steps: 8 },
  { rule: 'heirsCount', world: '15', finds: 'stuck', steps: 8 },
  { rule: 'holes', world: '09', finds: 'stuck', steps: 15 },
  { rule: 'handOverClosed', world: '15', finds: 'stuck', steps: 8 },
  { rule: 'placeMadeAgain', world: '19', finds: 'stuck', steps: 8 },
]
