import { sameHex } from '../../lib/hex.ts'

/** A transaction as the rules need it: who sent it under which nonce. */
export interface SenderAndNonce {
  readonly sender: string
  readonly nonce: number
}

/** What is known of a hash that was reported earlier. */
export interface EarlierHash {
  /** `unseen`: no node shows it, which proves nothing. `pooled`: it waits in a pool. `mined`: it is in a block, final or not. */
  readonly seen: 'unseen' | 'pooled' | 'mined'
  /** As the chain has ever shown it, else as the client has named it. */
  readonly sentBy: SenderAndNonce | undefined
  /** Proven by a final block: it did not pay, or another transaction has used its nonce. It can't land any more. */
  readonly closed: boolean
}

/** What is known of the hash that is reported now. */
export interface NextHash {
  /** As the chain shows it, else as the client names it. */
  readonly sentBy: SenderAndNonce | undefined
  /** It is in a block already, and pays what it is reported for. */
  readonly paid: boolean
}

/**
 * Whether a further hash may be reported for a stake or request. Each is to be paid once only, so it must be certain that the earlier ones and the
 * new one can't both land: they have the same sender and nonce, or the earlier ones are proven closed. That no node shows an earlier one proves nothing.
 * - `wait`: an earlier one waits in a pool, and nobody has said yet what the new one is: it may well be its replacement.
 */
export function maySupersede(earlier: readonly EarlierHash[], next: NextHash): 'accept' | 'refuse' | 'wait' {
  const open = earlier.filter((one) => !one.closed)
  const { sentBy } = next
  if (sentBy === undefined)
    return open.some(({ seen }) => seen === 'pooled') && open.every(({ seen }) => seen !== 'mined') ? 'wait' : 'refuse'
  const others = open.filter((one) => one.sentBy === undefined || !isSameNonce(one.sentBy, sentBy))
  if (others.length === 0) return 'accept'
  // The payment has been made: to refuse its hash would prevent nothing, and an earlier one that nobody has ever seen was probably mistyped.
  return next.paid && others.every(({ seen }) => seen === 'unseen') ? 'accept' : 'refuse'
}

/** Of two transactions with one sender and nonce, one lands at most. */
export const isSameNonce = (one: SenderAndNonce, other: SenderAndNonce): boolean =>
  one.nonce === other.nonce && sameHex(one.sender as `0x${string}`, other.sender as `0x${string}`)
