import type { Counts } from '../protocol.ts'
import { createChainHappenings } from './chain-happenings.ts'
import { LEDGER } from './codes.ts'
import { type Config, type Faults, faultNames, type NodeMode, type Rules } from './config.ts'
import { createEtcdHappenings } from './etcd-happenings.ts'
import { createFields } from './fields.ts'
import { createLog, type Log } from './log.ts'
import { createNodeHappenings } from './node-happenings.ts'
import { createNodeViews } from './node-views.ts'
import { createOwnerHappenings } from './owner-happenings.ts'
import { type Emit, type Layout, layoutOf, OWNER, type State } from './state.ts'

/**
 * The world around the leaders: etcd, two nodes with their pools, the chain, the staking API, the owners. A state is an array of 16-bit words; the
 * accessors here say where each thing stands in it.
 */
export interface World {
  readonly config: Config
  readonly rules: Rules
  readonly log: Log
  readonly stride: number
  readonly initial: () => State
  readonly at: Layout
  readonly budget: (s: State, fault: keyof Faults) => number
  readonly spend: (t: State, fault: keyof Faults) => void
  readonly mode: (s: State, node: number) => NodeMode
  readonly owner: (s: State, owner: number) => number
  readonly hasKey: (s: State, lane: number) => boolean
  readonly laneOf: (s: State, owner: number) => number
  readonly mined: (s: State, lane: number, nonce: number) => number
  readonly minedCount: (s: State, lane: number) => number
  readonly finalCount: (s: State, lane: number) => number
  /** Highest counts that any node says; undefined when none answers. */
  readonly counts: (s: State, lane: number) => Counts | undefined
  /** The lowest final count, when every node answers. */
  readonly finalEverywhere: (s: State, lane: number) => number | undefined
  /** A node's final count; −1 when it doesn't answer. */
  readonly nodeFinal: (s: State, node: number, lane: number) => number
  readonly pooled: (s: State, node: number, lane: number, nonce: number) => number
  /** A call of this purpose that the chain's history shows to those that are asked; 0 for none. */
  readonly done: (s: State, purpose: number) => number
  /** Whether a node knows the transaction. */
  readonly isKnown: (s: State, id: number) => boolean
  readonly deliver: (t: State, lane: number, nonce: number, code: number) => void
  /** Everything that happens around the leaders. */
  readonly happenings: (s: State, emit: Emit) => void
  /** A copy to change and emit; the same array each time. */
  readonly fork: (s: State) => State
  /** Healthy again, one leader with fresh caches, no more faults. */
  readonly heal: (s: State) => void
  /** Which calls were ever sent under a nonce that is not final, a bit for each code. */
  readonly sent: (s: State, lane: number, nonce: number) => number
  readonly restart: (t: State, leader: number) => void
  readonly violation: (s: State) => number
  /** What an earlier version has signed is not all in the log. */
  readonly hasLedger: (s: State) => boolean
}

export function createWorld(config: Config, rules: Rules): World {
  const at = layoutOf(config)
  const log = createLog(config, rules)
  const fields = createFields(config, at)
  const views = createNodeViews(config, at, fields)
  const { word, restart, setOwner } = fields
  const { lanes } = config
  const stride = at.length
  const chain = createChainHappenings(config, at, fields, views)
  const nodes = createNodeHappenings(config, at, fields, views)
  const owners = createOwnerHappenings(config, at, log, fields)
  const etcd = createEtcdHappenings(config, rules, at, log, fields, views)
  const { budget, spend, mode, owner, hasKey, laneOf, mined, minedCount, finalCount, pooled, sent, fork } = fields
  const { counts, finalEverywhere, nodeFinal, done, isKnown, deliver } = views
  const hasLedger = (s: State): boolean => config.ledger === true && word(s, at.store.ledger) !== 0

  return {
    config,
    rules,
    log,
    stride,
    at,
    initial: () => {
      const s = new Uint16Array(stride)
      if (config.ledger === true) {
        s[at.store.ledger] = 1
        for (const { nonce, code } of LEDGER) s[at.sent + nonce] = 1 << code
      }
      config.wants.forEach((wanted, index) => {
        if (index < 2 && wanted >= 0) setOwner(s, index, OWNER.active)
      })
      faultNames.forEach((name, index) => {
        const slot = at.budgets + (index >> 3)
        s[slot] = word(s, slot) | (Math.min(3, config[name] ?? 0) << ((index & 7) * 2))
      })
      for (let leader = 0; leader < at.leaders.length; leader++) restart(s, leader)
      return s
    },
    budget,
    spend,
    mode,
    owner,
    hasKey,
    laneOf,
    mined,
    minedCount,
    finalCount,
    counts,
    finalEverywhere,
    nodeFinal,
    pooled,
    done,
    isKnown,
    deliver,
    sent,
    restart,
    fork,
    happenings: (s, emit) => {
      chain(s, emit)
      nodes(s, emit)
      owners(s, emit)
      etcd(s, emit)
    },
    heal: (t) => {
      t[at.modes] = 0
      t.fill(0, at.lagging, at.lagging + 2 * lanes)
      t.fill(0, at.leaderStart, at.leadersEnd)
      restart(t, 0, false)
      t.fill(0, at.budgets, at.budgets + 2)
      t[at.backup] = 0
      t.fill(0, at.backupStore, at.backupStore + at.storeLength)
    },
    violation: (s) => word(s, at.violation),
    hasLedger,
  }
}
