import { type Config, type Faults, faultNames, isFor, NODE_MODES, type NodeMode } from './config.ts'
import { AT, type Layout, ROTATED, type State } from './state.ts'

/** What stands where in a state, read and written. */
export type Fields = ReturnType<typeof createFields>

export function createFields(config: Config, at: Layout) {
  const { lanes, nonces } = config
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

  const scratch: State = new Uint16Array(at.length)
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

  return {
    word,
    nibble,
    setNibble,
    budget,
    spend,
    modeNumber,
    mode,
    setMode,
    owner,
    setOwner,
    isRotated,
    hasKey,
    laneOf,
    mined,
    minedCount,
    finalCount,
    pooled,
    sent,
    fork,
    copyStore,
    restart,
  }
}
