import { formatEth, type Gwei, gwei } from '../../lib/amounts.ts'
import type { BeaconSpec, BeaconValidator, PendingConsolidation, PendingPartialWithdrawal } from './beacon.ts'
import type { Address, Hex } from './chain.ts'

/*
 * Which rules an exit or a partial withdrawal breaks in one state of the beacon chain. The consensus layer drops a request that breaks one, silently
 * (consensus-specs, electra/beacon-chain.md: process_withdrawal_request). Pure.
 */

/** Stable: they stand in problems and in status. */
const ruleCodes = [
  'unknown-validator',
  'credentials-not-execution',
  'sender-not-withdrawal-address',
  'slashed',
  'not-active',
  'already-exiting',
  'too-young',
  'pending-withdrawals',
  'withdrawal-queue-full',
  'credentials-not-compounding',
  'effective-balance-too-low',
  'nothing-available',
  'amount-not-positive',
  'amount-over-available',
] as const
export type RuleCode = (typeof ruleCodes)[number]
export const isRuleCode = (code: string): code is RuleCode => ruleCodes.some((one) => one === code)

export interface BrokenRule {
  readonly code: RuleCode
  /** For people, with the numbers. */
  readonly message: string
  /**
   * False for the one rule that is stricter than the consensus layer's: of an amount over what is available it pays what is available, and whoever
   * asked is surprised.
   */
  readonly drops: boolean
}

export interface RuleState {
  /** Undefined: the registry does not know the key. */
  readonly validator: BeaconValidator | undefined
  /** Those of all validators, or of this one. */
  readonly pendingPartialWithdrawals: readonly PendingPartialWithdrawal[]
  readonly pendingConsolidations?: readonly PendingConsolidation[]
  readonly epoch: number
  readonly spec: Pick<BeaconSpec, 'shardCommitteePeriod' | 'minActivationBalanceGwei' | 'pendingPartialWithdrawalsLimit'>
  /** Who sends the request, when that is to be checked. */
  readonly sender?: Address
}

/** Rules that a full exit breaks; empty when the consensus layer would take it. */
export function exitBroken(state: RuleState): readonly BrokenRule[] {
  const { validator } = state
  if (validator === undefined) return [unknown]
  const pending = pendingOf(state, validator)
  return [
    ...commonBroken(state, validator),
    ...when(
      pending.count > 0,
      'pending-withdrawals',
      () =>
        `${counted(pending.count, 'partial withdrawal')} of ${eth(pending.gwei)} in all ${pending.count === 1 ? 'is' : 'are'} still to be paid, the last in epoch ${pending.lastEpoch}: an exit is possible after that`,
    ),
  ]
}

/** Rules that a partial withdrawal of this amount breaks; empty when the consensus layer would pay it in full. */
export function withdrawalBroken(state: RuleState, amountGwei: Gwei): readonly BrokenRule[] {
  const amount = when(
    amountGwei <= 0n,
    'amount-not-positive',
    () => `${amountGwei} gwei can't be withdrawn: the amount must be more than 0`,
  )
  const { validator } = state
  if (validator === undefined) return [...amount, unknown]
  const broken = [...amount, ...anyWithdrawalBroken(state, validator)]
  const available = availableGwei(state, validator)
  if (available === 0n || amountGwei <= available) return broken
  const message = `${amountGwei} gwei are asked for, and ${available} gwei (${eth(available)}) are available: ${sum(state, validator)}`
  return [...broken, { code: 'amount-over-available', message, drops: false }]
}

/** What the consensus layer will pay of a withdrawal that it takes. */
export const payableGwei = (state: RuleState, amountGwei: Gwei): Gwei => {
  const available = state.validator === undefined ? gwei(0n) : availableGwei(state, state.validator)
  return amountGwei < available ? amountGwei : available
}

