import type { Instant } from '../../../lib/clock.ts'
import type { Statement } from '../../../resources/conditions.ts'
import {
  type EthereumStake,
  type EthereumStakeCondition,
  type EthereumStakeStatus,
  ethereumStakeConditions,
} from '../../../resources/ethereum-stake.ts'
import { ended, isPlanned, type Progress, pending, type Readiness, reached, say, underWay, wholeStatus } from '../../engine/progress.ts'
import { mayLand, transactionCondition, transactionStatements } from '../../transactions/mirror.ts'

/** Beacon API validator statuses that mean: it has left and nothing is staked any more. */
const doneStatuses = new Set(['withdrawal_done'])
/** …it has its duties, and earns. */
const activeStatuses = new Set(['active_ongoing', 'active_exiting', 'active_slashed'])
/** …it leaves, or has left and its balance is still to be withdrawn. */
const leavingStatuses = new Set(['active_exiting', 'active_slashed', 'exited_unslashed', 'exited_slashed', 'withdrawal_possible'])
const slashedStatuses = new Set(['active_slashed', 'exited_slashed'])
/** …it has left, which one that was slashed does too: the Beacon API's word is the same for both by then. */
const leftStatuses = new Set(['withdrawal_possible', 'withdrawal_done'])

export const isConfirmed = (status: EthereumStakeStatus | undefined): boolean => status?.transaction?.state === 'Confirmed'
/** The validator of the key is somebody else's: theirs was the first deposit. */
const isAnothers = (status: EthereumStakeStatus | undefined): boolean =>
  status?.consensus?.status === 'Dropped' && status.consensus.rule === 'other-credentials'
/** The consensus layer has made nothing of the deposit, or nothing of ours. A validator that is seen outranks the first. */
export const isDropped = (status: EthereumStakeStatus | undefined): boolean =>
  isAnothers(status) ||
  (status?.consensus?.status === 'Dropped' && (status.validator === undefined || status.validator.status === 'unknown'))
export const isDone = (status: EthereumStakeStatus | undefined): boolean => doneStatuses.has(status?.validator?.status ?? '')
export const isActive = (status: EthereumStakeStatus | undefined): boolean => activeStatuses.has(status?.validator?.status ?? '')

const isLeaving = (status: EthereumStakeStatus | undefined): boolean => leavingStatuses.has(status?.validator?.status ?? '')
const isSlashed = (status: EthereumStakeStatus | undefined): boolean =>
  slashedStatuses.has(status?.validator?.status ?? '') || status?.validator?.slashed === true
/** Whether a validator that is in this state now was slashed. `before`: as it was seen the last time. */
export const wasSlashed = (now: string, before: EthereumStakeStatus['validator']): boolean =>
  slashedStatuses.has(now) || (leftStatuses.has(now) && (before?.slashed === true || slashedStatuses.has(before?.status ?? '')))
/** Active, and nothing of that is about to change. */
export const isEarning = (status: EthereumStakeStatus | undefined): boolean => isActive(status) && !isLeaving(status)

/** The conditions that evidence alone decides. */
type Domain = Exclude<EthereumStakeCondition, 'Ready' | 'Reconciling' | 'Stalled'>

/** Which condition a step's trouble is shown on. */
function conditionOf(step: string, status: EthereumStakeStatus): Domain | undefined {
  switch (step) {
    case 'CreateStake':
      return 'Created'
    case 'VerifyDeposit':
      return 'Verified'
    case 'Transaction':
      return transactionCondition(status)
    case 'Report':
      return 'Broadcast'
    default:
      return undefined
  }
}

/** The whole status for what has been seen. Pure. */
export const ethereumStakeStatus = (
  resource: EthereumStake,
  status: EthereumStakeStatus,
  progress: Progress,
  now: Instant,
): EthereumStakeStatus =>
  wholeStatus(
    resource.metadata,
    status,
    {
      types: ethereumStakeConditions,
      evidence: evidenceStatements(resource, status),
      conditionOf: (step) => conditionOf(step, status),
      readiness: readiness(resource, status, progress),
      phase: phaseOf(status, progress),
    },
    progress,
    now,
  )

