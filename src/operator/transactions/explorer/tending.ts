import { type Hindrance, PATIENCE_MS } from '../protocol.ts'
import { CANCEL } from './codes.ts'
import type { Cache } from './decide.ts'
import type { Ground } from './ground.ts'
import type { Emit, State } from './state.ts'
import { action } from './words.ts'

/** What a leader does for lanes: holes are taken, fillers sent, places pruned. */
export function createTending(ground: Ground) {
  const { world, config, log, at, lanes, isHealing, word, has, recordIn, decide, lacksIt } = ground
  const forLanes = (s: State, leader: number, cache: Cache, emit: Emit): void => {
    for (let lane = 0; lane < lanes; lane++) {
      const places = word(s, cache.places + lane)
      const stored = word(s, at.store.places + lane)
      const shown = world.counts(s, lane)
      for (const nonce of log.places(places).places.keys()) {
        const purpose = log.purposeAt(places, nonce)
        const number = recordIn(s, cache, lane, purpose)
        if (has.fillers && world.hasKey(s, lane) && nonce >= world.minedCount(s, lane) && lacksIt(s, lane, nonce, CANCEL))
          if (isFilled(s, cache, lane, places, nonce, purpose)) {
            const t = world.fork(s)
            world.deliver(t, lane, nonce, CANCEL)
            emit(t, action('fill', leader, lane, nonce))
          }
        if (world.budget(s, 'prune') > 0) {
          const everywhere = world.finalEverywhere(s, lane)
          if (everywhere === undefined || !log.mayPrune(places, nonce, number, everywhere)) continue
          if (log.useKey(stored, nonce) !== log.useKey(places, nonce)) continue
          const t = world.fork(s)
          world.spend(t, 'prune')
          t[at.store.places + lane] = log.withoutPlace(stored, nonce)
          t[cache.places + lane] = log.withoutPlace(places, nonce)
          emit(t, action('prune', leader, lane, nonce))
        }
      }
      if (!has.holes || shown === undefined || !world.hasKey(s, lane)) continue
      for (const nonce of log.holes(places, shown)) {
        if (log.places(stored).places.has(nonce)) continue
        const t = world.fork(s)
        t[at.store.places + lane] = log.withPlaceFor(stored, nonce, 0)
        t[cache.places + lane] = log.withPlaceFor(places, nonce, 0)
        emit(t, action('makeHole', leader, lane, nonce))
      }
    }
  }

  const isFilled = (s: State, cache: Cache, lane: number, places: number, nonce: number, purpose: number): boolean => {
    // Read past the cache: what was behind is looked at again.
    if (purpose >= 0 && has.freshUse && word(s, cache.records + purpose) !== word(s, at.store.records + purpose)) return false
    if (purpose >= 0 && has.freshCancel && config.lateOwners === true && word(s, cache.owners) !== word(s, at.owners)) return false
    const isFollowed =
      has.followed &&
      [0, 1].some((other) => {
        const of = recordIn(s, cache, lane, other)
        return of !== 0 && log.record(of).isOpen && log.record(of).place === nonce
      })
    const use = log.use(places, nonce, recordIn(s, cache, lane, purpose), isFollowed)
    if (use === 'named') return false
    if (use === 'filler') return world.rules.isFilled(use, { hindrance: 'none', somebodyWaits: true, hinderedMs: 0 })
    return (
      has.fillsUnnamed &&
      world.rules.isFilled(use, { hindrance: hindranceOf(s, cache, purpose, nonce), somebodyWaits: true, hinderedMs: patience() })
    )
  }
  /** Why a record does not go on with its place. What passes by itself passes within the patience of those behind, unless all is over. */
  const hindranceOf = (s: State, cache: Cache, purpose: number, nonce: number): Hindrance => {
    const decision = decide(s, cache, purpose)
    if (decision.is === 'go-on' && decision.nonce === nonce) return 'none'
    return decision.is === 'none' && decision.why === 'not-final' ? 'passing' : 'lasting'
  }
  const patience = (): number => (isHealing() ? PATIENCE_MS : 0)

  return forLanes
}
