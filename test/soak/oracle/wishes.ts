/**
 * What the users have asked for: the one thing that the oracle is told, by those who asked. No two wishes of a kind have the same amount, so that what was paid says
 * by itself for which wish it was.
 */
export type Wish = StakeWish | ExitWish | WithdrawalWish | SolanaWish

/** A span in which nothing may be paid for it: it was suspended or deleted, and nothing of it was on its way. Blocks of the Ethereum chain, or slots. */
export interface Hold {
  readonly why: string
  readonly from: number
  /** It was taken back. */
  until?: number
}

interface Named {
  readonly namespace: string
  readonly name: string
  readonly holds: Hold[]
}

export interface StakeWish extends Named {
  readonly kind: 'EthereumStake'
  readonly amountGwei: bigint
  /** 32 bytes, in lower case. */
  readonly credentials: string
}
/** Whose: of a stake in the same namespace, by its name, or of a public key. */
export type Validator = { readonly stake: string } | { readonly pubkey: string }
export interface ExitWish extends Named {
  readonly kind: 'ValidatorExit'
  readonly validator: Validator
}
export interface WithdrawalWish extends Named {
  readonly kind: 'ValidatorWithdrawal'
  readonly validator: Validator
  readonly amountGwei: bigint
}
export interface SolanaWish extends Named {
  readonly kind: 'SolanaStake'
  readonly lamports: bigint
  readonly staker: string
  readonly withdrawer: string
  readonly vote: string
  /** The furthest that it was ever asked to go. */
  desired: 'Active' | 'Inactive' | 'Withdrawn'
}

export const wishName = ({ kind, namespace, name }: Pick<Wish, 'kind' | 'namespace' | 'name'>): string => `${kind}/${namespace}/${name}`
export const ofKind = <K extends Wish['kind']>(wishes: readonly Wish[], kind: K): readonly (Wish & { readonly kind: K })[] =>
  wishes.filter((wish): wish is Wish & { readonly kind: K } => wish.kind === kind)
