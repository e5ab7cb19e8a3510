import { type Hindrance, PATIENCE_MS } from '../protocol.ts'
import { isFor } from './config.ts'
import { type Cache, createDecisions, type Reason } from './decide.ts'
import { CANCEL, codeOfId, FOREIGN, LEDGER, type LogRecord, nonceOfId, purposeOf, transactionId } from './log.ts'
import { type Action, action } from './words.ts'
import { AT, type Emit, OWNER, type State, VIOLATION, type World } from './world.ts'

/**
 * What a leader may do next, one atomic step at a time: the product's program without its order. A read and the decision made of it are one step;
 * each write, each word to the staking API and each sending is one of its own, so that anything can happen between two.
 */
export interface Leaders {
  readonly steps: (s: State, emit: Emit) => void
  /** Why a leader with fresh caches does nothing for this purpose: `moves` when it can. */
  readonly reason: (s: State, purpose: number) => Reason
}
/** `isHealing`: a price stays above the owner's cap, and whether somebody waits is looked at; otherwise both are tried. */
export function createLeaders(world: World, isHealing: () => boolean): Leaders {
  const { config, log, at } = world
  const { lanes } = config
  const has = {
    fence: isFor(config, 'fence'),
    oneName: isFor(config, 'oneName'),
    placeNames: isFor(config, 'placeNames'),
    namedOnly: isFor(config, 'namedOnly'),
    freshOwner: isFor(config, 'freshOwner'),
    toldFirst: isFor(config, 'toldFirst'),
    allNodes: isFor(config, 'allNodes'),
    nobodyContradicts: isFor(config, 'nobodyContradicts'),
    cancels: isFor(config, 'cancels'),
    fillers: isFor(config, 'fillers'),
    holes: isFor(config, 'holes'),
    fillsUnnamed: isFor(config, 'fillsUnnamed'),
    freshUse: isFor(config, 'freshUse'),
    freshCancel: isFor(config, 'freshCancel'),
    placeMadeAgain: isFor(config, 'placeMadeAgain'),
    attemptWritten: isFor(config, 'attemptWritten'),
    importFirst: isFor(config, 'importFirst'),
    followed: isFor(config, 'followed'),
  }
  const looksForDoubles =
    config.setBack === undefined && config.pruneRecord === undefined && (config.handDelete === undefined || config.leaders === 1)
  const word = (s: State, index: number): number => s[index] ?? 0
  const tellsLate = config.toldAfter === true

  const { decide, isRefusedByApi, ownerSeen, isHindered, isHinderedNow, isToldOrSent, somebodyWaits, freshCode, lacksIt } = createDecisions(
    world,
    isHealing,
  )

  const writeRecord = (t: State, cache: Cache, number: number): void => {
    const { purpose } = log.record(number)
    t[at.store.records + purpose] = number
    t[cache.records + purpose] = number
  }
  const goTo = (t: State, cache: Cache, pc: number, base: number, nonce: number, code: number): void => {
    t[cache.pc] = pc
    t[cache.base] = pc === AT.idle ? 0 : base
    t[cache.nonce] = pc === AT.idle ? 0 : nonce
    t[cache.code] = pc === AT.idle ? 0 : code
  }
  const idle = (t: State, cache: Cache): void => goTo(t, cache, AT.idle, 0, 0, 0)
  /** What comes between a version that is written down and its first sending. */
  const afterOwner = tellsLate || !has.toldFirst ? AT.send : AT.tell
  const afterNaming = has.freshOwner ? AT.readOwner : afterOwner

  /** @returns whether there was a number left for it */
  const createRecord = (t: State, s: State, cache: Cache, purpose: number, owner: number): boolean => {
    const uid = ((word(s, at.uids) >> (purpose * 3)) & 7) + 1
    if (uid > 6) return false
    t[at.uids] = word(s, at.uids) + (1 << (purpose * 3))
    writeRecord(t, cache, log.create(purpose, uid, owner, world.laneOf(s, owner)))
    return true
  }

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
      at.leaders.forEach((other, index) => {
        if (index !== leader && word(s, other.pc) === AT.idle) t[other.pc] = AT.catchUp
      })
    emit(t, action('dropLedger', leader))
  }

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

  /** The record of a purpose, as far as it takes its places in this lane; 0 for none. */
  const recordIn = (s: State, cache: Cache, lane: number, purpose: number): number => {
    const number = purpose < 0 ? 0 : word(s, cache.records + purpose)
    return number !== 0 && log.record(number).lane === lane ? number : 0
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

  /** The log is read past the caches. */
  const catchUp = (s: State, leader: number, cache: Cache, emit: Emit): void => {
    const t = world.fork(s)
    for (let purpose = 0; purpose < 2; purpose++) t[cache.records + purpose] = word(s, at.store.records + purpose)
    for (let lane = 0; lane < lanes; lane++) t[cache.places + lane] = word(s, at.store.places + lane)
    idle(t, cache)
    emit(t, action('catchUp', leader))
  }

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
        if ((word(s, cache.code) & 16) !== 0 && code !== CANCEL) t[at.violation] = VIOLATION.signedAgainstOwner
        const isTold = word(s, at.told + purpose) === transactionId(lane, nonce, code)
        if (tellsLate && code !== CANCEL && !isTold && has.toldFirst) goTo(t, cache, AT.tellAfter, base, nonce, code)
        else idle(t, cache)
        by = action('send', leader, lane, nonce, code)
      }
    }
    emit(t, by)
  }
  return {
    steps: (s, emit) => {
      const active = isHealing() ? 1 : at.leaders.length
      for (let leader = 0; leader < active; leader++) {
        const cache = at.leaders[leader]
        if (cache === undefined) continue
        if (word(s, cache.pc) === AT.idle) {
          forOwners(s, leader, cache, emit)
          if (world.hasLedger(s)) {
            forLedger(s, leader, cache, emit)
            if (has.importFirst) continue
          }
          forPlaces(s, leader, cache, emit)
          forRecords(s, leader, cache, emit)
          forLanes(s, leader, cache, emit)
        } else {
          if (word(s, cache.pc) === AT.catchUp) catchUp(s, leader, cache, emit)
          else goOn(s, leader, cache, emit)
          if (world.budget(s, 'crash') > 0) {
            const t = world.fork(s)
            world.spend(t, 'crash')
            world.restart(t, leader)
            emit(t, action('crash', leader))
          }
        }
        refresh(s, leader, cache, emit)
      }
    },
    reason: (s, purpose) => {
      const cache = at.leaders[0]
      if (cache === undefined) return 'no-record'
      const decision = decide(s, cache, purpose)
      return decision.is === 'none' ? decision.why : 'moves'
    },
  }

  function refresh(s: State, leader: number, cache: Cache, emit: Emit): void {
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
}
