import { inSol, solOf } from '../../../lib/amounts.ts'
import type { Instant } from '../../../lib/clock.ts'
import type { Statement } from '../../../resources/conditions.ts'
import type { Reason } from '../../../resources/reasons.ts'
import {
  type SolanaProtocol,
  type SolanaStake,
  type SolanaStakeCondition,
  type SolanaStakeStatus,
  type SolanaTransaction,
  solanaStakeConditions,
} from '../../../resources/solana-stake.ts'
import {
  isPlanned,
  type Progress,
  pending,
  type Readiness,
  reached,
  say,
  underWay,
  waitsForPerson,
  wholeStatus,
} from '../../engine/progress.ts'
import { NOT_CLOSED } from '../../transactions/solana/rules.ts'
import { type ActionKind, isFinal, isFunded, isInFlight, isNothingStaked, isWithdrawn, signaturesOf, transactionOf } from './steps.ts'

/** The conditions that evidence alone decides. */
type Domain = Exclude<SolanaStakeCondition, 'Ready' | 'Reconciling' | 'Stalled'>

/** Which condition a step's trouble is shown on. */
const conditionOfStep = (step: string, status: SolanaStakeStatus): Domain | undefined => {
  if (step === 'CreateStake') return 'Created'
  if (step === 'VerifyStake' || step === 'Import') return 'Verified'
  if (step === 'SettleStake') return 'Confirmed'
  if (step.startsWith('Report')) return 'Broadcast'
  const [, kind] = /^(Stake|Deactivation|Withdrawal)Transaction$/.exec(step) ?? []
  if (kind !== undefined) {
    const transaction = transactionOf(status, kind.toLowerCase() as ActionKind)
    return transaction !== undefined && transaction.broadcastSignature === transaction.signature ? 'Confirmed' : 'Broadcast'
  }
  if (step === 'AwaitActive') return 'Active'
  if (step === 'AwaitInactive') return 'Inactive'
  if (step === 'AwaitWithdrawn') return 'Withdrawn'
  return undefined
}

/** The whole status for what has been seen. Pure. */
export const solanaStakeStatus = (resource: SolanaStake, status: SolanaStakeStatus, progress: Progress, now: Instant): SolanaStakeStatus =>
  wholeStatus(
    resource.metadata,
    { ...status, ...amountsOf(resource, status) },
    {
      types: solanaStakeConditions,
      evidence: evidenceStatements(resource, isUnproven(progress) ? {} : status),
      conditionOf: (step) => conditionOfStep(step, status),
      readiness: readiness(resource, status, progress),
      phase: phaseOf(resource, status, progress),
    },
    progress,
    now,
  )

/** The log does not have what status shows, and nobody has said yet that it is so: a tenant may have written it. */
const isUnproven = (progress: Progress): boolean => progress.at === 'halted' && progress.step === 'Import'

/** What people read in SOL. */
function amountsOf({ spec }: SolanaStake, { protocol }: SolanaStakeStatus): Pick<SolanaStakeStatus, 'amountSol' | 'activeSol'> {
  return { amountSol: solOf(spec.amountLamports), activeSol: protocol === undefined ? undefined : solOf(protocol.activeLamports) }
}

/** The transaction that counts now, and of what kind it is. */
function newest(status: SolanaStakeStatus): { readonly kind: ActionKind; readonly transaction: SolanaTransaction } | undefined {
  for (const kind of ['withdrawal', 'deactivation', 'stake'] as const) {
    const transaction = transactionOf(status, kind)
    if (transaction !== undefined) return { kind, transaction }
  }
  return undefined
}

function evidenceStatements(resource: SolanaStake, status: SolanaStakeStatus): Record<Domain, Statement> {
  const { stakeId, verifiedStakeId, voteAccount, stakeAccount } = status
  const { amountLamports } = resource.spec
  return {
    Created: stakeId === undefined ? pending : say('True', 'Succeeded', `Stake ${stakeId} exists in the staking API.`),
    Verified:
      stakeId !== undefined && verifiedStakeId === stakeId
        ? say(
            'True',
            'Succeeded',
            `It pays ${inSol(amountLamports)} into ${stakeAccount}, delegated to ${voteAccount}, under this spec's authorities.`,
          )
        : pending,
    ...transactionStatements(status),
    ...protocolStatements(status),
  }
}

