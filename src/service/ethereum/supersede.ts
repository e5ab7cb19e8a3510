/** A transaction as the rules need it: who sent it under which nonce. */
export interface SenderAndNonce {
  readonly sender: string
  readonly nonce: number
}

/** What is known of a hash that was reported earlier. */
export interface EarlierHash {
  /** The chain shows it now: waiting in a pool, or mined. */
  readonly visible: boolean
  readonly mined: boolean
  /** Known once the chain has ever shown it. */
  readonly sentBy: SenderAndNonce | undefined
}

/**
 * Whether another hash may be reported for a stake that has some, none of them final. A stake may be paid once only, so it must be certain
 * that the old and the new one can't both land: they have the same sender and nonce, or the chain doesn't know the old ones.
 * - `wait`: the old one waits in a pool and the new one isn't visible yet, so it may well be its replacement.
 */
export function maySupersede(earlier: readonly EarlierHash[], next: SenderAndNonce | undefined): 'accept' | 'refuse' | 'wait' {
  const visible = earlier.filter((hash) => hash.visible)
  if (visible.length === 0) return 'accept'
  if (next === undefined) return visible.some((hash) => hash.mined) ? 'refuse' : 'wait'
  const same = (hash: EarlierHash) => hash.sentBy?.sender.toLowerCase() === next.sender.toLowerCase() && hash.sentBy.nonce === next.nonce
  return visible.every(same) ? 'accept' : 'refuse'
}
