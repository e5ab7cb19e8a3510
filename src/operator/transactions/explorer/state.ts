import type { Config } from './config.ts'
import type { Action } from './words.ts'

/** A state of the world: an array of 16-bit words. */
export type State = Uint16Array
export type Emit = (t: State, by: Action) => void

export const OWNER = { absent: 0, active: 1, suspended: 2, deleted: 3 } as const

/** Leaders' program counters: what one does next. */
export const AT = { idle: 0, createPlace: 1, namePlace: 2, readOwner: 3, tell: 4, send: 5, tellAfter: 6, catchUp: 7 } as const

/** What a state must never show. */
export const VIOLATION = { none: 0, paidTwice: 1, wrongReady: 2, oneNonceTwice: 3, signedAgainstOwner: 4, overLimit: 5 } as const

/** Where each thing stands in a state. */
export type Layout = ReturnType<typeof layoutOf>
export function layoutOf({ lanes, nonces, leaders, ledger }: Config) {
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

/** Flags of a state. */
export const ROTATED = 1
export const SET_BACK = 2
export const BEGUN = 1
