import { isFor } from './config.ts'
import { type Cache, createDecisions } from './decide.ts'
import { AT, type State } from './state.ts'
import type { World } from './world.ts'

/** What all steps of a leader work with. `isHealing`: a price stays above the owner's cap, and whether somebody waits is looked at; otherwise both are tried. */
export type Ground = ReturnType<typeof createGround>

export function createGround(world: World, isHealing: () => boolean) {
  const { config, log, at } = world
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
  const word = (s: State, index: number): number => s[index] ?? 0
  const tellsLate = config.toldAfter === true

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

  /** The record of a purpose, as far as it takes its places in this lane; 0 for none. */
  const recordIn = (s: State, cache: Cache, lane: number, purpose: number): number => {
    const number = purpose < 0 ? 0 : word(s, cache.records + purpose)
    return number !== 0 && log.record(number).lane === lane ? number : 0
  }

  return {
    ...createDecisions(world, isHealing),
    world,
    config,
    log,
    at,
    isHealing,
    lanes: config.lanes,
    has,
    word,
    tellsLate,
    afterOwner,
    afterNaming,
    writeRecord,
    goTo,
    idle,
    createRecord,
    recordIn,
  }
}
