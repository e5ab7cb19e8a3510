import { FOREIGN, LEDGER, purposeOf, revertOf } from './codes.ts'
import type { Config } from './config.ts'
import type { Fields } from './fields.ts'
import type { NodeViews } from './node-views.ts'
import { type Emit, type Layout, type State, VIOLATION } from './state.ts'
import { action } from './words.ts'

/** What happens on the chain: blocks, reorgs, finality, and what an earlier version has sent. */
export function createChainHappenings(config: Config, at: Layout, fields: Fields, { deliver }: NodeViews): (s: State, emit: Emit) => void {
  const { lanes, nonces } = config
  const { word, setNibble, budget, spend, mined, minedCount, finalCount, pooled, sent, fork } = fields
  const chain = (s: State, emit: Emit): void => {
    for (let lane = 0; lane < lanes; lane++) {
      const nonce = minedCount(s, lane)
      const final = finalCount(s, lane)
      if (nonce < nonces) {
        const bits = sent(s, lane, nonce)
        for (let code = 1; code <= FOREIGN; code++) {
          if ((bits & (1 << code)) === 0) continue
          mine(s, lane, nonce, code, code, emit)
          if (budget(s, 'revert') > 0 && purposeOf(code) >= 0) mine(s, lane, nonce, revertOf(purposeOf(code)), code, emit)
        }
      }
      if (budget(s, 'reorg') > 0 && nonce > final) {
        const t = fork(s)
        spend(t, 'reorg')
        t[at.counts + lane] = word(t, at.counts + lane) - 1
        setNibble(t, at.mined + lane, nonce - 1, 0)
        emit(t, action('reorg', 0, lane, nonce - 1))
      }
      if (final < nonce) {
        const t = fork(s)
        t[at.counts + lane] = word(t, at.counts + lane) + 16
        t[at.sent + lane * nonces + final] = 0
        for (let node = 0; node < 2; node++) setNibble(t, at.pools + node * lanes + lane, final, 0)
        emit(t, action('finalize', 0, lane, final, mined(s, lane, final)))
      }
    }
  }
  const mine = (s: State, lane: number, nonce: number, code: number, sentCode: number, emit: Emit): void => {
    const t = fork(s)
    if (code !== sentCode) spend(t, 'revert')
    t[at.counts + lane] = word(t, at.counts + lane) + 1
    setNibble(t, at.mined + lane, nonce, code)
    const purpose = purposeOf(code)
    if (purpose >= 0) {
      let landed = 0
      for (let l = 0; l < lanes; l++) for (let n = 0; n < minedCount(t, l); n++) if (purposeOf(mined(t, l, n)) === purpose) landed++
      if (landed > 1) t[at.violation] = VIOLATION.paidTwice
    }
    emit(t, action('mine', 0, lane, nonce, code))
  }
  /** What was sent long ago comes to light. */
  const shown = (s: State, emit: Emit): void => {
    if (config.ledger !== true) return
    for (const { nonce, code } of LEDGER) {
      if (nonce < minedCount(s, 0) || pooled(s, 0, 0, nonce) !== 0 || pooled(s, 1, 0, nonce) !== 0) continue
      if ((sent(s, 0, nonce) & (1 << code)) === 0) continue
      const t = fork(s)
      deliver(t, 0, nonce, code)
      emit(t, action('shown', 0, 0, nonce))
    }
  }

  return (s, emit) => {
    chain(s, emit)
    shown(s, emit)
  }
}
