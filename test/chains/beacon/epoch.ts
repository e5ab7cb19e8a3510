import { verifyDepositSignature } from '../../../src/chains/ethereum/deposit.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import { FAR_FUTURE, type SimulatorSpec } from './spec.ts'
import {
  activationExitChurnLimit,
  computeActivationExitEpoch,
  currentEpoch,
  indexOf,
  initiateValidatorExit,
  isActive,
  maxEffectiveBalance,
  type QueuedDeposit,
  type SimulatedState,
  type SimulatedValidator,
} from './state.ts'

/** A deposit whose money is lost: a new key's signature was not its own. */
export interface LostDeposit {
  readonly deposit: QueuedDeposit
  readonly reason: 'invalid signature'
}

/** consensus-specs, electra/beacon-chain.md: process_epoch at the end of the state's epoch, as far as it is simulated. Everyone attests unless `finalize` is false. */
export function processEpoch(state: SimulatedState, spec: SimulatorSpec, finalize: boolean): readonly LostDeposit[] {
  const epoch = currentEpoch(state, spec)
  if (finalize && epoch > 1) {
    state.finalizedEpoch = state.justifiedEpoch
    state.justifiedEpoch = epoch
  }
  registryUpdates(state, spec, epoch)
  const lost = pendingDeposits(state, spec, epoch + 1)
  effectiveBalanceUpdates(state, spec)
  return lost
}

function registryUpdates(state: SimulatedState, spec: SimulatorSpec, epoch: number): void {
  for (const validator of state.validators) {
    if (validator.activationEligibilityEpoch === FAR_FUTURE && validator.effectiveBalance >= spec.MIN_ACTIVATION_BALANCE) {
      validator.activationEligibilityEpoch = epoch + 1
    } else if (isActive(validator, epoch) && validator.effectiveBalance <= spec.EJECTION_BALANCE) {
      initiateValidatorExit(state, spec, validator)
    } else if (validator.activationEpoch === FAR_FUTURE && validator.activationEligibilityEpoch <= state.finalizedEpoch) {
      validator.activationEpoch = computeActivationExitEpoch(epoch, spec)
    }
  }
}

/** process_pending_deposits */
function pendingDeposits(state: SimulatedState, spec: SimulatorSpec, nextEpoch: number): readonly LostDeposit[] {
  const available = state.depositBalanceToConsume + activationExitChurnLimit(state, spec)
  const finalizedSlot = state.finalizedEpoch * spec.SLOTS_PER_EPOCH
  const postponed: QueuedDeposit[] = []
  const lost: LostDeposit[] = []
  let processed = 0n
  let next = 0
  let churnReached = false
  const apply = (deposit: QueuedDeposit): void => {
    if (!applyDeposit(state, spec, deposit)) lost.push({ deposit, reason: 'invalid signature' })
  }
  for (const deposit of state.pendingDeposits) {
    if (deposit.slot > finalizedSlot || next >= spec.MAX_PENDING_DEPOSITS_PER_EPOCH) break
    const validator = state.validators[indexOf(state, deposit.pubkey) ?? -1]
    if (validator !== undefined && validator.withdrawableEpoch < nextEpoch) {
      apply(deposit)
    } else if (validator !== undefined && validator.exitEpoch < FAR_FUTURE) {
      postponed.push(deposit)
    } else {
      churnReached = processed + deposit.amount > available
      if (churnReached) break
      processed += deposit.amount
      apply(deposit)
    }
    next += 1
  }
  state.pendingDeposits = [...state.pendingDeposits.slice(next), ...postponed]
  state.depositBalanceToConsume = churnReached ? available - processed : 0n
  return lost
}

/** apply_pending_deposit: a known key is topped up whatever the signature; false when a new key's signature is wrong. */
function applyDeposit(state: SimulatedState, spec: SimulatorSpec, deposit: QueuedDeposit): boolean {
  const index = indexOf(state, deposit.pubkey)
  if (index !== undefined) {
    state.balances[index] = (state.balances[index] ?? 0n) + deposit.amount
    return true
  }
  if (!verifyDepositSignature({ ...deposit, amountGwei: gwei(deposit.amount) }, spec.GENESIS_FORK_VERSION)) return false
  addValidator(state, spec, deposit)
  return true
}

/** add_validator_to_registry */
export function addValidator(
  state: SimulatedState,
  spec: SimulatorSpec,
  deposit: Pick<QueuedDeposit, 'pubkey' | 'withdrawalCredentials' | 'amount'>,
): SimulatedValidator {
  const validator: SimulatedValidator = {
    pubkey: deposit.pubkey.toLowerCase() as typeof deposit.pubkey,
    withdrawalCredentials: deposit.withdrawalCredentials.toLowerCase() as typeof deposit.pubkey,
    effectiveBalance: 0n,
    slashed: false,
    activationEligibilityEpoch: FAR_FUTURE,
    activationEpoch: FAR_FUTURE,
    exitEpoch: FAR_FUTURE,
    withdrawableEpoch: FAR_FUTURE,
  }
  validator.effectiveBalance = wholeBalance(validator, spec, deposit.amount)
  state.validators.push(validator)
  state.balances.push(deposit.amount)
  return validator
}

/** process_effective_balance_updates: HYSTERESIS_QUOTIENT 4, downward 1, upward 5. */
function effectiveBalanceUpdates(state: SimulatedState, spec: SimulatorSpec): void {
  const step = spec.EFFECTIVE_BALANCE_INCREMENT / 4n
  for (const [index, validator] of state.validators.entries()) {
    const balance = state.balances[index] ?? 0n
    if (balance + step < validator.effectiveBalance || validator.effectiveBalance + 5n * step < balance) {
      validator.effectiveBalance = wholeBalance(validator, spec, balance)
    }
  }
}

const wholeBalance = (validator: SimulatedValidator, spec: SimulatorSpec, balance: bigint): bigint => {
  const whole = balance - (balance % spec.EFFECTIVE_BALANCE_INCREMENT)
  const max = maxEffectiveBalance(validator, spec)
  return whole < max ? whole : max
}
