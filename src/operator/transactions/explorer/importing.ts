import { LEDGER, transactionId } from './codes.ts'
import { isFor } from './config.ts'
import type { Cache } from './decide.ts'
import type { Ground } from './ground.ts'
import { AT, type Emit, OWNER, type State } from './state.ts'
import { action } from './words.ts'

/** What a leader does of what an earlier version has left. */
export function createImporting(ground: Ground) {
  const { world, config, log, at, word, createRecord, writeRecord } = ground
  /** Takes over what an earlier version has signed, entry by entry and write by write; whoever comes after a crash goes on. */
  const forLedger = (s: State, leader: number, cache: Cache, emit: Emit): void => {
    const stored = word(s, at.store.places)
    for (const { nonce, purpose, code } of LEDGER) {
      const number = word(s, at.store.records + purpose)
      const isPlaced = log.places(stored).places.has(nonce)
      const t = world.fork(s)
      if (number === 0 && !isPlaced) {
        // Also for an owner that is suspended; of one that is gone only what a node shows.
        const owner = config.wants.indexOf(purpose)
        const isGone = world.owner(s, owner) === OWNER.deleted && !world.isKnown(s, transactionId(0, nonce, code))
        if (isGone) {
          t[at.store.places] = log.withLegacyFiller(stored, nonce, purpose)
          t[cache.places] = log.withLegacyFiller(word(s, cache.places), nonce, purpose)
          emit(t, action('importPlace', leader, 0, nonce))
        } else if (createRecord(t, s, cache, purpose, owner)) emit(t, action('createRecord', leader, owner, purpose))
        return
      }
      if (number === 0) continue
      if (!isPlaced) {
        t[at.store.places] = log.withPlaceFor(stored, nonce, number)
        t[cache.places] = log.withPlaceFor(word(s, cache.places), nonce, number)
        emit(t, action('importPlace', leader, 0, nonce))
        return
      }
      // Another's by now: what was signed for the one before is a claim, and its place says so.
      if (log.record(number).owner !== config.wants.indexOf(purpose)) continue
      const written = log.takeOver(number, stored, nonce, code)
      if (written === 0) continue
      writeRecord(t, cache, written)
      emit(t, action('importRecord', leader, 0, nonce))
      return
    }
    const t = world.fork(s)
    t[at.store.ledger] = 0
    // Whoever saw the ledger looks past the cache once it is gone.
    if (config.lateStart === true && isFor(config, 'freshStart'))
      for (const each of at.leaders) if (word(s, each.pc) === AT.idle) t[each.pc] = AT.catchUp
    emit(t, action('dropLedger', leader))
  }

  return forLedger
}
