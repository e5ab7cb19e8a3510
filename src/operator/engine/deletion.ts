import type { Reason } from '../../resources/reasons.ts'

/** What to do with a resource that is being deleted. Each kind has its reasons; no deletion moves money that its spec doesn't move, or leads to buying twice. */
export type Deletion =
  /** Nothing can land and nothing is staked, or a person has said that it may be forgotten. */
  | { readonly do: 'release'; readonly because: string }
  /** What is in flight is watched until its outcome is known; nothing is signed. */
  | { readonly do: 'watch'; readonly message: string }
  /** It holds money: wait until that is out, or for a person. */
  | { readonly do: 'hold'; readonly message: string }
  /** Something of it may land of which nobody knows enough to follow it: whether it may go, a person has to say. */
  | { readonly do: 'ask'; readonly reason: Reason; readonly message: string }
  /** Its spec asks for the money: that is got out first. */
  | { readonly do: 'withdraw'; readonly message: string }
  | CancelFirst

/**
 * Nothing of it was paid: what it has asked for is cancelled at the staking API before it goes, so that its name is free and it holds nothing there. `orRelease`
 * says that a person has let it go: that is tried all the same, and doesn't keep it for long.
 */
export interface CancelFirst {
  readonly do: 'cancel'
  readonly message: string
  readonly orRelease?: string
}
