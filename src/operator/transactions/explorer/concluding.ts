import { CANCEL, FOREIGN, purposeOf } from './codes.ts'
import type { Cache } from './decide.ts'
import type { Ground } from './ground.ts'
import type { LogRecord } from './log-records.ts'
import { type Emit, type State, VIOLATION } from './state.ts'
import { action } from './words.ts'

/** What a leader concludes from what the nodes show under a record's place. */
export function createConcluding(ground: Ground) {
  const { world, log, at, has, writeRecord } = ground
  const conclude = (s: State, leader: number, cache: Cache, of: LogRecord, emit: Emit): void => {
    const { lane, place } = of
    const sees = [0, 1].map(
      (node) => world.mode(s, node) !== 'fork' && world.nodeFinal(s, node, lane) > place && world.finalCount(s, lane) > place,
    )
    const forks = [0, 1].map((node) => world.mode(s, node) === 'fork')
    const isSeen = sees.some((it) => it)
    const write = (code: number, proven: boolean): void => {
      const conclusion = log.conclude(of.number, code, proven || !has.allNodes)
      if (conclusion.is === 'unproven' || conclusion.record === of.number) return
      const t = world.fork(s)
      writeRecord(t, cache, conclusion.record)
      // A node that stands alone with its fork can't be told from an honest one: what it says is looked at again later.
      const isTrue = world.finalCount(s, lane) > place && purposeOf(world.mined(s, lane, place)) === of.purpose
      if (conclusion.isLanded && !isTrue && isSeen) t[at.violation] = VIOLATION.wrongReady
      emit(t, action('conclude', leader, lane, place, code))
    }
    // A node on another fork may agree with what is final elsewhere, or not; what it alone says may be anything.
    if (isSeen)
      write(
        world.mined(s, lane, place),
        [0, 1].every((node) => sees[node] === true || forks[node] === true),
      )
    if (forks.some((it) => it) && (!isSeen || !has.nobodyContradicts))
      for (let code = 1; code <= FOREIGN; code++)
        if (code >= CANCEL || (of.versions & (1 << code)) !== 0 || purposeOf(code) === of.purpose) write(code, false)
  }

  return conclude
}
