import type { Hash, Hex } from '../../../lib/chain-types.ts'
import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import { isPlanOnly } from '../../../resources/mode.ts'
import type { ShownPlan } from '../../../resources/plan.ts'
import type { ValidatorExitSpec } from '../../../resources/validator-exit.ts'
import type { ValidatorRef } from '../../../resources/validator-ref.ts'
import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import { askedGwei, type ValidatorWithdrawalSpec } from '../../../resources/validator-withdrawal.ts'
import { externalReference, idempotencyKey, type Origin } from '../../engine/origin.ts'
import { defineSteps, type Step } from '../../engine/step.ts'
import { evidence, isFinal, isReported } from '../../transactions/mirror.ts'
import { type RequestKindName, type RequestTerms, requestKinds } from './request-kind.ts'

export type ValidatorRequestSpec = ValidatorExitSpec | ValidatorWithdrawalSpec

/** What a step sees: the resource's identity, its spec, and its status as far as it has come in this reconcile. */
export interface ValidatorRequestView {
  readonly origin: Origin & { readonly kind: RequestKindName }
  readonly spec: ValidatorRequestSpec
  readonly status: ValidatorRequestStatus
  /** The resource's own, as the API server gave it. */
  readonly uid: string
}

/** What a resource asks for, as its spec says it: the validator is looked up anew whenever something is to be signed. */
export interface RequestOrder extends RequestTerms {
  readonly origin: Origin & { readonly kind: RequestKindName }
  readonly signer: string
  readonly validator: ValidatorRef
  readonly maxRequestFeeGwei?: string
  readonly idempotencyKey: string
  readonly externalReference: string
}

/** What a request's transaction is made from. */
export interface RequestPlan {
  readonly order: RequestOrder
  /** As status has it: compared, never believed. */
  readonly validator: FoundValidator
  readonly requestId: string
  /** What status shows of the transaction. */
  readonly shown: EthereumTransaction | undefined
  /** Of one that is only planned: the resource's own UID, which its plan names. */
  readonly plannedAs?: string
}
export type FoundValidator = NonNullable<ValidatorRequestStatus['validator']>
type ConsensusFields = NonNullable<ValidatorRequestStatus['consensus']>
/** What the consensus layer made of a request: dropped only by rules that are named. */
export type Consensus =
  | (Omit<ConsensusFields, 'status' | 'rules'> & { readonly status: 'Accepted' })
  | { readonly status: 'Dropped'; readonly rules: [string, ...string[]] }

/** The staking API had lost the request and has made it again: nothing was verified or reported under the new id. */
export interface Renamed {
  readonly requestId: string
}

export type ValidatorRequestEffects = {
  readonly resolveValidator: { args: RequestOrder; result: FoundValidator }
  readonly createRequest: {
    args: { order: RequestOrder; plannedAs?: string }
    /** Of one that is only planned no request is made: it would hold what others may ask for. */
    result: { requestId?: string; validator?: FoundValidator; plan?: ShownPlan }
  }
  readonly verifyRequest: { args: RequestPlan; result: { verifiedCalldata: Hex } | Renamed }
  readonly followRequest: { args: RequestPlan; result: { transaction: EthereumTransaction | undefined; plan?: ShownPlan } | Renamed }
  readonly reportRequest: {
    args: { order: RequestOrder; validator: FoundValidator; requestId: string; hash: Hash }
    result: { reportedHash: Hash } | Renamed
  }
  readonly awaitConsensus: { args: RequestPlan; result: { consensus: Consensus } | Renamed }
  readonly undoRequest: {
    args: { order: RequestOrder; validator: FoundValidator | undefined; requestId: string | undefined }
    result: { cancelled: true }
  }
}

/** What is asked for, by the kind alone: a withdrawal whose amount is missing is never an exit. */
export const termsOf = ({ kind, spec }: { readonly kind: RequestKindName; readonly spec: ValidatorRequestSpec }): RequestTerms =>
  kind === 'ValidatorWithdrawal' ? { amountGwei: askedGwei(spec) } : {}