function transactionStatements(status: SolanaStakeStatus): Pick<Record<Domain, Statement>, 'Broadcast' | 'Confirmed'> {
  const found = newest(status)
  if (found === undefined) return { Broadcast: pending, Confirmed: pending }
  const { kind, transaction } = found
  const { broadcastSignature, state, signature, slot, attempt } = transaction
  const name = `The ${kind} transaction`
  const again = 'It is made anew.'
  return {
    Broadcast:
      state === 'Confirmed' && broadcastSignature === undefined
        ? say('True', 'Succeeded', `${name} was found on the chain.`)
        : broadcastSignature !== undefined && broadcastSignature === signature
          ? say('True', 'Succeeded', `${name} ${broadcastSignature} was sent (attempt ${attempt}).`)
          : pending,
    Confirmed:
      state === 'Confirmed'
        ? say('True', 'Succeeded', `${name} is final (slot ${slot}).`)
        : state === 'Failed' && transaction.failure === NOT_CLOSED
          ? say(
              'False',
              'InProgress',
              `${name} landed in slot ${slot}; lamports that came meanwhile keep the account open. They are withdrawn too.`,
            )
          : state === 'Failed'
            ? say(
                'False',
                'TransactionReverted',
                `${name} landed in slot ${slot} and failed (${transaction.failure}): only its fee was paid. ${again}`,
              )
            : state === 'Expired'
              ? say('False', 'InProgress', `${name} ${signature} expired without landing. ${again}`)
              : pending,
  }
}

function protocolStatements(status: SolanaStakeStatus): Pick<Record<Domain, Statement>, 'Active' | 'Inactive' | 'Withdrawn'> {
  const { protocol } = status
  if (protocol === undefined) return { Active: pending, Inactive: pending, Withdrawn: pending }
  const { status: is, activeLamports, inactiveLamports, activationEpoch, deactivationEpoch } = protocol
  const parts = `${inSol(activeLamports)} are active, ${inSol(inactiveLamports)} are not`
  const isOver = say('False', 'Withdrawn', 'The stake was withdrawn.')
  const withdrawn = isWithdrawn(status)
    ? say('True', 'Withdrawn', 'All money was withdrawn and the account is closed.')
    : say('Unknown', 'AlreadyWithdrawn', 'The account is closed, and no withdrawal of this resource has landed.')
  switch (is) {
    case 'Created':
      return { Active: pending, Inactive: pending, Withdrawn: pending }
    case 'Activating':
      return {
        Active: say('Unknown', 'AwaitingActivation', `It warms up since epoch ${activationEpoch}: ${parts}.`),
        Inactive: pending,
        Withdrawn: pending,
      }
    case 'Active':
      return {
        Active: activity(protocol, parts),
        Inactive: pending,
        Withdrawn: pending,
      }
    case 'Deactivating':
      return {
        Active: say('False', 'AwaitingDeactivation', `It cools down since epoch ${deactivationEpoch}.`),
        Inactive: say('Unknown', 'AwaitingDeactivation', `It cools down since epoch ${deactivationEpoch}: ${parts}.`),
        Withdrawn: pending,
      }
    case 'Inactive':
      return {
        Active: say('False', 'Inactive', 'It is inactive.'),
        Inactive: say('True', 'Inactive', `It is inactive: ${inSol(inactiveLamports)} can be withdrawn.`),
        Withdrawn: pending,
      }
    case 'Withdrawn':
      return { Active: isOver, Inactive: say('True', 'Withdrawn', 'The stake was withdrawn.'), Withdrawn: withdrawn }
  }
}

/** Of an active stake: whether its validator does what it was chosen for. */
function activity({ validator, voteAccount = '' }: SolanaProtocol, parts: string): Statement {
  const other = 'Ask the validator, or set desiredState to Inactive and stake with another.'
  switch (validator) {
    case undefined:
    case 'Voting':
      return say('True', 'Active', `It is active: ${parts}.`)
    case 'EarnsNothing':
      return say(
        'True',
        'ValidatorEarnsNothing',
        `It is active: ${parts}. Its vote account ${voteAccount} keeps all rewards by now, or names no BLS key, by which the cluster admits validators: it earns nothing. ${other}`,
      )
    case 'Delinquent':
    case 'Closed':
      return say(
        'True',
        'ValidatorDelinquent',
        `It is active: ${parts}. Its vote account ${voteAccount} is ${validator.toLowerCase()}: it earns nothing now, and after five epochs anyone may deactivate it. ${other}`,
      )
  }
}