export interface Capacity {
  /** Whether a partial withdrawal is possible now. */
  readonly eligible: boolean
  readonly broken: readonly BrokenRule[]
  readonly pendingWithdrawalsGwei: Gwei
  /** 0 unless the credentials are 0x02 and the effective balance is high enough: what could be withdrawn, age and status aside. */
  readonly availableGwei: Gwei
  /** From this epoch on its age is enough; undefined before the activation epoch is known. */
  readonly earliestEligibleEpoch: number | undefined
}

/** How much can be withdrawn, and why not. */
export function withdrawalCapacity(state: RuleState): Capacity {
  const { validator } = state
  if (validator === undefined) {
    return {
      eligible: false,
      broken: [unknown],
      pendingWithdrawalsGwei: gwei(0n),
      availableGwei: gwei(0n),
      earliestEligibleEpoch: undefined,
    }
  }
  const broken = anyWithdrawalBroken(state, validator)
  return {
    eligible: broken.length === 0,
    broken,
    pendingWithdrawalsGwei: pendingOf(state, validator).gwei,
    availableGwei: availableGwei(state, validator),
    earliestEligibleEpoch: earliestEligibleEpoch(validator, state.spec),
  }
}

/** activation epoch + SHARD_COMMITTEE_PERIOD; undefined before the activation epoch is known. */
export const earliestEligibleEpoch = (
  { activationEpoch }: Pick<BeaconValidator, 'activationEpoch'>,
  { shardCommitteePeriod }: Pick<BeaconSpec, 'shardCommitteePeriod'>,
): number | undefined => (activationEpoch === undefined ? undefined : activationEpoch + shardCommitteePeriod)

/** The address in 0x01 and 0x02 credentials, in lower case; undefined for others, which no request can move. */
export const withdrawalAddressOf = (withdrawalCredentials: Hex): Address | undefined =>
  /^0x0[12]0{22}[0-9a-f]{40}$/i.test(withdrawalCredentials) ? (`0x${withdrawalCredentials.slice(26).toLowerCase()}` as const) : undefined

/** Whether the credentials are 0x02 (EIP-7251). */
export const isCompounding = (withdrawalCredentials: Hex): boolean => withdrawalCredentials.startsWith('0x02')

const unknown: BrokenRule = {
  code: 'unknown-validator',
  message: 'the beacon chain knows no validator with this public key: a new one is known once its deposit was processed',
  drops: true,
}

/** What exits and withdrawals have in common, in the specification's order. */
function commonBroken(state: RuleState, validator: BeaconValidator): readonly BrokenRule[] {
  const { epoch, spec, sender } = state
  const { activationEpoch, exitEpoch, slashed, withdrawalCredentials } = validator
  const address = withdrawalAddressOf(withdrawalCredentials)
  const earliest = earliestEligibleEpoch(validator, spec)
  const active = activationEpoch !== undefined && activationEpoch <= epoch && (exitEpoch === undefined || epoch < exitEpoch)
  return [
    ...when(
      address === undefined,
      'credentials-not-execution',
      () => `the validator's withdrawal credentials begin with ${withdrawalCredentials.slice(0, 4)}: a request needs 0x01 or 0x02`,
    ),
    ...when(
      address !== undefined && sender !== undefined && sender.toLowerCase() !== address,
      'sender-not-withdrawal-address',
      () => `the request comes from ${sender}, and only ${address}, the address in the validator's withdrawal credentials, may send it`,
    ),
    ...when(
      slashed,
      'slashed',
      () => `the validator was slashed and leaves by itself${exitEpoch === undefined ? '' : `, in epoch ${exitEpoch}`}`,
    ),
    ...when(!active, 'not-active', () => notActive(validator, epoch)),
    ...when(
      exitEpoch !== undefined && !slashed,
      'already-exiting',
      () =>
        `the validator's exit ${(exitEpoch ?? 0) <= epoch ? 'was' : 'is set to be'} in epoch ${exitEpoch}${consolidation(state, validator)}; it is epoch ${epoch}`,
    ),
    ...when(
      earliest !== undefined && epoch < earliest,
      'too-young',
      () =>
        `the validator is active since epoch ${activationEpoch} and may do this from epoch ${earliest} on (${spec.shardCommitteePeriod} epochs later); it is epoch ${epoch}`,
    ),
  ]
}

