import type { Instant } from '../../../lib/clock.ts'
import type { Statement } from '../../../resources/conditions.ts'
import type { ObjectMeta } from '../../../resources/meta.ts'
import { networkOfRequest, type ValidatorRequestCondition, type ValidatorRequestStatus } from '../../../resources/validator-request.ts'
import { ended, isPlanned, type Progress, pending, type Readiness, reached, say, underWay, wholeStatus } from '../../engine/progress.ts'
import { mayLand, transactionCondition, transactionStatements } from '../../transactions/mirror.ts'
import { ethOf, type RequestKindName, requestKinds } from './request-kind.ts'
import { meaningsOf } from './rules.ts'
import { termsOf, type ValidatorRequestSpec } from './steps.ts'

/** A ValidatorExit or ValidatorWithdrawal, as its status is made from. */
export interface RequestResource {
  readonly kind: RequestKindName
  readonly metadata: ObjectMeta
  readonly spec: ValidatorRequestSpec
}

export const isAccepted = (status: ValidatorRequestStatus | undefined): boolean => status?.consensus?.status === 'Accepted'
/** The consensus layer has decided, for good. */
export const isDecided = (status: ValidatorRequestStatus | undefined): boolean =>
  status?.transaction?.state === 'Confirmed' && status.consensus !== undefined
/** Accepted, and not known to be paid or void. Of one that an older service has accepted, nothing is ever known. */
export const isUnpaid = (status: ValidatorRequestStatus | undefined): boolean =>
  isAccepted(status) && status?.consensus?.payment?.state === 'Waiting'
const isVoid = (status: ValidatorRequestStatus): boolean => isAccepted(status) && status.consensus?.payment?.state === 'Void'
/** Nothing of it is signed any more, and its outcome is known. */
export const isRequestSettled = (status: ValidatorRequestStatus | undefined): boolean =>
  isDecided(status) || status?.transaction?.state === 'Failed'

type Domain = Exclude<ValidatorRequestCondition, 'Ready' | 'Reconciling' | 'Stalled'>

/** Which condition a step's trouble is shown on. */
const conditionOfStep: Readonly<Record<string, Domain>> = {
  ResolveValidator: 'Created',
  CreateRequest: 'Created',
  VerifyRequest: 'Verified',
  Report: 'Broadcast',
  AwaitConsensus: 'Accepted',
}
const conditionOf = (step: string, status: ValidatorRequestStatus): Domain | undefined =>
  step === 'Transaction' ? transactionCondition(status) : conditionOfStep[step]

/** What is asked for, in words. */
export const wordsOf = ({ kind, spec }: Pick<RequestResource, 'kind' | 'spec'>): string => requestKinds[kind].words(termsOf({ kind, spec }))

/** The whole status for what has been seen. Pure. */
export const validatorRequestStatus = (
  resource: RequestResource,
  status: ValidatorRequestStatus,
  progress: Progress,
  now: Instant,
): ValidatorRequestStatus => {
  const amountEth = ethOf(termsOf(resource))
  const network = networkOfRequest({ spec: resource.spec, status })
  return wholeStatus(
    resource.metadata,
    { ...status, amountEth, network },
    {
      types: requestKinds[resource.kind].conditions,
      evidence: evidenceStatements(resource, status),
      conditionOf: (step) => conditionOf(step, status),
      readiness: readiness(resource, status, progress),
      phase: requestPhaseOf(status, progress),
    },
    progress,
    now,
  )
}

function evidenceStatements(resource: RequestResource, status: ValidatorRequestStatus): Record<Domain, Statement> {
  const { requestId, validator, verifiedCalldata, consensus } = status
  return {
    Created:
      requestId === undefined
        ? pending
        : status.cancelled === true
          ? say('False', 'RequestCancelled', `Request ${requestId} was cancelled in the staking API.`)
          : say('True', 'Succeeded', `Request ${requestId} exists in the staking API.`),
    Verified:
      verifiedCalldata === undefined
        ? pending
        : say(
            'True',
            'Succeeded',
            `The request asks for ${wordsOf(resource)} of validator ${validator?.pubkey ?? ''}, and for nothing else.`,
          ),
    ...transactionStatements(status, { what: 'The request', nothing: 'no request was made' }),
    Accepted:
      consensus === undefined
        ? pending
        : consensus.status === 'Accepted'
          ? say('True', 'Accepted', acceptedMessage(resource, status))
          : say('False', 'RequestDropped', droppedMessage(status)),
    Paid: paidStatement(status),
  }
}

function paidStatement(status: ValidatorRequestStatus): Statement {
  const payment = status.consensus?.payment
  if (payment === undefined)
    return status.consensus?.status === 'Dropped' ? say('False', 'RequestDropped', droppedMessage(status)) : pending
  const amount = `${payment.amountEth} ETH`
  switch (payment.state) {
    case 'Paid':
      return say(
        'True',
        'Paid',
        `${amount} were paid to the withdrawal address${payment.blockNumber === undefined ? '' : ` in block ${payment.blockNumber}`}.`,
      )
    case 'Waiting':
      return say('Unknown', 'AwaitingPayment', `${amount} can be paid from epoch ${payment.withdrawableEpoch} on, by itself.`)
    case 'Void':
      return say('False', 'PaymentVoid', voidMessage(status))
    case 'Unknown':
      return say(
        'Unknown',
        'PaymentUnknown',
        `It has left the queue of withdrawals, and whether ${amount} were paid can no longer be told: look at the withdrawal address.`,
      )
  }
}