/** What somebody else has done to the stake on the chain, which a person must look at. */
export function interference(resource: SolanaStake, status: SolanaStakeStatus): Statement | undefined {
  const { protocol, stakeAuthority, withdrawAuthority, voteAccount, stakeAccount, handOver } = status
  if (protocol === undefined || !isFunded(status)) return undefined
  const stalled = (reason: Reason, message: string) => say('True', reason, message)
  // What was seen before a hand-over says nothing of after it.
  const isOld = protocol.slot < (handOver?.slot ?? 0)
  for (const [name, mine, theirs, expected] of [
    ['withdraw', withdrawAuthority, protocol.withdrawAuthority, handOver?.expected?.withdrawAuthority],
    ['stake', stakeAuthority, protocol.stakeAuthority, handOver?.expected?.stakeAuthority],
  ] as const)
    if (!isOld && mine !== undefined && theirs !== undefined && mine !== theirs && theirs !== expected)
      return stalled(
        'AuthorityChanged',
        `Somebody has changed the ${name} authority of ${stakeAccount} on the chain: it is ${theirs}, not ${mine}. Nothing more is signed. Whoever holds these keys must be asked at once: a new withdraw authority can take the money.`,
      )
  const asked = resource.spec.desiredState
  const { status: is, unreadable, lockedUntil, lockupCustodian, validator } = protocol
  if (unreadable !== undefined) return stalled('VerificationFailed', `${unreadable}. What is shown of ${stakeAccount} was seen before.`)
  if (lockedUntil !== undefined && is !== 'Withdrawn')
    return stalled(
      'LockupInForce',
      `The stake account ${stakeAccount} has a lockup in force until ${lockedUntil}, which this resource did not make: nothing can be withdrawn before. Only its custodian ${lockupCustodian ?? ''} can lift it. Whoever holds the withdraw authority's key must be asked: a lockup is set with it.`,
    )
  if (is === 'Withdrawn' && asked !== 'Withdrawn')
    return stalled(
      'AlreadyWithdrawn',
      `The stake account ${stakeAccount} is closed: its money was withdrawn, and not by this resource. It is not paid again. If that is right, delete this resource.`,
    )
  const holds = BigInt(protocol.activeLamports) + BigInt(protocol.inactiveLamports)
  // What is staked only ever grows, until it is withdrawn.
  if (asked !== 'Withdrawn' && is !== 'Created' && holds < BigInt(resource.spec.amountLamports))
    return stalled(
      'DelegationChanged',
      `The stake account ${stakeAccount} holds ${inSol(holds.toString())} of the ${inSol(resource.spec.amountLamports)} that were staked: somebody has split or withdrawn the rest with this stake's keys, and this resource did not ask for that. Find out who did.`,
    )
  if (asked !== 'Active') return undefined
  if (is === 'Deactivating' || is === 'Inactive')
    return stalled(
      'DelegationChanged',
      `The stake ${stakeAccount} is ${is.toLowerCase()} on the chain, and this resource did not ask for that. ${whoMayHave(validator, voteAccount)} Then set desiredState to Inactive or Withdrawn, or have the stake delegated again.`,
    )
  if (protocol.voteAccount !== undefined && voteAccount !== undefined && protocol.voteAccount !== voteAccount)
    return stalled(
      'DelegationChanged',
      `The stake ${stakeAccount} is delegated to ${protocol.voteAccount} on the chain, not to ${voteAccount}, and this resource did not ask for that. Find out who did.`,
    )
  return undefined
}

/** Source: the stake program's DeactivateDelinquent, which needs no signature of the stake's. */
function whoMayHave(validator: SolanaProtocol['validator'], voteAccount: string | undefined): string {
  const anyone = 'Anyone may deactivate a stake whose vote account is closed, or has been delinquent for five epochs'
  switch (validator) {
    case 'Delinquent':
    case 'Closed':
      return `${anyone}, and ${voteAccount} is ${validator.toLowerCase()}: no key of this resource need have been used. To stake with another validator, withdraw it and create another resource.`
    case 'Voting':
    case 'EarnsNothing':
      return `${anyone}; ${voteAccount} votes now. If it did all the time, a key of this stake was used: find out who has it.`
    case undefined:
      return `${anyone}: look at ${voteAccount}. If it votes, a key of this stake was used: find out who has it.`
  }
}

/** Whether it is where the spec wants it, as far as was seen. */
export function isWhereWanted(resource: SolanaStake, status: SolanaStakeStatus): boolean {
  const { desiredState } = resource.spec
  const is = status.protocol?.status
  if (interference(resource, status) !== undefined) return false
  if (desiredState === 'Active') return isFunded(status) && is === 'Active'
  if (isNothingStaked(status)) return true
  // A closed account is not enough: its money must have gone where this resource says.
  if (desiredState === 'Withdrawn') return isWithdrawn(status)
  return isFunded(status) && is === desiredState
}

/** Made elsewhere: the log found it on the chain, or knows no signature of it. */
const isBySomebodyElse = (withdrawal: SolanaTransaction | undefined): boolean => withdrawal?.txId === undefined

