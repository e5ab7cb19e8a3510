import { type Config, isFor, type Rules } from './config.ts'
import type { Fields } from './fields.ts'
import type { Log } from './log.ts'
import type { NodeViews } from './node-views.ts'
import { BEGUN, type Emit, type Layout, OWNER, SET_BACK, type State } from './state.ts'
import { action } from './words.ts'

/** What happens to etcd and what stands in it, and what a person acknowledges. */
export function createEtcdHappenings(
  config: Config,
  rules: Rules,
  at: Layout,
  log: Log,
  { word, budget, spend, owner, fork, copyStore, restart }: Fields,
  { counts, finalEverywhere }: NodeViews,
): (s: State, emit: Emit) => void {
  const { lanes } = config
  const etcd = (s: State, emit: Emit): void => {
    if (budget(s, 'setBack') > 0) {
      if (word(s, at.backup) === 0) {
        const t = fork(s)
        t[at.backup] = BEGUN
        copyStore(t, 0, at.backupStore)
        emit(t, action('backup'))
      } else {
        const t = fork(s)
        spend(t, 'setBack')
        copyStore(t, at.backupStore, 0)
        t[at.backup] = 0
        t.fill(0, at.backupStore, at.backupStore + at.storeLength)
        t[at.flags] = word(t, at.flags) | SET_BACK
        if (isFor(config, 'endsWhenSetBack')) for (let leader = 0; leader < at.leaders.length; leader++) restart(t, leader)
        emit(t, action('setBack'))
      }
    }
    for (let lane = 0; lane < lanes; lane++) {
      const { number, highest } = log.places(word(s, at.store.places + lane))
      if (budget(s, 'handDelete') === 0 || highest < 0) continue
      const t = fork(s)
      spend(t, 'handDelete')
      t[at.store.places + lane] = log.withoutPlace(number, highest)
      emit(t, action('handDelete', 0, lane, highest))
    }
    if (budget(s, 'pruneRecord') > 0)
      for (let purpose = 0; purpose < 2; purpose++) {
        const number = word(s, at.store.records + purpose)
        if (number === 0 || !mayGo(s, number)) continue
        const t = fork(s)
        spend(t, 'pruneRecord')
        t[at.store.records + purpose] = 0
        emit(t, action('pruneRecord', 0, purpose))
      }
    if (budget(s, 'acknowledge') > 0)
      for (let lane = 0; lane < lanes; lane++) {
        const shown = counts(s, lane)
        if (shown === undefined) continue
        const upTo = Math.max(shown.latest, shown.pending)
        if (upTo <= word(s, at.acknowledged + lane)) continue
        const t = fork(s)
        spend(t, 'acknowledge')
        t[at.acknowledged + lane] = upTo
        emit(t, action('acknowledge', 0, lane, upTo))
      }
  }

  /** Whether a record may be pruned: nothing of it can land, and no place that was taken for it is left unaccounted. */
  function mayGo(s: State, number: number): boolean {
    const { record, lane, isLanded, owner: by } = log.record(number)
    if (!isFor(config, 'recordPruned')) return isLanded
    // What has landed is pruned here even while its owner is there, which is more than the product does.
    if (!isLanded && [OWNER.active, OWNER.suspended].includes(owner(s, by) as 1 | 2)) return false
    if (!rules.recordMayBePruned(record, finalEverywhere(s, lane))) return false
    for (let each = 0; each < lanes; each++)
      if (log.forgotten(word(s, at.store.places + each), number, finalEverywhere(s, each)) > 0) return false
    return true
  }

  return etcd
}
