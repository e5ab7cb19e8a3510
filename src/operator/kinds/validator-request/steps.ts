import type { EthereumTransaction } from '../../../resources/ethereum-transaction.ts'
import type { ValidatorExitSpec } from '../../../resources/validator-exit.ts'
import type { ValidatorRef } from '../../../resources/validator-ref.ts'
import type { ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import type { ValidatorWithdrawalSpec } from '../../../resources/validator-withdrawal.ts'
import { externalReference, idempotencyKey, type Origin } from '../../engine/origin.ts'
import { defineSteps, type Step } from '../../engine/step.ts'
import {
  absorbBroadcast,
  absorbConfirm,
  type BroadcastOutcome,
  type ConfirmOutcome,
  evidence,
  type InFlightPlan,
  isFinal,
  isReported,
  isSent,
  type TransactionPlan,
  withTransaction,
} from '../../transactions/transaction-evidence.ts'

/** Names of the two kinds. What is asked for is told by the kind alone: a withdrawal whose amount is missing is never an exit. */
export type RequestKindName = 'ValidatorExit' | 'ValidatorWithdrawal'
export type ValidatorRequestSpec = ValidatorExitSpec | ValidatorWithdrawalSpec

/** What a step sees: the resource's identity, its spec, and its status as far as it has come in this visit. */
export interface ValidatorRequestView {
  readonly origin: Origin & { readonly kind: RequestKindName }
  readonly spec: ValidatorRequestSpec
  readonly status: ValidatorRequestStatus
}

/** What a resource asks for, as its spec says it: the validator is looked up anew whenever something is to be signed. */
export interface RequestOrder {
  readonly origin: Origin & { readonly kind: RequestKindName }
  readonly signer: string
  readonly validator: ValidatorRef
  /** Of a withdrawal. */
  readonly amountGwei?: string
  readonly idempotencyKey: string
  readonly externalReference: string
}

/** What a request's transaction is made from. */
export interface RequestPlan {
  readonly order: RequestOrder
  /** As status has it: compared, never believed. */
  readonly validator: FoundValidator
  readonly requestId: string
  readonly maxRequestFeeGwei?: string
  readonly superseded: TransactionPlan['superseded']
}
export interface InFlightRequest extends RequestPlan {
  readonly transaction: EthereumTransaction
}
export type FoundValidator = NonNullable<ValidatorRequestStatus['validator']>
export type Consensus = NonNullable<ValidatorRequestStatus['consensus']>

/** A plan with its validator, found by its spec: what is signed is made from this. */
export interface SendPlan extends TransactionPlan {
  readonly request: RequestOrder & FoundValidator
  readonly requestId: string
  readonly maxRequestFeeGwei?: string
}
export type InFlightSend = InFlightPlan<SendPlan>

export type ValidatorRequestEffects = {
  readonly resolveValidator: { args: RequestOrder; result: FoundValidator }
  readonly createRequest: { args: { order: RequestOrder }; result: { requestId: string; validator: FoundValidator } }
  readonly verifyRequest: { args: RequestPlan; result: { verifiedCalldata: string } }
  readonly prepareRequest: { args: RequestPlan; result: EthereumTransaction }
  readonly broadcastRequest: { args: InFlightRequest; result: BroadcastOutcome }
  readonly reportRequest: {
    args: { order: RequestOrder; validator: FoundValidator; requestId: string; hash: string }
    result: { reportedHash: string }
  }
  readonly confirmRequest: { args: InFlightRequest; result: ConfirmOutcome }
  readonly awaitConsensus: { args: InFlightRequest; result: Consensus }
  readonly undoRequest: {
    args: {
      order: RequestOrder
      validator: FoundValidator | undefined
      requestId: string | undefined
      superseded: TransactionPlan['superseded']
    }
    result: { is: 'undone' } | { is: 'found'; transaction: EthereumTransaction; requestId: string; validator: FoundValidator }
  }
}

/** The step that a request's creation and its one transaction belong to, in idempotency keys and in the signer's ledger. */
export const requestStep = (kind: RequestKindName): 'exit' | 'withdrawal' => (kind === 'ValidatorExit' ? 'exit' : 'withdrawal')

export const orderOf = ({ origin, spec }: Pick<ValidatorRequestView, 'origin' | 'spec'>): RequestOrder => ({
  origin,
  signer: spec.signer,
  validator: spec.validator,
  ...('amountGwei' in spec ? { amountGwei: spec.amountGwei } : {}),
  idempotencyKey: idempotencyKey(origin, requestStep(origin.kind)),
  externalReference: externalReference(origin),
})
const planOf = (view: ValidatorRequestView): RequestPlan => ({
  order: orderOf(view),
  validator: evidence(view.status.validator, 'validator'),
  requestId: evidence(view.status.requestId, 'requestId'),
  ...(view.spec.maxRequestFeeGwei === undefined ? {} : { maxRequestFeeGwei: view.spec.maxRequestFeeGwei }),
  superseded: view.status.superseded ?? [],
})
const inFlightOf = (view: ValidatorRequestView): InFlightRequest => ({
  ...planOf(view),
  transaction: evidence(view.status.transaction, 'transaction'),
})
/** There is something to watch: status has all that the look needs. */
const isUnderWay = ({ transaction, validator, requestId }: ValidatorRequestStatus): boolean =>
  transaction !== undefined && validator !== undefined && requestId !== undefined

const step = defineSteps<ValidatorRequestView, ValidatorRequestStatus, ValidatorRequestEffects>()
export type ValidatorRequestStep = Step<ValidatorRequestView, ValidatorRequestStatus, ValidatorRequestEffects>

/**
 * ValidatorExit and ValidatorWithdrawal: ResolveValidator ─▶ CreateRequest ─▶ VerifyRequest ─▶ PrepareRequest ─▶ Broadcast ─▶ Report ─▶ Confirm
 * ─▶ AwaitConsensus
 *
 * CreateRequest is written ahead: a resource that is deleted knows by its validator in status that a request may exist to be cancelled.
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
    args: (view) => ({ order: orderOf(view) }),
    absorb: (status, { requestId, validator }) => ({ ...status, requestId, validator }),
    writeAhead: true,
  }),
  step({
    name: 'VerifyRequest',
    done: (status) => isFinal(status) || status.verifiedCalldata !== undefined,
    effect: 'verifyRequest',
    args: planOf,
    absorb: (status, { verifiedCalldata }) => ({ ...status, verifiedCalldata }),
  }),
  step({
    name: 'PrepareRequest',
    done: (status) => status.transaction !== undefined,
    effect: 'prepareRequest',
    args: planOf,
    absorb: (status, transaction) => ({ ...status, transaction }),
  }),
  step({
    name: 'Broadcast',
    done: (status) => isFinal(status) || isSent(status),
    effect: 'broadcastRequest',
    args: inFlightOf,
    absorb: absorbBroadcast,
    writeAhead: true,
  }),
  step({
    name: 'Report',
    done: isReported,
    effect: 'reportRequest',
    args: (view) => {
      const { order, validator, requestId, transaction } = inFlightOf(view)
      return { order, validator, requestId, hash: transaction.minedHash ?? transaction.hash }
    },
    // What the consensus layer makes of it is only told of what was reported.
    watches: (status) =>
      isUnderWay(status) && (status.transaction?.broadcastHash !== undefined || status.transaction?.minedHash !== undefined),
    absorb: (status, { reportedHash }) => withTransaction(status, { reportedHash }),
    independent: true,
  }),
  step({
    name: 'Confirm',
    done: isFinal,
    effect: 'confirmRequest',
    args: inFlightOf,
    watches: isUnderWay,
    absorb: absorbConfirm,
  }),
  step({
    name: 'AwaitConsensus',
    done: (status) => status.transaction?.state === 'Failed' || status.consensus !== undefined,
    effect: 'awaitConsensus',
    args: inFlightOf,
    watches: (status) => isUnderWay(status) && isFinal(status),
    absorb: (status, consensus) => ({ ...status, consensus }),
  }),
]

/** Before a deleted resource goes: what its transaction was, where status has lost it; else its exit is taken back at the staking API. */
export const undoRequest: readonly ValidatorRequestStep[] = [
  step({
    name: 'UndoRequest',
    done: (status) => status.cancelled === true || status.transaction !== undefined,
    effect: 'undoRequest',
    args: (view) => ({
      order: orderOf(view),
      validator: view.status.validator,
      requestId: view.status.requestId,
      superseded: view.status.superseded ?? [],
    }),
    absorb: (status, outcome) => {
      if (outcome.is === 'undone') return { ...status, cancelled: true }
      const { requestId, transaction, validator } = outcome
      return { ...status, requestId, transaction, validator }
    },
  }),
]
