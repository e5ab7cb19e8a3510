import { formatEth, gwei } from '../../../lib/amounts.ts'
import type { Pubkey } from '../../../lib/chain-types.ts'
import {
  type ValidatorRequestCondition,
  validatorRequestConditions,
  validatorWithdrawalConditions,
} from '../../../resources/validator-request.ts'
import { transactionName } from '../../transactions/names.ts'

/** Names of the kinds. What is asked for is told by the kind alone: a withdrawal whose amount is missing is never an exit. */
export const requestKindNames = ['ValidatorExit', 'ValidatorWithdrawal'] as const
export type RequestKindName = (typeof requestKindNames)[number]

/** What a request is made of, besides its validator. */
export interface RequestTerms {
  /** Of a withdrawal. */
  readonly amountGwei?: string
}

/** What a kind of request is called, and by what it is known again. */
export interface RequestKind {
  readonly kind: RequestKindName
  /** The purpose of its StakingTransaction. */
  readonly purpose: 'Exit' | 'Withdrawal'
  /** Its creation's name in idempotency keys: never changed. */
  readonly step: string
  /**
   * Whether a deleted one stays until the staking API has taken it back. Of one that may be asked for many times, nothing stands in anybody's way but the amount
   * that the API keeps for it: where the API does not take it back, it goes.
   */
  readonly staysUntilCancelled: boolean
  /** In words: `a full exit`. */
  words(terms: RequestTerms): string
  /** The amount in words, such as `1 ETH`. */
  amount(terms: RequestTerms): string
  /** The name of its StakingTransaction: one for whatever is done once. */
  nameOf(owner: { readonly kind: string; readonly namespace: string; readonly name: string }, chainId: number, pubkey: Pubkey): string
  /** How to ask for it once more after it was done, in a sentence. */
  readonly onceMore: string
  /** Whether the very same may be asked for many times: of one that the log doesn't account for, nobody can say then that it was another. */
  readonly repeats: boolean
  /** Whether something is paid out for it after it was accepted. */
  readonly isPaidOut: boolean
  /** Its conditions, all present from the first visit. */
  readonly conditions: readonly ValidatorRequestCondition[]
  /** Whether it may pass to whoever asks again after the consensus layer has dropped it: its name would stand in the way of every other. */
  readonly passesWhenDropped: boolean
}

/** What is asked for, in ETH; undefined of an exit, and of what is no amount. */
export const ethOf = ({ amountGwei = '' }: RequestTerms): string | undefined =>
  /^[0-9]{1,20}$/.test(amountGwei) ? formatEth(gwei(BigInt(amountGwei))) : undefined

const inEth = (terms: RequestTerms): string | undefined => {
  const eth = ethOf(terms)
  return eth === undefined ? undefined : `${eth} ETH`
}

export const requestKinds: Readonly<Record<RequestKindName, RequestKind>> = {
  ValidatorExit: {
    kind: 'ValidatorExit',
    purpose: 'Exit',
    step: 'exit',
    staysUntilCancelled: true,
    words: () => 'a full exit',
    amount: () => 'whole balance',
    nameOf: (_owner, chainId, pubkey) => transactionName({ purpose: 'Exit', chainId, pubkey }),
    onceMore: 'An exit is asked for again only when the consensus layer has dropped it.',
    repeats: false,
    isPaidOut: false,
    conditions: validatorRequestConditions,
    passesWhenDropped: true,
  },
  ValidatorWithdrawal: {
    kind: 'ValidatorWithdrawal',
    purpose: 'Withdrawal',
    step: 'withdrawal',
    staysUntilCancelled: false,
    words: (terms) => `a withdrawal${inEth(terms) === undefined ? '' : ` of ${inEth(terms)}`}`,
    amount: (terms) => inEth(terms) ?? '',
    nameOf: ({ kind, namespace, name }, chainId) => transactionName({ purpose: 'Withdrawal', chainId, owner: { kind, namespace, name } }),
    onceMore: 'To ask once more, create a resource with another name.',
    repeats: true,
    isPaidOut: true,
    conditions: validatorWithdrawalConditions,
    passesWhenDropped: false,
  },
}
