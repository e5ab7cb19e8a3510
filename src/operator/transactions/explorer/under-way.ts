import { CANCEL, callOf, purposeOf, transactionId } from './codes.ts'
import type { Cache } from './decide.ts'
import type { Ground } from './ground.ts'
import { AT, type Emit, OWNER, type State, VIOLATION } from './state.ts'
import { type Action, action } from './words.ts'

/** The next step of what a leader has begun. */
export function createUnderWay(ground: Ground) {
  const { world, config, log, at, word, has, tellsLate, afterOwner, afterNaming, writeRecord, goTo, idle, isRefusedByApi, freshCode } =
    ground
  const looksForDoubles =
    config.setBack === undefined && config.pruneRecord === undefined && (config.handDelete === undefined || config.leaders === 1)

  /** What may land of a purpose, or has. */
  const counts = (t: State, purpose: number): boolean => {
    for (let lane = 0; lane < config.lanes; lane++)
      for (let nonce = 0; nonce < config.nonces; nonce++) {
        if (nonce < world.minedCount(t, lane)) {
          if (purposeOf(world.mined(t, lane, nonce)) === purpose) return true
        } else if ([0, 1, 2].some((version) => (world.sent(t, lane, nonce) & (1 << callOf(purpose, version))) !== 0)) return true
      }
    return false
  }
  const isOverLimit = (t: State): boolean =>
    config.limit !== undefined && [0, 1].filter((purpose) => counts(t, purpose)).length > config.limit

  /** The next step of what is under way. */
  const goOn = (s: State, leader: number, cache: Cache, emit: Emit): void => {
    const base = word(s, cache.base)
    const of = log.record(base)
    const { lane, purpose } = of
    const nonce = word(s, cache.nonce)
    const code = word(s, cache.code) & 15
    const t = world.fork(s)
    let by: Action
    switch (word(s, cache.pc)) {
      case AT.createPlace: {
        const stored = word(s, at.store.places + lane)
        const isThere = log.places(stored).places.has(nonce) && has.placeNames
        if (isThere) {
          t[cache.places + lane] = stored
          idle(t, cache)
        } else {
          t[at.store.places + lane] = log.withPlaceFor(stored, nonce, base)
          t[cache.places + lane] = log.withPlaceFor(word(s, cache.places + lane), nonce, base)
          if (has.namedOnly) goTo(t, cache, AT.namePlace, base, nonce, 0)
          else goTo(t, cache, afterNaming, base, nonce, freshCode(s, of, nonce, 0))
        }
        by = action('createPlace', leader, lane, nonce, isThere ? 1 : 0)
        break
      }
      case AT.namePlace: {
        const stored = word(s, at.store.records + purpose)
        const isConflict = has.fence ? stored !== base : stored === 0
        if (isConflict) {
          t[cache.records + purpose] = stored
          idle(t, cache)
        } else {
          const first = freshCode(s, of, nonce, 0)
          const written = log.name(base, nonce, first, false)
          writeRecord(t, cache, written)
          const mark = world.owner(s, of.owner) === OWNER.active ? 0 : 16
          goTo(t, cache, afterNaming, written, nonce, first | mark)
          const otherNumber = word(s, at.store.records + (1 - purpose))
          const other = otherNumber === 0 ? undefined : log.record(otherNumber)
          if (looksForDoubles && other?.isOpen === true && other.lane === lane && other.place === nonce)
            t[at.violation] = VIOLATION.oneNonceTwice
        }
        by = action('namePlace', leader, lane, nonce, isConflict ? 1 : 0)
        break
      }
      case AT.readOwner: {
        const isRefused = world.owner(s, of.owner) !== OWNER.active || !world.hasKey(s, lane)
        const isTold = word(s, at.told + purpose) === transactionId(lane, nonce, code)
        // What was read stays in the cache.
        if (config.lateOwners === true) t[cache.owners] = word(s, at.owners)
        if (isRefused) idle(t, cache)
        else goTo(t, cache, isTold ? AT.send : afterOwner, base, nonce, code)
        by = action('readOwner', leader, lane, nonce, isRefused ? 1 : 0)
        break
      }
      case AT.tell:
      case AT.tellAfter: {
        if (isRefusedByApi(s, purpose, lane, nonce)) idle(t, cache)
        else {
          t[at.told + purpose] = transactionId(lane, nonce, code)
          if (word(s, cache.pc) === AT.tell) goTo(t, cache, AT.send, base, nonce, word(s, cache.code))
          else idle(t, cache)
        }
        by = action('tell', leader, lane, nonce, code)
        break
      }
      default: {
        world.deliver(t, lane, nonce, code)
        if (isOverLimit(t)) t[at.violation] = VIOLATION.overLimit
        if ((word(s, cache.code) & 16) !== 0 && code !== CANCEL) t[at.violation] = VIOLATION.signedAgainstOwner
        const isTold = word(s, at.told + purpose) === transactionId(lane, nonce, code)
        if (tellsLate && code !== CANCEL && !isTold && has.toldFirst) goTo(t, cache, AT.tellAfter, base, nonce, code)
        else idle(t, cache)
        by = action('send', leader, lane, nonce, code)
      }
    }
    emit(t, by)
  }

  return goOn
}
