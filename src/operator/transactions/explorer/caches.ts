import type { Cache } from './decide.ts'
import type { Ground } from './ground.ts'
import type { Emit, State } from './state.ts'
import { action } from './words.ts'

/** How a leader's caches come to be as the store is: by their watches, or read past them. */
export function createCaches({ world, config, at, lanes, word, idle }: Ground) {
  /** The log is read past the caches. */
  const catchUp = (s: State, leader: number, cache: Cache, emit: Emit): void => {
    const t = world.fork(s)
    for (let purpose = 0; purpose < 2; purpose++) t[cache.records + purpose] = word(s, at.store.records + purpose)
    for (let lane = 0; lane < lanes; lane++) t[cache.places + lane] = word(s, at.store.places + lane)
    idle(t, cache)
    emit(t, action('catchUp', leader))
  }

  const refresh = (s: State, leader: number, cache: Cache, emit: Emit): void => {
    if (word(s, cache.records) !== word(s, at.store.records) || word(s, cache.records + 1) !== word(s, at.store.records + 1)) {
      const t = world.fork(s)
      for (let purpose = 0; purpose < 2; purpose++) t[cache.records + purpose] = word(s, at.store.records + purpose)
      emit(t, action('refreshRecords', leader))
    }
    for (let lane = 0; lane < lanes; lane++) {
      if (word(s, cache.places + lane) === word(s, at.store.places + lane)) continue
      const t = world.fork(s)
      for (let each = 0; each < lanes; each++) t[cache.places + each] = word(s, at.store.places + each)
      emit(t, action('refreshPlaces', leader))
      break
    }
    if (config.lateOwners === true && word(s, cache.owners) !== word(s, at.owners)) {
      const t = world.fork(s)
      t[cache.owners] = word(s, at.owners)
      emit(t, action('refreshOwners', leader))
    }
  }

  return { catchUp, refresh }
}
