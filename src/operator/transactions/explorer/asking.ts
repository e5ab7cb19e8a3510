import { codeOfId, nonceOfId } from './codes.ts'
import type { Cache } from './decide.ts'
import type { Ground } from './ground.ts'
import { AT, type Emit, OWNER, type State } from './state.ts'
import { action } from './words.ts'

/** What a leader does for owners: their records are made, or pass to them, and take places. */
export function createAsking(ground: Ground) {
  const { world, config, log, at, word, has, ownerSeen, decide, createRecord, writeRecord, goTo } = ground
  const forOwners = (s: State, leader: number, cache: Cache, emit: Emit): void => {
    config.wants.forEach((purpose, owner) => {
      if (purpose < 0 || ownerSeen(s, cache, owner) !== OWNER.active) return
      const number = word(s, cache.records + purpose)
      if (number === 0) {
        const stored = word(s, at.store.records + purpose)
        const t = world.fork(s)
        if (stored !== 0 && has.oneName) t[cache.records + purpose] = stored
        else if (!createRecord(t, s, cache, purpose, owner)) return
        emit(t, action('createRecord', leader, owner, purpose, stored !== 0 && has.oneName ? 1 : 0))
        return
      }
      const of = log.record(number)
      const before = world.owner(s, of.owner)
      const isGone =
        (of.owner !== owner && (before === OWNER.deleted || before === OWNER.absent)) ||
        (of.owner === owner && of.lane !== world.laneOf(s, owner))
      if (!isGone || !of.mayBeHandedOver) return
      if (has.fence && word(s, at.store.records + purpose) !== number) return
      const t = world.fork(s)
      writeRecord(t, cache, log.handOver(number, owner, world.laneOf(s, owner)))
      emit(t, action('handOver', leader, owner, purpose))
    })
  }

  const forPlaces = (s: State, leader: number, cache: Cache, emit: Emit): void => {
    for (let purpose = 0; purpose < 2; purpose++) {
      const decision = decide(s, cache, purpose)
      if (decision.is === 'none') continue
      const number = word(s, cache.records + purpose)
      const { lane } = log.record(number)
      const t = world.fork(s)
      if (decision.is === 'follow') {
        if (has.fence && word(s, at.store.records + purpose) !== number) continue
        writeRecord(t, cache, log.name(number, nonceOfId(decision.id), codeOfId(decision.id), true))
        emit(t, action('follow', leader, lane, nonceOfId(decision.id), codeOfId(decision.id)))
      } else {
        goTo(t, cache, decision.is === 'take' ? AT.createPlace : AT.namePlace, number, decision.nonce, 0)
        emit(t, action(decision.is === 'take' ? 'decide' : 'goOn', leader, lane, decision.nonce, purpose))
      }
    }
  }

  return { forOwners, forPlaces }
}
