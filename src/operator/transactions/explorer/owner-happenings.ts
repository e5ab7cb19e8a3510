import type { Config } from './config.ts'
import type { Fields } from './fields.ts'
import type { Log } from './log.ts'
import { type Emit, type Layout, OWNER, ROTATED, type State } from './state.ts'
import { action } from './words.ts'

/** What becomes of owners and of the signer's key. */
export function createOwnerHappenings(config: Config, at: Layout, log: Log, fields: Fields): (s: State, emit: Emit) => void {
  const { word, budget, spend, owner, setOwner, isRotated, finalCount, fork } = fields
  const owners = (s: State, emit: Emit): void => {
    if (budget(s, 'owner') === 0) return
    const become = (index: number, to: number): void => {
      const t = fork(s)
      spend(t, 'owner')
      setOwner(t, index, to)
      emit(t, action('owner', 0, index, to))
    }
    if (owner(s, 0) === OWNER.active) {
      become(0, OWNER.suspended)
      become(0, OWNER.deleted)
    }
    if (owner(s, 0) === OWNER.suspended) become(0, OWNER.active)
    if (owner(s, 2) === OWNER.absent && config.wants[2] >= 0 && owner(s, 0) === OWNER.deleted) become(2, OWNER.active)
    if (config.rotates === true && !isRotated(s) && !hasOpenPlace(s, 0)) {
      const t = fork(s)
      spend(t, 'owner')
      t[at.flags] = word(t, at.flags) | ROTATED
      emit(t, action('rotate'))
    }
  }
  /** The signer's finalizer waits for these. */
  const hasOpenPlace = (s: State, lane: number): boolean =>
    log.places(word(s, at.store.places + lane)).highest >= finalCount(s, lane) ||
    [0, 1].some((purpose) => {
      const number = word(s, at.store.records + purpose)
      return number !== 0 && log.record(number).lane === lane && log.record(number).isOpen
    })

  return owners
}