export const orderOf = ({ origin, spec }: Pick<ValidatorRequestView, 'origin' | 'spec'>): RequestOrder => ({
  origin,
  signer: spec.signer,
  validator: spec.validator,
  ...termsOf({ kind: origin.kind, spec }),
  ...(spec.maxRequestFeeGwei === undefined ? {} : { maxRequestFeeGwei: spec.maxRequestFeeGwei }),
  idempotencyKey: idempotencyKey(origin, requestKinds[origin.kind].step),
  externalReference: externalReference(origin),
})
const plannedAs = ({ spec, uid }: ValidatorRequestView): { readonly plannedAs?: string } => (isPlanOnly(spec) ? { plannedAs: uid } : {})
const planOf = (view: ValidatorRequestView): RequestPlan => ({
  order: orderOf(view),
  validator: evidence(view.status.validator, 'validator'),
  requestId: evidence(view.status.requestId, 'requestId'),
  shown: view.status.transaction,
  ...plannedAs(view),
})
/** What was reported was reported under another id. */
function renamed({ transaction, ...status }: ValidatorRequestStatus, { requestId }: Renamed): ValidatorRequestStatus {
  if (transaction === undefined) return { ...status, requestId }
  const { reportedHash: _elsewhere, ...unreported } = transaction
  return { ...status, requestId, transaction: unreported }
}
/** Nothing was signed for it yet: what the staking API has under the new id is verified like the first. */
function madeAgain({ verifiedCalldata: _before, ...status }: ValidatorRequestStatus, again: Renamed): ValidatorRequestStatus {
  return renamed(status, again)
}
/** There may be something to watch: status has all that the look needs. */
const isUnderWay = ({ validator, requestId }: ValidatorRequestStatus): boolean => validator !== undefined && requestId !== undefined

const step = defineSteps<ValidatorRequestView, ValidatorRequestStatus, ValidatorRequestEffects>()
export type ValidatorRequestStep = Step<ValidatorRequestView, ValidatorRequestStatus, ValidatorRequestEffects>

/**
 * ValidatorExit and ValidatorWithdrawal: ResolveValidator ─▶ CreateRequest ─▶ VerifyRequest ─▶ Transaction ─▶ Report ─▶ AwaitConsensus
 *
 * CreateRequest is written ahead: a resource that is deleted knows by its validator in status that a request may exist to be cancelled.
 * Transaction makes the request's StakingTransaction and follows it: nonces, fees, signing and sending are the log's.
 */
export const validatorRequestSteps: readonly ValidatorRequestStep[] = [
  step({
    name: 'ResolveValidator',
    done: (status) => status.validator !== undefined,
    effect: 'resolveValidator',
    args: orderOf,
    absorb: (status, { network, pubkey }) => ({ ...status, validator: { network, pubkey } }),
  }),
  step({
    name: 'CreateRequest',
    done: (status) => status.requestId !== undefined,
    effect: 'createRequest',
    args: (view) => ({ order: orderOf(view), ...plannedAs(view) }),
    absorb: ({ plan: _planned, ...status }, { requestId, validator, plan }) => ({
      ...(requestId === undefined ? status : renamed(status, { requestId })),
      ...(validator === undefined ? {} : { validator }),
      ...(plan === undefined ? {} : { plan }),
    }),
    writeAhead: true,
  }),
  step({
    name: 'VerifyRequest',
    done: (status) => isFinal(status) || status.verifiedCalldata !== undefined,
    effect: 'verifyRequest',
    args: planOf,
    absorb: (status, result) =>
      'requestId' in result ? madeAgain(status, result) : { ...status, verifiedCalldata: result.verifiedCalldata },
  }),
  step({
    name: 'Transaction',
    // Status is a mirror: that it says so is compared with the log at the beginning of every reconcile.
    done: isFinal,
    effect: 'followRequest',
    args: planOf,
    watches: isUnderWay,
    absorb: (status, result) => {
      if ('requestId' in result) return madeAgain(status, result)
      const { transaction, plan } = result
      const { transaction: _before, plan: _planned, ...rest } = status
      return { ...rest, ...(plan === undefined ? {} : { plan }), ...(transaction === undefined ? {} : { transaction }) }
    },
  }),
  step({
    name: 'Report',
    done: (status) => !isFinal(status) || isReported(status),
    effect: 'reportRequest',
    args: (view) => {
      const { order, validator, requestId, shown } = planOf(view)
      return { order, validator, requestId, hash: evidence(shown?.minedHash ?? shown?.hash, 'transaction') }
    },
    // What the consensus layer makes of it is only told of what was reported.
    watches: (status) => isUnderWay(status) && isFinal(status),
    absorb: (status, result) =>
      'requestId' in result
        ? renamed(status, result)
        : { ...status, transaction: { ...evidence(status.transaction, 'transaction'), reportedHash: result.reportedHash } },
    independent: true,
  }),
  step({
    name: 'AwaitConsensus',
    done: (status) => status.transaction?.state === 'Failed' || status.consensus !== undefined,
    effect: 'awaitConsensus',
    args: planOf,
    watches: (status) => isUnderWay(status) && isFinal(status),
    absorb: (status, result) => ('requestId' in result ? renamed(status, result) : { ...status, consensus: result.consensus }),
  }),
]

/** Before a deleted resource goes: what was asked for is taken back at the staking API. */
export const undoRequest: readonly ValidatorRequestStep[] = [
  step({
    name: 'UndoRequest',
    done: (status) => status.cancelled === true,
    effect: 'undoRequest',
    args: (view) => ({ order: orderOf(view), validator: view.status.validator, requestId: view.status.requestId }),
    absorb: (status, { cancelled }) => ({ ...status, cancelled }),
  }),
]
