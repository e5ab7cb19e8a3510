import type { Counts } from '../protocol.ts'
import { type Config, type Faults, faultNames, isFor, NODE_MODES, type NodeMode, type Rules } from './config.ts'
import { codeOfId, createLog, FOREIGN, LEDGER, type Log, laneOfId, nonceOfId, purposeOf, revertOf } from './log.ts'
import { type Action, action } from './words.ts'

/**
 * The world around the leaders: etcd, two nodes with their pools, the chain, the staking API, the owners. A state is an array of 16-bit words; the
 * accessors here say where each thing stands in it.
 */
export type State = Uint16Array

export const OWNER = { absent: 0, active: 1, suspended: 2, deleted: 3 } as const

/** Leaders' program counters: what one does next. */
export const AT = { idle: 0, createPlace: 1, namePlace: 2, readOwner: 3, tell: 4, send: 5, tellAfter: 6, catchUp: 7 } as const

/** What a state must never show. */
export const VIOLATION = { none: 0, paidTwice: 1, wrongReady: 2, oneNonceTwice: 3, signedAgainstOwner: 4 } as const

export interface World {
  readonly config: Config
  readonly rules: Rules
  readonly log: Log
  readonly stride: number
  readonly initial: () => State
  readonly at: ReturnType<typeof layout>
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
export type Emit = (t: State, by: Action) => void

/** Where each thing stands in a state. */
function layout({ lanes, nonces, leaders, ledger }: Config) {
  let word = 0
  const take = (count: number): number => {
    const at = word
    word += count
    return at
  }
  /** The ledger of an earlier version: 1 while it is there. */
  const store = { records: take(2), places: take(lanes), ledger: take(ledger === true ? 1 : 0) }
  const storeEnd = word
  const leaderAt = Array.from({ length: leaders }, () => ({
    records: take(2),
    places: take(lanes),
    owners: take(1),
    pc: take(1),
    base: take(1),
    nonce: take(1),
    code: take(1),
  }))
  const leadersEnd = word
  return {
    store,
    storeLength: storeEnd,
    leaders: leaderAt,
    leaderStart: storeEnd,
    leadersEnd,
    /** Codes of what is mined, 4 bits for each nonce. */
    mined: take(lanes),
    /** Mined and final counts, 4 bits each. */
    counts: take(lanes),
    /** Codes of what was ever sent, a bit each. */
    sent: take(lanes * nonces),
    pools: take(2 * lanes),
    /** Mined and final counts at which a lagging node stands. */
    lagging: take(2 * lanes),
    modes: take(1),
    told: take(2),
    owners: take(1),
    uids: take(1),
    flags: take(1),
    acknowledged: take(lanes),
    budgets: take(2),
    backup: take(1),
    backupStore: take(storeEnd),
    violation: take(1),
    length: word,
  }
}

const ROTATED = 1
const SET_BACK = 2
const BEGUN = 1

export function createWorld(config: Config, rules: Rules): World {
  const at = layout(config)
  const log = createLog(config, rules)
  const { lanes, nonces } = config
  const modes = (config.nodeModes ?? []).map((mode) => NODE_MODES.indexOf(mode))
  const stride = at.length
  const faultNumber = new Map(faultNames.map((name, index) => [name, index]))
  const word = (s: State, index: number): number => s[index] ?? 0
  const nibble = (s: State, index: number, nonce: number): number => (word(s, index) >> (nonce * 4)) & 15
  const setNibble = (t: State, index: number, nonce: number, value: number): void => {
    t[index] = (word(t, index) & ~(15 << (nonce * 4))) | (value << (nonce * 4))
  }

  const budget = (s: State, fault: keyof Faults): number => {
    const index = faultNumber.get(fault) ?? 0
    return (word(s, at.budgets + (index >> 3)) >> ((index & 7) * 2)) & 3
  }
  const spend = (t: State, fault: keyof Faults): void => {
    const index = faultNumber.get(fault) ?? 0
    t[at.budgets + (index >> 3)] = word(t, at.budgets + (index >> 3)) - (1 << ((index & 7) * 2))
  }
  const modeNumber = (s: State, node: number): number => (word(s, at.modes) >> (node * 3)) & 7
  const mode = (s: State, node: number): NodeMode => NODE_MODES[modeNumber(s, node)] ?? 'ok'
  const setMode = (t: State, node: number, value: number): void => {
    t[at.modes] = (word(t, at.modes) & ~(7 << (node * 3))) | (value << (node * 3))
  }
  const owner = (s: State, index: number): number => (word(s, at.owners) >> (index * 2)) & 3
  const setOwner = (t: State, index: number, value: number): void => {
    t[at.owners] = (word(t, at.owners) & ~(3 << (index * 2))) | (value << (index * 2))
  }
  const isRotated = (s: State): boolean => (word(s, at.flags) & ROTATED) !== 0
  const hasKey = (s: State, lane: number): boolean => !(isRotated(s) && lane === 0)
  const laneOf = (s: State, index: number): number => (isRotated(s) ? 1 : (config.laneOf?.[index] ?? 0))
  const mined = (s: State, lane: number, nonce: number): number => nibble(s, at.mined + lane, nonce)
  const minedCount = (s: State, lane: number): number => word(s, at.counts + lane) & 15
  const finalCount = (s: State, lane: number): number => word(s, at.counts + lane) >> 4
  const pooled = (s: State, node: number, lane: number, nonce: number): number => nibble(s, at.pools + node * lanes + lane, nonce)
  const sent = (s: State, lane: number, nonce: number): number => word(s, at.sent + lane * nonces + nonce)

  const nodeMined = (s: State, node: number, lane: number): number =>
    mode(s, node) === 'lag' ? word(s, at.lagging + node * lanes + lane) & 15 : minedCount(s, lane)
  const nodePending = (s: State, node: number, lane: number): number => {
    let nonce = nodeMined(s, node, lane)
    while (nonce < nonces && pooled(s, node, lane, nonce) !== 0) nonce++
    return nonce
  }
  const nodeFinal = (s: State, node: number, lane: number): number => {
    switch (mode(s, node)) {
      case 'down':
        return -1
      case 'lag':
        return word(s, at.lagging + node * lanes + lane) >> 4
      case 'lie':
        return nodePending(s, node, lane)
      case 'ok':
      case 'fork':
        return finalCount(s, lane)
    }
  }
  const counts = (s: State, lane: number): Counts | undefined => {
    let final = -1
    let latest = -1
    let pending = -1
    for (let node = 0; node < 2; node++) {
      const how = mode(s, node)
      if (how === 'down') continue
      const counted = nodePending(s, node, lane)
      final = Math.max(final, nodeFinal(s, node, lane))
      latest = Math.max(latest, how === 'lie' ? counted : nodeMined(s, node, lane))
      pending = Math.max(pending, counted)
    }
    return final < 0 ? undefined : { final, latest, pending, finalEverywhere: finalEverywhere(s, lane) }
  }
  const finalEverywhere = (s: State, lane: number): number | undefined => {
    const [first, second] = [nodeFinal(s, 0, lane), nodeFinal(s, 1, lane)]
    return first < 0 || second < 0 ? undefined : Math.min(first, second)
  }
  const done = (s: State, purpose: number): number => {
    for (let node = 0; node < 2; node++) {
      if (mode(s, node) === 'down' || mode(s, node) === 'fork') continue
      for (let lane = 0; lane < lanes; lane++)
        for (let nonce = 0; nonce < nodeMined(s, node, lane); nonce++) {
          const code = mined(s, lane, nonce)
          if (purposeOf(code) === purpose) return 1 + ((lane * 4 + nonce) << 4) + code
        }
    }
    return 0
  }
  const isKnown = (s: State, id: number): boolean => {
    const [lane, nonce, code] = [laneOfId(id), nonceOfId(id), codeOfId(id)]
    for (let node = 0; node < 2; node++) {
      if (mode(s, node) === 'down') continue
      if (pooled(s, node, lane, nonce) === code) return true
      if (mode(s, node) !== 'fork' && nonce < nodeMined(s, node, lane) && mined(s, lane, nonce) === code) return true
    }
    return false
  }
  const deliver = (t: State, lane: number, nonce: number, code: number): void => {
    if (nonce < minedCount(t, lane)) return
    const index = at.sent + lane * nonces + nonce
    t[index] = word(t, index) | (1 << code)
    for (let node = 0; node < 2; node++) if (mode(t, node) !== 'down') setNibble(t, at.pools + node * lanes + lane, nonce, code)
  }
  const scratch: State = new Uint16Array(stride)
  const fork = (s: State): State => {
    scratch.set(s)
    return scratch
  }
  const copyStore = (t: State, from: number, to: number): void => {
    for (let index = 0; index < at.storeLength; index++) t[to + index] = word(t, from + index)
  }
  /** A leader begins anew: nothing under way, caches as the store is, or, for a late start, as before anything was done. */
  const restart = (t: State, leader: number, isLate = config.lateStart === true): void => {
    const where = at.leaders[leader]
    if (where === undefined) return
    for (let index = 0; index < 2; index++) t[where.records + index] = isLate ? 0 : word(t, at.store.records + index)
    for (let lane = 0; lane < lanes; lane++) t[where.places + lane] = isLate ? 0 : word(t, at.store.places + lane)
    t[where.owners] = config.lateOwners === true ? word(t, at.owners) : 0
    t[where.pc] = isLate && isFor(config, 'freshStart') ? AT.catchUp : AT.idle
    t[where.base] = 0
    t[where.nonce] = 0
    t[where.code] = 0
  }

  const chain = (s: State, emit: Emit): void => {
    for (let lane = 0; lane < lanes; lane++) {
      const nonce = minedCount(s, lane)
      const final = finalCount(s, lane)
      if (nonce < nonces) {
        const bits = sent(s, lane, nonce)
        for (let code = 1; code <= FOREIGN; code++) {
          if ((bits & (1 << code)) === 0) continue
          mine(s, lane, nonce, code, code, emit)
          if (budget(s, 'revert') > 0 && purposeOf(code) >= 0) mine(s, lane, nonce, revertOf(purposeOf(code)), code, emit)
        }
      }
      if (budget(s, 'reorg') > 0 && nonce > final) {
        const t = fork(s)
        spend(t, 'reorg')
        t[at.counts + lane] = word(t, at.counts + lane) - 1
        setNibble(t, at.mined + lane, nonce - 1, 0)
        emit(t, action('reorg', 0, lane, nonce - 1))
      }
      if (final < nonce) {
        const t = fork(s)
        t[at.counts + lane] = word(t, at.counts + lane) + 16
        t[at.sent + lane * nonces + final] = 0
        for (let node = 0; node < 2; node++) setNibble(t, at.pools + node * lanes + lane, final, 0)
        emit(t, action('finalize', 0, lane, final, mined(s, lane, final)))
      }
    }
  }
  const mine = (s: State, lane: number, nonce: number, code: number, sentCode: number, emit: Emit): void => {
    const t = fork(s)
    if (code !== sentCode) spend(t, 'revert')
    t[at.counts + lane] = word(t, at.counts + lane) + 1
    setNibble(t, at.mined + lane, nonce, code)
    const purpose = purposeOf(code)
    if (purpose >= 0) {
      let landed = 0
      for (let l = 0; l < lanes; l++) for (let n = 0; n < minedCount(t, l); n++) if (purposeOf(mined(t, l, n)) === purpose) landed++
      if (landed > 1) t[at.violation] = VIOLATION.paidTwice
    }
    emit(t, action('mine', 0, lane, nonce, code))
  }

  const nodes = (s: State, emit: Emit): void => {
    for (let node = 0; node < 2; node++) {
      if (modeNumber(s, node) !== 0) {
        const t = fork(s)
        setMode(t, node, 0)
        for (let lane = 0; lane < lanes; lane++) t[at.lagging + node * lanes + lane] = 0
        emit(t, action('node', 0, node, 0))
      } else if (budget(s, 'node') > 0 && modeNumber(s, 1 - node) === 0)
        for (const to of modes) {
          const t = fork(s)
          spend(t, 'node')
          setMode(t, node, to)
          if (NODE_MODES[to] === 'lag')
            for (let lane = 0; lane < lanes; lane++) t[at.lagging + node * lanes + lane] = word(s, at.counts + lane)
          emit(t, action('node', 0, node, to))
        }
      if (budget(s, 'drop') > 0) {
        let holds = 0
        for (let lane = 0; lane < lanes; lane++) holds |= word(s, at.pools + node * lanes + lane)
        if (holds === 0) continue
        const t = fork(s)
        spend(t, 'drop')
        for (let lane = 0; lane < lanes; lane++) t[at.pools + node * lanes + lane] = 0
        emit(t, action('drop', 0, node))
      }
    }
    if (budget(s, 'foreign') > 0) {
      const nonce = Math.max(nodePending(s, 0, 0), nodePending(s, 1, 0))
      if (nonce < nonces) {
        const t = fork(s)
        spend(t, 'foreign')
        deliver(t, 0, nonce, FOREIGN)
        emit(t, action('foreign', 0, 0, nonce))
      }
    }
  }

  const owners = (s: State, emit: Emit): void => {
    if (budget(s, 'owner') === 0) return
    const become = (index: number, to: number): void => {
      const t = fork(s)
      spend(t, 'owner')
      setOwner(t, index, to)
      emit(t, action('owner', 0, index, to))
    }
    if (owner(s, 0) === OWNER.active) {
      become(0, OWNER.suspended)
      become(0, OWNER.deleted)
    }
    if (owner(s, 0) === OWNER.suspended) become(0, OWNER.active)
    if (owner(s, 2) === OWNER.absent && config.wants[2] >= 0 && owner(s, 0) === OWNER.deleted) become(2, OWNER.active)
    if (config.rotates === true && !isRotated(s) && !hasOpenPlace(s, 0)) {
      const t = fork(s)
      spend(t, 'owner')
      t[at.flags] = word(t, at.flags) | ROTATED
      emit(t, action('rotate'))
    }
  }
  /** The signer's finalizer waits for these. */
  const hasOpenPlace = (s: State, lane: number): boolean =>
    log.places(word(s, at.store.places + lane)).highest >= finalCount(s, lane) ||
    [0, 1].some((purpose) => {
      const number = word(s, at.store.records + purpose)
      return number !== 0 && log.record(number).lane === lane && log.record(number).isOpen
    })

  const hasLedger = (s: State): boolean => config.ledger === true && word(s, at.store.ledger) !== 0
  /** What was sent long ago comes to light. */
  const shown = (s: State, emit: Emit): void => {
    if (config.ledger !== true) return
    for (const { nonce, code } of LEDGER) {
      if (nonce < minedCount(s, 0) || pooled(s, 0, 0, nonce) !== 0 || pooled(s, 1, 0, nonce) !== 0) continue
      if ((sent(s, 0, nonce) & (1 << code)) === 0) continue
      const t = fork(s)
      deliver(t, 0, nonce, code)
      emit(t, action('shown', 0, 0, nonce))
    }
  }

  const etcd = (s: State, emit: Emit): void => {
    if (budget(s, 'setBack') > 0) {
      if (word(s, at.backup) === 0) {
        const t = fork(s)
        t[at.backup] = BEGUN
        copyStore(t, 0, at.backupStore)
        emit(t, action('backup'))
      } else {
        const t = fork(s)
        spend(t, 'setBack')
        copyStore(t, at.backupStore, 0)
        t[at.backup] = 0
        t.fill(0, at.backupStore, at.backupStore + at.storeLength)
        t[at.flags] = word(t, at.flags) | SET_BACK
        if (isFor(config, 'endsWhenSetBack')) for (let leader = 0; leader < at.leaders.length; leader++) restart(t, leader)
        emit(t, action('setBack'))
      }
    }
    for (let lane = 0; lane < lanes; lane++) {
      const { number, highest } = log.places(word(s, at.store.places + lane))
      if (budget(s, 'handDelete') === 0 || highest < 0) continue
      const t = fork(s)
      spend(t, 'handDelete')
      t[at.store.places + lane] = log.withoutPlace(number, highest)
      emit(t, action('handDelete', 0, lane, highest))
    }
    if (budget(s, 'pruneRecord') > 0)
      for (let purpose = 0; purpose < 2; purpose++) {
        const number = word(s, at.store.records + purpose)
        if (number === 0 || !mayGo(s, number)) continue
        const t = fork(s)
        spend(t, 'pruneRecord')
        t[at.store.records + purpose] = 0
        emit(t, action('pruneRecord', 0, purpose))
      }
    if (budget(s, 'acknowledge') > 0)
      for (let lane = 0; lane < lanes; lane++) {
        const shown = counts(s, lane)
        if (shown === undefined) continue
        const upTo = Math.max(shown.latest, shown.pending)
        if (upTo <= word(s, at.acknowledged + lane)) continue
        const t = fork(s)
        spend(t, 'acknowledge')
        t[at.acknowledged + lane] = upTo
        emit(t, action('acknowledge', 0, lane, upTo))
      }
  }

  /** Whether a record may be pruned: nothing of it can land, and no place that was taken for it is left unaccounted. */
  function mayGo(s: State, number: number): boolean {
    const { record, lane, isLanded, owner: by } = log.record(number)
    if (!isFor(config, 'recordPruned')) return isLanded
    // What has landed is pruned here even while its owner is there, which is more than the product does.
    if (!isLanded && [OWNER.active, OWNER.suspended].includes(owner(s, by) as 1 | 2)) return false
    if (!rules.recordMayBePruned(record, finalEverywhere(s, lane))) return false
    for (let each = 0; each < lanes; each++)
      if (log.forgotten(word(s, at.store.places + each), number, finalEverywhere(s, each)) > 0) return false
    return true
  }

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
      shown(s, emit)
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
