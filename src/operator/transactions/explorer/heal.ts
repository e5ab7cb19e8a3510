import { purposeOf } from './codes.ts'
import type { Reason } from './decide.ts'
import type { Leaders } from './leader.ts'
import { OWNER, type State } from './state.ts'
import { createStateTable } from './table.ts'
import { type Action, type ActionKind, describe, partsOf } from './words.ts'
import type { World } from './world.ts'

/**
 * Whether all comes right once every fault has passed: from a state, one leader with fresh caches and two healthy nodes do what can be done, first
 * things first, until nothing changes. Then everything that is wanted has landed, or somebody is told why it waits.
 */
export type Health = 'done' | 'waits' | 'stuck'
export interface Healer {
  readonly health: (s: State) => Health
  /** Why it is not done, and what was tried, in words. */
  readonly explain: (s: State) => { readonly why: string; readonly steps: readonly string[] }
  readonly isHealing: () => boolean
}

/** What is done before what. What is not here is not done. */
const order: readonly ActionKind[] = [
  'conclude',
  'takeBack',
  'follow',
  'send',
  'tell',
  'readOwner',
  'namePlace',
  'createPlace',
  'catchUp',
  'refreshRecords',
  'refreshPlaces',
  'mine',
  'finalize',
  'makeAgain',
  'cancel',
  'handOver',
  'createRecord',
  'importRecord',
  'importPlace',
  'dropLedger',
  'makeHole',
  'fill',
  'goOn',
  'decide',
  // Last: it may be tried in vain for as long as the staking API refuses its hash.
  'resume',
]
const ranks = new Map(order.map((kind, rank) => [kind, rank]))
const verdicts: readonly (Health | undefined)[] = [undefined, 'done', 'waits', 'stuck']
/** These are shown to somebody. */
const waits: readonly Reason[] = ['unaccounted', 'unknown-submission', 'done-elsewhere', 'too-many-remakes', 'no-key', 'limit']

export function createHealer(world: World, steps: () => Leaders): Healer {
  const { config, at, log } = world
  const seen = createStateTable(world.stride)
  const current: State = new Uint16Array(world.stride)
  const best: State = new Uint16Array(world.stride)
  let bestRank = order.length
  let bestAction: Action = 0
  let isOn = false

  const consider = (t: State, by: Action): void => {
    const { kind, a, b, c } = partsOf(by)
    const rank = ranks.get(kind)
    if (rank === undefined || rank >= bestRank) return
    if (kind === 'mine') {
      if (world.pooled(current, 0, a, b) !== c && world.pooled(current, 1, a, b) !== c) return
      if (config.lowCap === true && purposeOf(c) === 0) return
    }
    if (t.every((value, index) => value === current[index])) return
    bestRank = rank
    bestAction = by
    best.set(t)
  }
  const isFinal = (purpose: number): boolean => {
    for (let lane = 0; lane < config.lanes; lane++)
      for (let nonce = 0; nonce < world.finalCount(current, lane); nonce++)
        if (purposeOf(world.mined(current, lane, nonce)) === purpose) return true
    return false
  }
  const judge = (): { readonly health: Health; readonly why: string } => {
    let health: Health = 'done'
    let why = ''
    const add = (next: Health, words: string): void => {
      why += `${why === '' ? '' : '; '}${words}`
      if (next === 'stuck' || health === 'done') health = health === 'stuck' ? 'stuck' : next
    }
    config.wants.forEach((purpose, owner) => {
      if (purpose < 0 || world.owner(current, owner) !== OWNER.active || (config.lowCap === true && purpose === 0)) return
      const number = current[at.store.records + purpose] ?? 0
      const isLanded = number !== 0 && log.record(number).isLanded
      // Another asked before, and is still there.
      const holder = number === 0 ? owner : log.record(number).owner
      if (holder !== owner && world.owner(current, holder) !== OWNER.deleted) return
      if (isFinal(purpose) && isLanded) return
      const reason = steps().reason(current, purpose)
      if (reason === 'full') return
      if (waits.includes(reason)) add('waits', `purpose ${purpose}: ${reason}`)
      else
        add(
          'stuck',
          `purpose ${purpose}: ${isFinal(purpose) ? 'has landed, and its record does not say so' : isLanded ? 'its record says Landed, and nothing is on the chain' : reason}`,
        )
    })
    for (let purpose = 0; purpose < 2; purpose++) {
      const number = current[at.store.records + purpose] ?? 0
      if (number !== 0 && log.record(number).isLanded && !isFinal(purpose))
        add('stuck', `purpose ${purpose}: Landed for ever with nothing on the chain`)
    }
    for (let lane = 0; lane < config.lanes; lane++) {
      const next = world.finalCount(current, lane)
      const { highest, places, number } = log.places(current[at.store.places + lane] ?? 0)
      if (highest < next || !world.hasKey(current, lane)) continue
      const purpose = places.has(next) ? log.purposeAt(number, next) : -1
      const record = purpose < 0 ? 0 : (current[at.store.records + purpose] ?? 0)
      // A call that is held because nobody waits behind it.
      const isHeld = record !== 0 && log.record(record).isOpen && log.record(record).place === next && highest === next
      if (!isHeld) add('stuck', `lane ${lane}: nonce ${next} stays open below ${highest + 1}`)
    }
    return { health, why }
  }
  const step = (): boolean => {
    bestRank = order.length
    steps().steps(current, consider)
    world.happenings(current, consider)
    if (bestRank === order.length) return false
    current.set(best)
    return true
  }
  const path: number[] = []

  return {
    isHealing: () => isOn,
    health: (s) => {
      isOn = true
      current.set(s)
      world.heal(current)
      path.length = 0
      let verdict: Health | undefined
      while (verdict === undefined) {
        const before = seen.size()
        const index = seen.add(current, -1, 0)
        if (index < before) {
          // Seen: its verdict is known, or it is on this very path, which goes in a circle.
          verdict = verdicts[seen.markOf(index)] ?? judge().health
          break
        }
        path.push(index)
        if (!step()) verdict = judge().health
      }
      for (const index of path) seen.mark(index, verdicts.indexOf(verdict))
      isOn = false
      return verdict
    },
    explain: (s) => {
      isOn = true
      current.set(s)
      world.heal(current)
      const done: string[] = []
      while (done.length < 200 && step()) done.push(describe(bestAction))
      const { why } = judge()
      isOn = false
      return { why, steps: done }
    },
  }
}
