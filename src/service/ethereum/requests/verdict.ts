import type { Gwei } from '../../../lib/amounts.ts'

/** What the consensus layer made of a request that is mined. */
export interface Verdict {
  readonly status: 'pending' | 'accepted' | 'dropped'
  readonly reason?: string
  /** Of an accepted withdrawal: what is to be paid, which may be less than what was asked for. */
  readonly payment?: { readonly amountGwei: Gwei; readonly withdrawableEpoch: number }
  /** The block that handed the request on. A verdict is final when this block is. */
  readonly judgedAt?: bigint
  /** With `pending`: the beacon chain may tell more before the execution layer has another block. */
  readonly askAgain?: true
  /** With `pending`: nothing was seen that contradicts an earlier verdict on the same block. */
  readonly cannotTell?: true
}

/** What the contract of the API allows a reason. */
export const maxReason = 1024

export const cannotTell = (reason: string): Verdict => ({ status: 'pending', cannotTell: true, reason: reason.slice(0, maxReason) })
