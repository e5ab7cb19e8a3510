import type { EthereumStake } from '../../../resources/ethereum-stake.ts'
import type { ValidatorExit } from '../../../resources/validator-exit.ts'
import type { ValidatorWithdrawal } from '../../../resources/validator-withdrawal.ts'
import type { Approvable } from '../../transactions/approvals.ts'
import type { EthereumDeps } from '../../transactions/ethereum-signer.ts'
import type { RecordObject } from '../../transactions/store.ts'
import type { RequestKindName } from './request-kind.ts'
import type { FoundValidator } from './steps.ts'

export type ValidatorRequestResource = ValidatorExit | ValidatorWithdrawal

export interface ValidatorRequestDeps extends EthereumDeps {
  readonly stake: (namespace: string, name: string) => EthereumStake | undefined
  /** A request as it stands now: from the cache, or read past it. */
  readonly resource: (
    kind: RequestKindName,
    ref: { readonly namespace: string; readonly name: string },
    fresh: boolean,
    signal: AbortSignal,
  ) => Promise<ValidatorRequestResource | undefined>
  /** Every exit and withdrawal, of all namespaces, whose validator this is by its spec or its stake. */
  readonly requestsOn: (validator: FoundValidator) => Iterable<ValidatorRequestResource>
  /** Every EthereumStake, of all namespaces, whose status names this validator. */
  readonly stakesOn: (validator: FoundValidator) => Iterable<EthereumStake>
  /** That what policies want approved of it is approved now, as its lane asks. @throws Halt */
  readonly assertApproved: (record: RecordObject, of: Approvable, signal: AbortSignal) => Promise<unknown>
  /** How often one that needs a person is looked at again, in ms: so often it asks for what somebody else has. */
  readonly stallRecheckMs: number
  /** The resource has news at the staking API. */
  readonly onNews?: (owner: { readonly kind: RequestKindName; readonly namespace: string; readonly name: string }) => void
  /** Until then this instance leads. */
  readonly leading?: AbortSignal
}
