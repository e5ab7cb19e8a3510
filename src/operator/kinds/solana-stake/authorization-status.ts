import type { Instant } from '../../../lib/clock.ts'
import type { Statement } from '../../../resources/conditions.ts'
import {
  type SolanaStakeAuthorization,
  type SolanaStakeAuthorizationCondition,
  type SolanaStakeAuthorizationStatus,
  solanaStakeAuthorizationConditions,
} from '../../../resources/solana-stake-authorization.ts'
import { isPlanned, type Progress, pending, type Readiness, reached, say, underWay, wholeStatus } from '../../engine/progress.ts'
import { isFinal, isInFlight, signaturesOf } from './steps.ts'

/** The conditions that evidence alone decides. */
type Domain = Exclude<SolanaStakeAuthorizationCondition, 'Ready' | 'Reconciling' | 'Stalled'>

const conditionOf = (step: string, { transaction }: SolanaStakeAuthorizationStatus): Domain =>
  step === 'VerifyHandOver' ? 'Verified' : transaction?.broadcastSignature !== undefined ? 'Confirmed' : 'Broadcast'

/** The whole status for what has been seen. Pure. */
export const solanaStakeAuthorizationStatus = (
  resource: SolanaStakeAuthorization,
  status: SolanaStakeAuthorizationStatus,
  progress: Progress,
  now: Instant,
): SolanaStakeAuthorizationStatus =>
  wholeStatus(
    resource.metadata,
    status,
    {
      types: solanaStakeAuthorizationConditions,
      evidence: evidence(resource, status),
      conditionOf: (step) => conditionOf(step, status),
      readiness: readiness(status, progress),
      phase: phaseOf(status, progress),
    },
    progress,
    now,
  )

/** Who has what from then on, in words. */
function handedTo({ to }: SolanaStakeAuthorizationStatus): string {
  const parts = [
    ...(to?.stakeAuthority === undefined ? [] : [`the stake authority to ${to.stakeAuthority}`]),
    ...(to?.withdrawAuthority === undefined ? [] : [`the withdraw authority to ${to.withdrawAuthority}`]),
  ]
  return parts.length === 0 ? 'its authorities' : parts.join(' and ')
}

function evidence({ spec }: SolanaStakeAuthorization, status: SolanaStakeAuthorizationStatus): Record<Domain, Statement> {
  const { transaction, stakeAccount } = status
  const { signature, broadcastSignature, attempt = 0, state, slot } = transaction ?? {}
  return {
    Verified:
      stakeAccount === undefined
        ? pending
        : say('True', 'Succeeded', `It hands ${handedTo(status)}, of stake account ${stakeAccount} (SolanaStake ${spec.stakeRef.name}).`),
    Broadcast:
      state === 'Confirmed' && broadcastSignature === undefined
        ? say('True', 'Succeeded', 'It was found done on the chain.')
        : broadcastSignature !== undefined && broadcastSignature === signature
          ? say('True', 'Succeeded', `Transaction ${broadcastSignature} was sent (attempt ${attempt}).`)
          : pending,
    Confirmed:
      state === 'Confirmed'
        ? say('True', 'Succeeded', `It is final (slot ${slot}).`)
        : state === 'Failed'
          ? say(
              'False',
              'TransactionReverted',
              `It landed in slot ${slot} and failed (${transaction?.failure}): only its fee was paid. It is made anew.`,
            )
          : state === 'Expired'
            ? say('False', 'InProgress', `Transaction ${signature} expired without landing. It is made anew.`)
            : pending,
  }
}

function readiness(status: SolanaStakeAuthorizationStatus, progress: Progress): Readiness {
  const { transaction } = status
  const there = isFinal(transaction)
    ? say(
        'True',
        'Succeeded',
        `Handed over: ${handedTo(status)}, final in slot ${transaction?.slot}. What comes after is the stake's to tell.`,
      )
    : undefined
  if (progress.at === 'settled') return reached(there ?? say('False', 'InProgress', 'It is looked at again.'))
  const signed = transaction === undefined ? undefined : signaturesOf(transaction).at(-1)
  return underWay(progress, {
    reached: there,
    stepMessage:
      progress.at === 'step' && progress.step === 'VerifyHandOver' ? 'Verifying what it asks for.' : 'Handing the authorities over.',
    isNew: status.conditions === undefined,
    mayLand:
      signed !== undefined && isInFlight(transaction)
        ? `Transaction ${signed} was signed before and may still land within two minutes; it is followed.`
        : undefined,
  })
}

/** One word for people. It is derived and never read to decide. */
function phaseOf({ transaction, stakeAccount }: SolanaStakeAuthorizationStatus, progress: Progress): string {
  if (progress.at === 'deleting') return 'Deleting'
  if (isFinal(transaction)) return 'HandedOver'
  if (progress.at === 'suspended') return 'Suspended'
  if (isPlanned(progress)) return 'Planned'
  if (progress.at === 'halted' && progress.verdict.kind === 'stall') return 'Stalled'
  if (transaction?.state === 'Broadcast') return 'Confirming'
  if (transaction !== undefined) return 'Prepared'
  return stakeAccount === undefined ? 'Pending' : 'Verified'
}