const voidMessage = (status: ValidatorRequestStatus): string =>
  `The consensus layer had accepted the withdrawal, and pays nothing for it: the validator was slashed, or began to exit, before its turn (epoch ${status.consensus?.payment?.withdrawableEpoch ?? ''}). The amount comes with the validator's whole balance, by itself. Nothing has to be asked again.`

function readiness(resource: RequestResource, status: ValidatorRequestStatus, progress: Progress): Readiness {
  if (isDecided(status) && isVoid(status) && progress.at !== 'deleting') return ended('PaymentVoid', voidMessage(status))
  if (isDecided(status) && isAccepted(status) && progress.at !== 'deleting')
    return reached(say('True', 'Accepted', presentMessage(resource, status)))
  if (progress.at === 'settled')
    return status.transaction?.state === 'Failed'
      ? ended('TransactionReverted', revertedMessage(status))
      : ended('RequestDropped', droppedMessage(status))
  return underWay(progress, {
    stepMessage: progress.at === 'step' ? (stepMessages[progress.step] ?? 'Under way.') : '',
    isNew: status.conditions === undefined && status.transaction === undefined,
    mayLand: mayLand(status),
  })
}

/** Where it stands: accepted, and paid where it was. */
function presentMessage(resource: RequestResource, status: ValidatorRequestStatus): string {
  const paid = paidStatement(status)
  return paid.reason === 'Paid'
    ? `${paid.message.slice(0, -1)}, for ${wordsOf(resource)} of validator ${status.validator?.pubkey ?? ''}.`
    : acceptedMessage(resource, status)
}

function acceptedMessage(resource: RequestResource, status: ValidatorRequestStatus): string {
  const { payment, queuedDeposits } = status.consensus ?? {}
  const asked = ethOf(termsOf(resource))
  const cut =
    payment === undefined || asked === undefined || payment.amountEth === asked
      ? ''
      : ` It pays ${payment.amountEth} ETH of that, as no more was available.`
  const queued =
    queuedDeposits === undefined
      ? ''
      : ` Deposits of ${queuedDeposits.amountEth} ETH for it are still queued: they are credited ${queuedDeposits.creditedAfterEpoch === undefined ? 'once its balance can be withdrawn' : `after epoch ${queuedDeposits.creditedAfterEpoch}`}, and then paid to the withdrawal address too.`
  return `The consensus layer has accepted ${wordsOf(resource)} of validator ${status.validator?.pubkey ?? ''}; its money goes to the withdrawal address by itself.${cut}${queued}`
}

const droppedMessage = (status: ValidatorRequestStatus): string =>
  `The request was mined (transaction ${status.transaction?.minedHash ?? ''}, block ${status.transaction?.blockNumber ?? ''}), and the consensus layer has dropped it: ${meaningsOf(status.consensus?.rules)}. Nothing came of it but the fee. To ask again once that has passed, create another resource.`

const revertedMessage = (status: ValidatorRequestStatus): string =>
  `Transaction ${status.transaction?.minedHash ?? ''} was reverted in block ${status.transaction?.blockNumber ?? ''}: no request was made, and the amount stayed with the signer. Most often the contract's fee had risen above what it carried. To ask again, delete this resource and apply it again.`

const stepMessages: Readonly<Record<string, string>> = {
  ResolveValidator: 'Looking up the validator.',
  CreateRequest: 'Creating the request in the staking API.',
  VerifyRequest: 'Verifying the request.',
  Transaction: 'Making the transaction.',
  Report: 'Reporting the transaction to the staking API.',
  AwaitConsensus: 'Waiting for what the consensus layer makes of the request.',
}

/** One word for people. It is derived and never read to decide. */
export function requestPhaseOf(status: ValidatorRequestStatus, progress: Progress): string {
  if (progress.at === 'deleting') return 'Deleting'
  if (status.transaction?.state === 'Failed') return 'Failed'
  if (isDecided(status) && isVoid(status)) return 'Void'
  if (isDecided(status) && status.consensus?.payment?.state === 'Paid') return 'Paid'
  if (isDecided(status)) return isAccepted(status) ? 'Accepted' : 'Dropped'
  if (progress.at === 'suspended') return 'Suspended'
  if (isPlanned(progress)) return 'Planned'
  if (progress.at === 'halted' && progress.verdict.kind === 'stall') return 'Stalled'
  if (status.transaction?.state === 'Confirmed') return 'Confirmed'
  if (status.transaction?.broadcastHash !== undefined) return 'Confirming'
  if (status.transaction !== undefined) return 'Prepared'
  if (status.requestId !== undefined) return 'Created'
  if (progress.at === 'halted' && progress.verdict.kind === 'wait') return 'Waiting'
  return 'Pending'
}
