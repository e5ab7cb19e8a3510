import { FOREIGN } from './codes.ts'
import { type Config, NODE_MODES } from './config.ts'
import type { Fields } from './fields.ts'
import type { NodeViews } from './node-views.ts'
import type { Emit, Layout, State } from './state.ts'
import { action } from './words.ts'

/** What happens to nodes and their pools, and what another user of the key sends. */
export function createNodeHappenings(
  config: Config,
  at: Layout,
  { word, budget, spend, modeNumber, setMode, fork }: Fields,
  { nodePending, deliver }: NodeViews,
): (s: State, emit: Emit) => void {
  const { lanes, nonces } = config
  const modes = (config.nodeModes ?? []).map((mode) => NODE_MODES.indexOf(mode))
  return (s, emit) => {
    for (let node = 0; node < 2; node++) {
      if (modeNumber(s, node) !== 0) {
        const t = fork(s)
        setMode(t, node, 0)
        for (let lane = 0; lane < lanes; lane++) t[at.lagging + node * lanes + lane] = 0
        emit(t, action('node', 0, node, 0))
      } else if (budget(s, 'node') > 0 && modeNumber(s, 1 - node) === 0)
        for (const to of modes) {
          const t = fork(s)
          spend(t, 'node')
          setMode(t, node, to)
          if (NODE_MODES[to] === 'lag')
            for (let lane = 0; lane < lanes; lane++) t[at.lagging + node * lanes + lane] = word(s, at.counts + lane)
          emit(t, action('node', 0, node, to))
        }
      if (budget(s, 'drop') > 0) {
        let holds = 0
        for (let lane = 0; lane < lanes; lane++) holds |= word(s, at.pools + node * lanes + lane)
        if (holds === 0) continue
        const t = fork(s)
        spend(t, 'drop')
        for (let lane = 0; lane < lanes; lane++) t[at.pools + node * lanes + lane] = 0
        emit(t, action('drop', 0, node))
      }
    }
    if (budget(s, 'foreign') > 0) {
      const nonce = Math.max(nodePending(s, 0, 0), nodePending(s, 1, 0))
      if (nonce < nonces) {
        const t = fork(s)
        spend(t, 'foreign')
        deliver(t, 0, nonce, FOREIGN)
        emit(t, action('foreign', 0, 0, nonce))
      }
    }
  }
}