function wanted(resource: SolanaStake, status: SolanaStakeStatus): Statement {
  const { protocol, stakeAccount } = status
  if (isNothingStaked(status)) return say('True', 'NothingStaked', 'Nothing was ever staked, and nothing will be.')
  switch (resource.spec.desiredState) {
    case 'Active':
      return say('True', 'Active', `${inSol(protocol?.activeLamports)} of ${stakeAccount} are staked with ${status.voteAccount}.`)
    case 'Inactive':
      return say('True', 'Inactive', `${stakeAccount} is inactive: ${inSol(protocol?.inactiveLamports)} can be withdrawn.`)
    case 'Withdrawn':
      return say(
        'True',
        'Withdrawn',
        isBySomebodyElse(transactionOf(status, 'withdrawal'))
          ? `${stakeAccount} is closed: its money was withdrawn to where this resource says, by a transaction of somebody else.`
          : `All money of ${stakeAccount} was withdrawn.`,
      )
  }
}

function readiness(resource: SolanaStake, status: SolanaStakeStatus, progress: Progress): Readiness {
  const isProven = !isUnproven(progress)
  const there = isProven && isWhereWanted(resource, status) ? wanted(resource, status) : undefined
  const trouble = isProven ? interference(resource, status) : undefined
  if (trouble !== undefined && progress.at !== 'deleting')
    return { Ready: { ...trouble, status: 'False' }, Reconciling: waitsForPerson(trouble.reason as Reason), Stalled: trouble }
  if (progress.at === 'settled') return reached(there ?? say('False', 'InProgress', 'It is looked at again.'))
  const readiness = underWay(progress, {
    reached: there,
    stepMessage: progress.at === 'step' ? stepMessage(progress.step) : '',
    isNew: status.conditions === undefined,
    mayLand: mayLand(status),
  })
  return trouble === undefined ? readiness : { ...readiness, Stalled: trouble }
}

/** What was signed and may still land, as a sentence for people. */
function mayLand(status: SolanaStakeStatus): string | undefined {
  for (const kind of ['stake', 'deactivation', 'withdrawal'] as const) {
    const transaction = transactionOf(status, kind)
    const signature = transaction === undefined ? undefined : signaturesOf(transaction).at(-1)
    if (signature !== undefined && isInFlight(transaction))
      return `The ${kind} transaction ${signature} was signed before and may still land within two minutes; it is followed.`
  }
  return undefined
}

function stepMessage(step: string): string {
  switch (step) {
    case 'CreateStake':
      return 'Creating the stake in the staking API.'
    case 'VerifyStake':
      return 'Verifying the stake.'
    case 'SettleStake':
      return 'Looking whether something was ever staked.'
    case 'AwaitActive':
      return 'Waiting until the stake is active.'
    case 'AwaitInactive':
      return 'Waiting until the stake is inactive.'
    case 'AwaitWithdrawn':
      return 'Waiting until the account is closed.'
    default: {
      const [, making, reporting] = /^(?:(\w+)Transaction|Report(\w+))$/.exec(step) ?? []
      const kind = (making ?? reporting)?.toLowerCase()
      return kind === undefined ? 'Under way.' : `${making === undefined ? 'Reporting' : 'Making'} the ${kind} transaction.`
    }
  }
}

/** One word for people. It is derived and never read to decide. */
export function phaseOf(resource: SolanaStake, status: SolanaStakeStatus, progress: Progress): string {
  if (progress.at === 'deleting') return 'Deleting'
  if (isUnproven(progress) && progress.at === 'halted' && progress.verdict.kind === 'stall') return 'Stalled'
  if (isWithdrawn(status)) return 'Withdrawn'
  if (isFunded(status)) {
    if (isInFlight(transactionOf(status, 'withdrawal'))) return 'Withdrawing'
    const deactivation = transactionOf(status, 'deactivation')
    const is = status.protocol?.status
    if (isInFlight(deactivation) || (isFinal(deactivation) && is !== 'Inactive' && is !== 'Withdrawn')) return 'Deactivating'
    // Closed by somebody: where its money went is another matter.
    if (is === 'Withdrawn') return 'Closed'
    return is === undefined || is === 'Created' ? 'Activating' : is
  }
  if (progress.at === 'suspended') return 'Suspended'
  if (isPlanned(progress)) return 'Planned'
  if (progress.at === 'halted' && progress.verdict.kind === 'stall') return 'Stalled'
  if (resource.spec.desiredState !== 'Active' && isNothingStaked(status)) return 'NothingStaked'
  const stake = transactionOf(status, 'stake')
  if (stake?.state === 'Broadcast') return 'Confirming'
  if (stake !== undefined) return 'Prepared'
  return status.stakeId === undefined ? 'Pending' : 'Created'
}
