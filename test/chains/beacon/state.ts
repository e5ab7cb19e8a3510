import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { FAR_FUTURE, type SimulatorSpec } from './spec.ts'

/** consensus-specs, phase0/beacon-chain.md: Validator. Amounts in gwei. */
export interface SimulatedValidator {
  readonly pubkey: Hex
  readonly withdrawalCredentials: Hex
  effectiveBalance: bigint
  slashed: boolean
  activationEligibilityEpoch: number
  activationEpoch: number
  exitEpoch: number
  withdrawableEpoch: number
}

export interface DepositRequest {
  readonly pubkey: Hex
  readonly withdrawalCredentials: Hex
  readonly amount: bigint
  readonly signature: Hex
}
export interface QueuedDeposit extends DepositRequest {
  readonly slot: number
}

/** EIP-7002: an amount of 0 is a full exit. */
export interface WithdrawalRequest {
  readonly sourceAddress: Hex
  readonly validatorPubkey: Hex
  readonly amount: bigint
}

export interface QueuedPartial {
  readonly validatorIndex: number
  readonly amount: bigint
  readonly withdrawableEpoch: number
}

/** The part of the beacon state (electra/beacon-chain.md: BeaconState) that deposits, exits and withdrawals depend on. */
export interface SimulatedState {
  slot: number
  validators: SimulatedValidator[]
  balances: bigint[]
  pendingDeposits: QueuedDeposit[]
  depositBalanceToConsume: bigint
  exitBalanceToConsume: bigint
  earliestExitEpoch: number
  pendingPartialWithdrawals: QueuedPartial[]
  /** Of the EIP-7002 contract: a payload takes only so many. */
  requestQueue: WithdrawalRequest[]
  justifiedEpoch: number
  finalizedEpoch: number
  nextWithdrawalValidatorIndex: number
  /** The last block of the execution layer that was read. */
  executed: { readonly number: number; readonly hash: Hex }
}

export const genesisState = (executed: SimulatedState['executed']): SimulatedState => ({
  slot: 0,
  validators: [],
  balances: [],
  pendingDeposits: [],
  depositBalanceToConsume: 0n,
  exitBalanceToConsume: 0n,
  earliestExitEpoch: 0,
  pendingPartialWithdrawals: [],
  requestQueue: [],
  justifiedEpoch: 0,
  finalizedEpoch: 0,
  nextWithdrawalValidatorIndex: 0,
  executed,
})

/** Everything below is named as in consensus-specs. */
export const currentEpoch = (state: SimulatedState, spec: SimulatorSpec): number => Math.floor(state.slot / spec.SLOTS_PER_EPOCH)
export const isActive = (validator: SimulatedValidator, epoch: number): boolean =>
  validator.activationEpoch <= epoch && epoch < validator.exitEpoch
export const isCompounding = ({ withdrawalCredentials }: SimulatedValidator): boolean => withdrawalCredentials.startsWith('0x02')
export const hasExecutionCredentials = ({ withdrawalCredentials }: SimulatedValidator): boolean => /^0x0[12]/.test(withdrawalCredentials)
export const maxEffectiveBalance = (validator: SimulatedValidator, spec: SimulatorSpec): bigint =>
  isCompounding(validator) ? spec.MAX_EFFECTIVE_BALANCE_ELECTRA : spec.MIN_ACTIVATION_BALANCE
export const indexOf = (state: SimulatedState, pubkey: Hex): number | undefined => {
  const index = state.validators.findIndex((validator) => validator.pubkey === pubkey.toLowerCase())
  return index < 0 ? undefined : index
}
export const computeActivationExitEpoch = (epoch: number, spec: SimulatorSpec): number => epoch + 1 + spec.MAX_SEED_LOOKAHEAD

export function activationExitChurnLimit(state: SimulatedState, spec: SimulatorSpec): bigint {
  const epoch = currentEpoch(state, spec)
  const total = state.validators.reduce((sum, validator) => sum + (isActive(validator, epoch) ? validator.effectiveBalance : 0n), 0n)
  const byTotal = total / spec.CHURN_LIMIT_QUOTIENT
  const churn = byTotal > spec.MIN_PER_EPOCH_CHURN_LIMIT_ELECTRA ? byTotal : spec.MIN_PER_EPOCH_CHURN_LIMIT_ELECTRA
  const whole = churn - (churn % spec.EFFECTIVE_BALANCE_INCREMENT)
  return whole < spec.MAX_PER_EPOCH_ACTIVATION_EXIT_CHURN_LIMIT ? whole : spec.MAX_PER_EPOCH_ACTIVATION_EXIT_CHURN_LIMIT
}

export function computeExitEpochAndUpdateChurn(state: SimulatedState, spec: SimulatorSpec, exitBalance: bigint): number {
  let earliest = Math.max(state.earliestExitEpoch, computeActivationExitEpoch(currentEpoch(state, spec), spec))
  const churn = activationExitChurnLimit(state, spec)
  let toConsume = state.earliestExitEpoch < earliest ? churn : state.exitBalanceToConsume
  if (exitBalance > toConsume) {
    const additional = (exitBalance - toConsume - 1n) / churn + 1n
    earliest += Number(additional)
    toConsume += additional * churn
  }
  state.exitBalanceToConsume = toConsume - exitBalance
  state.earliestExitEpoch = earliest
  return earliest
}

export function initiateValidatorExit(state: SimulatedState, spec: SimulatorSpec, validator: SimulatedValidator): void {
  if (validator.exitEpoch !== FAR_FUTURE) return
  validator.exitEpoch = computeExitEpochAndUpdateChurn(state, spec, validator.effectiveBalance)
  validator.withdrawableEpoch = validator.exitEpoch + spec.MIN_VALIDATOR_WITHDRAWABILITY_DELAY
}
