import type { Counts } from '../protocol.ts'
import { codeOfId, laneOfId, nonceOfId, purposeOf } from './codes.ts'
import type { Config } from './config.ts'
import type { Fields } from './fields.ts'
import type { Layout, State } from './state.ts'

/** What the nodes show: their pools, their counts, the chain's history. */
export type NodeViews = ReturnType<typeof createNodeViews>

export function createNodeViews(
  { lanes, nonces }: Config,
  at: Layout,
  { word, setNibble, mode, mined, minedCount, finalCount, pooled }: Fields,
) {
  const nodeMined = (s: State, node: number, lane: number): number =>
    mode(s, node) === 'lag' ? word(s, at.lagging + node * lanes + lane) & 15 : minedCount(s, lane)
  const nodePending = (s: State, node: number, lane: number): number => {
    let nonce = nodeMined(s, node, lane)
    while (nonce < nonces && pooled(s, node, lane, nonce) !== 0) nonce++
    return nonce
  }
  const nodeFinal = (s: State, node: number, lane: number): number => {
    switch (mode(s, node)) {
      case 'down':
        return -1
      case 'lag':
        return word(s, at.lagging + node * lanes + lane) >> 4
      case 'lie':
        return nodePending(s, node, lane)
      case 'ok':
      case 'fork':
        return finalCount(s, lane)
    }
  }
  const counts = (s: State, lane: number): Counts | undefined => {
    let final = -1
    let latest = -1
    let pending = -1
    for (let node = 0; node < 2; node++) {
      const how = mode(s, node)
      if (how === 'down') continue
      const counted = nodePending(s, node, lane)
      final = Math.max(final, nodeFinal(s, node, lane))
      latest = Math.max(latest, how === 'lie' ? counted : nodeMined(s, node, lane))
      pending = Math.max(pending, counted)
    }
    return final < 0 ? undefined : { final, latest, pending, finalEverywhere: finalEverywhere(s, lane) }
  }
  const finalEverywhere = (s: State, lane: number): number | undefined => {
    const [first, second] = [nodeFinal(s, 0, lane), nodeFinal(s, 1, lane)]
    return first < 0 || second < 0 ? undefined : Math.min(first, second)
  }
  const done = (s: State, purpose: number): number => {
    for (let node = 0; node < 2; node++) {
      if (mode(s, node) === 'down' || mode(s, node) === 'fork') continue
      for (let lane = 0; lane < lanes; lane++)
        for (let nonce = 0; nonce < nodeMined(s, node, lane); nonce++) {
          const code = mined(s, lane, nonce)
          if (purposeOf(code) === purpose) return 1 + ((lane * 4 + nonce) << 4) + code
        }
    }
    return 0
  }
  const isKnown = (s: State, id: number): boolean => {
    const [lane, nonce, code] = [laneOfId(id), nonceOfId(id), codeOfId(id)]
    for (let node = 0; node < 2; node++) {
      if (mode(s, node) === 'down') continue
      if (pooled(s, node, lane, nonce) === code) return true
      if (mode(s, node) !== 'fork' && nonce < nodeMined(s, node, lane) && mined(s, lane, nonce) === code) return true
    }
    return false
  }
  const deliver = (t: State, lane: number, nonce: number, code: number): void => {
    if (nonce < minedCount(t, lane)) return
    const index = at.sent + lane * nonces + nonce
    t[index] = word(t, index) | (1 << code)
    for (let node = 0; node < 2; node++) if (mode(t, node) !== 'down') setNibble(t, at.pools + node * lanes + lane, nonce, code)
  }

  return { nodePending, nodeFinal, counts, finalEverywhere, done, isKnown, deliver }
}