function notActive({ activationEpoch, exitEpoch }: BeaconValidator, epoch: number): string {
  if (activationEpoch === undefined) return `the validator waits for its activation, whose epoch is not set yet; it is epoch ${epoch}`
  if (epoch < activationEpoch) return `the validator becomes active in epoch ${activationEpoch}; it is epoch ${epoch}`
  return `the validator is not active since epoch ${exitEpoch}; it is epoch ${epoch}`
}

function anyWithdrawalBroken(state: RuleState, validator: BeaconValidator): readonly BrokenRule[] {
  const { spec, pendingPartialWithdrawals } = state
  const { effectiveBalanceGwei, withdrawalCredentials } = validator
  const compounding = isCompounding(withdrawalCredentials)
  const enough = effectiveBalanceGwei >= spec.minActivationBalanceGwei
  return [
    ...when(
      pendingPartialWithdrawals.length >= spec.pendingPartialWithdrawalsLimit,
      'withdrawal-queue-full',
      () => `the network's queue of partial withdrawals is full: it holds ${spec.pendingPartialWithdrawalsLimit}`,
    ),
    ...commonBroken(state, validator),
    ...when(
      !compounding,
      'credentials-not-compounding',
      () =>
        `the validator's withdrawal credentials begin with ${withdrawalCredentials.slice(0, 4)}, and partial withdrawals need 0x02${
          withdrawalCredentials.startsWith('0x01')
            ? `: what a 0x01 validator has over ${eth(spec.minActivationBalanceGwei)} is paid without a request`
            : ''
        }`,
    ),
    ...when(
      compounding && !enough,
      'effective-balance-too-low',
      () =>
        `the validator's effective balance is ${eth(effectiveBalanceGwei)}, and a partial withdrawal needs ${eth(spec.minActivationBalanceGwei)}`,
    ),
    ...when(
      compounding && enough && availableGwei(state, validator) === 0n,
      'nothing-available',
      () => `nothing is available: ${sum(state, validator)}`,
    ),
  ]
}

/** balance − MIN_ACTIVATION_BALANCE − what is pending, for a validator that partial withdrawals are possible for. */
function availableGwei(state: RuleState, validator: BeaconValidator): Gwei {
  const { spec } = state
  if (!isCompounding(validator.withdrawalCredentials) || validator.effectiveBalanceGwei < spec.minActivationBalanceGwei) return gwei(0n)
  const available = validator.balanceGwei - spec.minActivationBalanceGwei - pendingOf(state, validator).gwei
  return gwei(available > 0n ? available : 0n)
}

const sum = (state: RuleState, validator: BeaconValidator): string =>
  `the balance is ${validator.balanceGwei} gwei, of which ${state.spec.minActivationBalanceGwei} gwei must stay and ${pendingOf(state, validator).gwei} gwei are in withdrawals that are still to be paid`

function pendingOf({ pendingPartialWithdrawals }: RuleState, { index }: BeaconValidator) {
  const own = pendingPartialWithdrawals.filter(({ validatorIndex }) => validatorIndex === index)
  return {
    count: own.length,
    gwei: gwei(own.reduce((total, { amountGwei }) => total + amountGwei, 0n)),
    lastEpoch: Math.max(0, ...own.map(({ withdrawableEpoch }) => withdrawableEpoch)),
  }
}

const consolidation = ({ pendingConsolidations = [] }: RuleState, { index }: BeaconValidator): string => {
  const found = pendingConsolidations.find(({ sourceIndex }) => sourceIndex === index)
  return found === undefined ? '' : `, as it is consolidated into validator ${found.targetIndex}`
}

const when = (broken: boolean, code: RuleCode, message: () => string): readonly BrokenRule[] =>
  broken ? [{ code, message: message(), drops: true }] : []
const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
const eth = (amount: Gwei): string => `${formatEth(amount)} ETH`