function evidenceStatements(resource: EthereumStake, status: EthereumStakeStatus): Record<Domain, Statement> {
  const verified = status.verifiedRoot !== undefined && status.verifiedRoot === status.depositData?.depositDataRoot
  return {
    Created: status.stakeId === undefined ? pending : say('True', 'Succeeded', `Stake ${status.stakeId} exists in the staking API.`),
    Verified: verified
      ? say(
          'True',
          status.withdrawalAddressIsContract === true ? 'WithdrawalAddressIsContract' : 'Succeeded',
          `The deposit data pays ${resource.spec.amountEth} ETH with credentials for ${resource.spec.withdrawalAddress}, and its signature is valid.${status.withdrawalAddressIsContract === true ? ' Warning: that address is a contract that is not known here. Credentials can never be changed, and what it can’t pay out is lost: make sure that it can.' : ''}`,
        )
      : pending,
    ...transactionStatements(status, { what: 'The deposit', nothing: 'no stake was made' }),
    ...(status.transaction?.state === 'FrontRun' ? { Confirmed: say('False', 'FrontRun', frontRunMessage(status)) } : {}),
    Active: activity(status),
    Slashed: slashing(status),
  }
}

function slashing(status: EthereumStakeStatus): Statement {
  if (isSlashed(status)) return say('True', 'Slashed', slashedMessage(status))
  if (status.validator === undefined || status.validator.status === 'unknown') return pending
  return say('False', 'Succeeded', 'The validator was not slashed.')
}

const theValidator = ({ validator }: EthereumStakeStatus): string =>
  `The validator${validator?.index === undefined ? '' : ` ${validator.index}`}`

function activity(status: EthereumStakeStatus): Statement {
  const { status: now = '' } = status.validator ?? {}
  const it = theValidator(status)
  if (isConfirmed(status) && isAnothers(status)) return say('False', 'DepositDropped', droppedMessage(status))
  if (isSlashed(status)) return say(isActive(status) ? 'True' : 'False', 'Slashed', slashedMessage(status))
  if (now === 'active_exiting')
    return say('True', 'Exiting', `${it} is exiting: it is active until its exit epoch, and its balance is withdrawn after that.`)
  if (isActive(status)) return say('True', 'Active', `The validator is ${now}.`)
  if (now === 'withdrawal_possible')
    return say('False', 'Exiting', `${it} has exited: its balance is about to be withdrawn to its withdrawal address, by itself.`)
  if (isLeaving(status))
    return say('False', 'Exiting', `${it} has exited (${now}): its balance can be withdrawn some 27 hours later, by itself.`)
  if (isDone(status)) return say('False', 'ValidatorDone', 'The validator has left and its balance was withdrawn.')
  if (isConfirmed(status) && isDropped(status)) return say('False', 'DepositDropped', droppedMessage(status))
  if (isConfirmed(status)) return say('Unknown', 'AwaitingActivation', 'The deposit is final; the validator is not seen active yet.')
  return pending
}

function readiness(resource: EthereumStake, status: EthereumStakeStatus, progress: Progress): Readiness {
  if (isConfirmed(status) && isDropped(status) && progress.at !== 'deleting') return ended('DepositDropped', droppedMessage(status))
  if (isSlashed(status) && progress.at !== 'deleting') return ended('Slashed', slashedMessage(status))
  const confirmed = isConfirmed(status) ? say('True', 'Succeeded', confirmedMessage(resource, status)) : undefined
  if (progress.at === 'settled') {
    if (confirmed !== undefined) return reached(confirmed)
    return status.transaction?.state === 'FrontRun'
      ? ended('FrontRun', frontRunMessage(status))
      : ended('TransactionReverted', revertedMessage(status))
  }
  return underWay(progress, {
    // Not while there is a step to do: the report, say.
    reached: progress.at === 'step' ? undefined : confirmed,
    stepMessage: progress.at === 'step' ? (stepMessages[progress.step] ?? 'Under way.') : '',
    isNew: status.conditions === undefined && status.transaction === undefined,
    mayLand: mayLand(status),
  })
}

