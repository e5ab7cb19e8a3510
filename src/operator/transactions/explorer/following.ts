import { CANCEL } from './codes.ts'
import { createConcluding } from './concluding.ts'
import type { Cache } from './decide.ts'
import type { Ground } from './ground.ts'
import type { LogRecord } from './log-records.ts'
import { AT, type Emit, type State } from './state.ts'
import { action } from './words.ts'

/** What a leader does with records that have a place: they are concluded, sent again, bumped, cancelled. */
export function createFollowing(ground: Ground) {
  const {
    world,
    config,
    log,
    at,
    isHealing,
    word,
    has,
    afterNaming,
    writeRecord,
    goTo,
    isHindered,
    isHinderedNow,
    isRefusedByApi,
    isToldOrSent,
    somebodyWaits,
    freshCode,
    lacksIt,
  } = ground
  const conclude = createConcluding(ground)

  const forRecords = (s: State, leader: number, cache: Cache, emit: Emit): void => {
    for (let purpose = 0; purpose < 2; purpose++) {
      const number = word(s, cache.records + purpose)
      if (number === 0) continue
      const of = log.record(number)
      const { lane, place } = of
      if (place < 0) continue
      const isFresh = !has.fence || word(s, at.store.records + purpose) === number
      const places = word(s, cache.places + lane)
      if (has.placeMadeAgain && log.isMissing(places, number) && log.isMissing(word(s, at.store.places + lane), number)) {
        const t = world.fork(s)
        const made = log.withPlaceFor(word(s, at.store.places + lane), place, number)
        t[at.store.places + lane] = made
        t[cache.places + lane] = made
        emit(t, action('makeAgain', leader, lane, place))
      }
      if (isFresh) conclude(s, leader, cache, of, emit)
      const shown = world.counts(s, lane)
      if (of.isSettled) {
        const without = shown === undefined ? number : log.takenBack(number, shown)
        if (!isFresh || without === number) continue
        const t = world.fork(s)
        writeRecord(t, cache, without)
        emit(t, action('takeBack', leader, lane, place))
        continue
      }
      if (!world.hasKey(s, lane)) continue
      const hindered = isHindered(s, cache, of)
      if (place >= world.minedCount(s, lane) && of.last !== 0 && lacksIt(s, lane, place, of.last)) {
        const t = world.fork(s)
        if (of.isCancelling) goTo(t, cache, AT.send, number, place, CANCEL)
        else goTo(t, cache, afterNaming, number, place, of.last)
        if (of.isCancelling || !hindered) emit(t, action('resume', leader, lane, place, of.last))
      }
      if (isFresh && world.budget(s, 'bump') > 0 && of.mayBump && !hindered) {
        const code = freshCode(s, of, place, of.versions)
        if ((of.versions & (1 << code)) === 0) {
          const t = world.fork(s)
          world.spend(t, 'bump')
          const written = has.attemptWritten ? log.attempt(number, code) : number
          if (has.attemptWritten) writeRecord(t, cache, written)
          goTo(t, cache, afterNaming, written, place, code)
          emit(t, action('bump', leader, lane, place, code))
        }
      }
      if (
        isFresh &&
        has.cancels &&
        !of.isCancelling &&
        of.mayCancel &&
        wantsCancel(s, of, has.freshCancel ? isHinderedNow(s, of) : hindered)
      ) {
        const t = world.fork(s)
        const written = log.attempt(number, CANCEL)
        writeRecord(t, cache, written)
        if (config.lateOwners === true && has.freshCancel) t[cache.owners] = word(s, at.owners)
        goTo(t, cache, AT.send, written, place, CANCEL)
        emit(t, action('cancel', leader, lane, place))
      }
    }
  }
  const wantsCancel = (s: State, of: LogRecord, hindered: boolean): boolean =>
    world.rules.wish(of.record, {
      hindrance:
        hindered || isRefusedByApi(s, of.purpose, of.lane, of.place) || (config.lowCap === true && of.purpose === 0) ? 'lasting' : 'none',
      maybeSent: isToldOrSent(s, of),
      somebodyWaits: isHealing() ? somebodyWaits(s, of) : true,
      hinderedMs: 0,
    }) === 'cancel'

  return forRecords
}
