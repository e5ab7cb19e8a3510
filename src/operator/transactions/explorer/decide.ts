import { callOf, laneOfId, nonceOfId, purposeOf, transactionId } from './codes.ts'
import { isFor } from './config.ts'
import type { LogRecord } from './log-records.ts'
import { OWNER, type State } from './state.ts'
import type { World } from './world.ts'

/** Where a leader's caches and its program counter stand in a state. */
export type Cache = World['at']['leaders'][number]

export type Reason =
  | 'moves'
  | 'no-record'
  | 'hindered'
  | 'full'
  | 'has-place'
  | 'settled'
  | 'too-many-remakes'
  | 'unaccounted'
  | 'not-final'
  | 'hole'
  | 'unknown-submission'
  | 'done-elsewhere'
  | 'no-answer'
  | 'no-key'
  | 'limit'

export type Decision =
  | { readonly is: 'take' | 'go-on'; readonly nonce: number }
  | { readonly is: 'follow'; readonly id: number }
  | { readonly is: 'none'; readonly why: Reason }

/**
 * What a leader reads and what it makes of it: one atomic look at its caches, the nodes, the staking API and the owners.
 * `isHealing`: a price stays above the owner's cap.
 */
export function createDecisions(world: World, isHealing: () => boolean) {
  const { config, log, at } = world
  const { lanes, nonces } = config
  const refuses = isFor(config, 'apiRefuses')
  const heirsCount = isFor(config, 'heirsCount')
  const hasLimit = isFor(config, 'limit')
  const countsPlaces = isFor(config, 'limitPlaces')
  const word = (s: State, index: number): number => s[index] ?? 0
  const ownerSeen = (s: State, cache: Cache, index: number): number =>
    config.lateOwners === true ? (word(s, cache.owners) >> (index * 2)) & 3 : world.owner(s, index)
  const isHindered = (s: State, cache: Cache, of: LogRecord): boolean =>
    ownerSeen(s, cache, of.owner) !== OWNER.active || (config.lowCap === true && of.purpose === 0 && isHealing())
  /** As `isHindered`, read past the cache. */
  const isHinderedNow = (s: State, of: LogRecord): boolean =>
    world.owner(s, of.owner) !== OWNER.active || (config.lowCap === true && of.purpose === 0 && isHealing())
  const isToldOrSent = (s: State, of: LogRecord): boolean => {
    const told = word(s, at.told + of.purpose)
    return told !== 0 && laneOfId(told) === of.lane && nonceOfId(told) === of.place
  }
  const somebodyWaits = (s: State, of: LogRecord): boolean => {
    if (log.places(word(s, at.store.places + of.lane)).highest > of.place) return true
    // Another resource of the same purpose, whose turn comes when nothing of this one can land.
    if (
      heirsCount &&
      config.wants.some((purpose, owner) => purpose === of.purpose && owner !== of.owner && world.owner(s, owner) === OWNER.active)
    )
      return true
    return [0, 1].some((purpose) => {
      const number = word(s, at.store.records + purpose)
      if (purpose === of.purpose || number === 0) return false
      const other = log.record(number)
      return other.lane === of.lane && other.mayTake === 'yes' && world.owner(s, other.owner) === OWNER.active
    })
  }
  /** The staking API takes another hash of the same sender and nonce, or when the earlier nonce is final with something else. */
  const isRefusedByApi = (s: State, purpose: number, lane: number, nonce: number): boolean => {
    const told = word(s, at.told + purpose)
    if (told === 0 || !refuses) return false
    const [oldLane, oldNonce] = [laneOfId(told), nonceOfId(told)]
    if (oldLane === lane && oldNonce === nonce) return false
    return oldNonce >= world.finalCount(s, oldLane) || purposeOf(world.mined(s, oldLane, oldNonce)) === purpose
  }
  /** A version of the call that was not used before, so that its hash is a new one. */
  const freshCode = (s: State, of: LogRecord, nonce: number, versions: number): number => {
    const used = versions | world.sent(s, of.lane, nonce)
    for (let version = 0; version < 3; version++) {
      const code = callOf(of.purpose, version)
      if ((used & (1 << code)) === 0 && word(s, at.told + of.purpose) !== transactionId(of.lane, nonce, code)) return code
    }
    return callOf(of.purpose, 2)
  }
  const lacksIt = (s: State, lane: number, nonce: number, code: number): boolean =>
    (world.mode(s, 0) !== 'down' && world.pooled(s, 0, lane, nonce) !== code) ||
    (world.mode(s, 1) !== 'down' && world.pooled(s, 1, lane, nonce) !== code)

  /** By the places of the cache, and the records for which they were taken, read past it where it has not seen them. */
  const isOverLimit = (s: State, cache: Cache, purpose: number, lane: number): boolean => {
    if (config.limit === undefined || !hasLimit) return false
    const places = word(s, cache.places + lane)
    const other = 1 - purpose
    const unaccounted = (number: number): readonly number[] =>
      [...log.places(places).places.keys()].filter(
        (nonce) => log.purposeAt(places, nonce) === other && (number === 0 || !log.accountsFor(places, nonce, number)),
      )
    const cached = word(s, cache.records + other)
    const number = countsPlaces && unaccounted(cached).length > 0 ? word(s, at.store.records + other) : cached
    if (number === 0) return false
    const everywhere = world.finalEverywhere(s, lane)
    const isClaimed = unaccounted(number).some(
      (nonce) => everywhere === undefined || nonce >= everywhere || purposeOf(world.mined(s, lane, nonce)) === other,
    )
    return log.isOverLimit(number, countsPlaces && isClaimed)
  }

  const decide = (s: State, cache: Cache, purpose: number): Decision => {
    const number = word(s, cache.records + purpose)
    if (number === 0) return { is: 'none', why: 'no-record' }
    const of = log.record(number)
    const { lane } = of
    if (of.isOpen && !world.hasKey(s, lane)) return { is: 'none', why: 'no-key' }
    if (of.mayTake !== 'yes') return { is: 'none', why: of.mayTake }
    if (isHindered(s, cache, of) || !world.hasKey(s, lane)) return { is: 'none', why: 'hindered' }
    const told = word(s, at.told + purpose)
    const words = log.testimony(number, told, told !== 0 && world.isKnown(s, told), world.done(s, purpose))
    if (typeof words === 'number') return { is: 'follow', id: words }
    if (words !== 'none') return { is: 'none', why: words }
    const places = word(s, cache.places + lane)
    if (isOverLimit(s, cache, purpose, lane)) return { is: 'none', why: 'limit' }
    const shown = world.counts(s, lane)
    if (shown === undefined) return { is: 'none', why: 'no-answer' }
    let forgotten = 0
    for (let each = 0; each < lanes; each++) {
      const count = log.forgotten(word(s, cache.places + each), number, world.finalEverywhere(s, each))
      if (count > 0 && !world.hasKey(s, each)) return { is: 'none', why: 'no-key' }
      forgotten += count
    }
    // The one that it goes on with is among them.
    for (const nonce of log.places(places).places.keys())
      if (forgotten <= 1 && log.purposeAt(places, nonce) === purpose && log.mayGoOn(places, nonce, number, shown))
        return { is: 'go-on', nonce }
    if (forgotten > 0) return { is: 'none', why: 'not-final' }
    const next = log.next(places, shown, word(s, at.acknowledged + lane))
    if (next.is !== 'free') return { is: 'none', why: next.is }
    return next.nonce >= nonces ? { is: 'none', why: 'full' } : { is: 'take', nonce: next.nonce }
  }

  return { decide, isRefusedByApi, ownerSeen, isHindered, isHinderedNow, isToldOrSent, somebodyWaits, freshCode, lacksIt }
}