/** Where a stake that was paid stands now. */
function confirmedMessage({ spec }: EthereumStake, status: EthereumStakeStatus): string {
  const { index, status: now } = status.validator ?? {}
  const validator = index === undefined ? `validator ${status.depositData?.pubkey ?? ''}` : `validator ${index}`
  if (isDone(status)) return `The stake has ended: ${validator} has left, and its balance was withdrawn to ${spec.withdrawalAddress}.`
  if (isLeaving(status)) return `The stake is ending: ${validator} is ${now}. Its balance goes to ${spec.withdrawalAddress} by itself.`
  if (isActive(status)) return `${spec.amountEth} ETH are staked: ${validator} is active.`
  return `${spec.amountEth} ETH are deposited for ${validator}.`
}

const frontRunMessage = ({ transaction, depositData }: EthereumStakeStatus): string =>
  `Transaction ${transaction?.minedHash ?? ''} is final in block ${transaction?.blockNumber ?? ''}, but somebody else's deposit for public key ${depositData?.pubkey ?? ''} came first: its withdrawal credentials count, and the amount topped up that validator. Treat the staking API as compromised: stop the operator and find out who made the first deposit.`

function slashedMessage(status: EthereumStakeStatus): string {
  const { status: now = '' } = status.validator ?? {}
  const it = theValidator(status)
  if (isDone(status)) return `${it} was slashed. It has left, and what it had left was withdrawn.`
  return `${it} was slashed (${now}): it loses a part of its balance and leaves by itself. Its key has signed twice, mostly since it runs in two places: look at all that hold keys of the same origin and stop them, before others are slashed too.`
}

function droppedMessage(status: EthereumStakeStatus): string {
  const { transaction, consensus, depositData } = status
  if (isAnothers(status))
    return `The deposit is in final block ${transaction?.blockNumber ?? ''}, and by the beacon chain the validator of public key ${depositData?.pubkey ?? ''} has somebody else's withdrawal credentials: their deposit came first, and the amount topped up that validator. Treat the staking API as compromised: stop the operator and find out who made the first deposit.`
  return `The deposit is in final block ${transaction?.blockNumber ?? ''}, and the consensus layer has dropped it when its turn came${consensus?.rule === 'invalid-signature' ? ': its signature is not valid on this network (another genesis fork version, say)' : ''}. No validator was made for public key ${depositData?.pubkey ?? ''}, and the money is lost. Stop staking on this network until it is known why: compare the fork version in the networks files of operator and staking API with the network's.`
}

const revertedMessage = (status: EthereumStakeStatus): string =>
  `Transaction ${status.transaction?.minedHash ?? ''} was reverted in block ${status.transaction?.blockNumber ?? ''}: no stake was made and the amount stayed with the signer. Find out why (a block explorer shows it), then delete this resource and apply it again.`

const stepMessages: Readonly<Record<string, string>> = {
  CreateStake: 'Creating the stake in the staking API.',
  VerifyDeposit: 'Verifying the deposit data.',
  Transaction: 'Making the deposit transaction.',
  Report: 'Reporting the transaction to the staking API.',
}

/** One word for people. It is derived and never read to decide. */
export function phaseOf(status: EthereumStakeStatus, progress: Progress): string {
  if (progress.at === 'deleting') return 'Deleting'
  if (status.transaction?.state === 'Failed') return 'Failed'
  if (status.transaction?.state === 'FrontRun') return 'FrontRun'
  if (isConfirmed(status) && isAnothers(status)) return 'Dropped'
  if (isDone(status)) return 'Exited'
  if (isSlashed(status)) return 'Slashed'
  if (isLeaving(status)) return status.validator?.status === 'withdrawal_possible' ? 'Withdrawing' : 'Exiting'
  if (isActive(status)) return 'Active'
  if (isConfirmed(status) && isDropped(status)) return 'Dropped'
  if (isConfirmed(status)) return 'Confirmed'
  if (progress.at === 'suspended') return 'Suspended'
  if (isPlanned(progress)) return 'Planned'
  if (progress.at === 'halted' && progress.verdict.kind === 'stall') return 'Stalled'
  if (status.transaction?.broadcastHash !== undefined) return 'Confirming'
  if (status.transaction !== undefined) return 'Prepared'
  if (status.stakeId !== undefined) return 'Created'
  return 'Pending'
}
