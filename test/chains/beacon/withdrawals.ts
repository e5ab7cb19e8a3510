import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import { FAR_FUTURE, type SimulatorSpec } from './spec.ts'
import { currentEpoch, hasExecutionCredentials, maxEffectiveBalance, type SimulatedState } from './state.ts'

/** Money on its way to an address of the execution layer, in gwei. */
export interface Withdrawal {
  readonly validatorIndex: number
  readonly address: Hex
  readonly amount: bigint
  readonly slot: number
}

/** consensus-specs, electra/beacon-chain.md: get_expected_withdrawals and process_withdrawals. Takes the money from the balances. */
export function processWithdrawals(state: SimulatedState, spec: SimulatorSpec): readonly Withdrawal[] {
  const epoch = currentEpoch(state, spec)
  const withdrawals: Withdrawal[] = []
  const withdraw = (index: number, amount: bigint): void => {
    const credentials = state.validators[index]?.withdrawalCredentials ?? '0x'
    withdrawals.push({ validatorIndex: index, address: `0x${credentials.slice(26)}`, amount, slot: state.slot })
    state.balances[index] = (state.balances[index] ?? 0n) - amount
  }

  let processed = 0
  for (const { validatorIndex, amount, withdrawableEpoch } of state.pendingPartialWithdrawals) {
    if (withdrawableEpoch > epoch || withdrawals.length === spec.MAX_PENDING_PARTIALS_PER_WITHDRAWALS_SWEEP) break
    const validator = state.validators[validatorIndex]
    const excess = (state.balances[validatorIndex] ?? 0n) - spec.MIN_ACTIVATION_BALANCE
    if (
      validator !== undefined &&
      validator.exitEpoch === FAR_FUTURE &&
      validator.effectiveBalance >= spec.MIN_ACTIVATION_BALANCE &&
      excess > 0n
    ) {
      withdraw(validatorIndex, excess < amount ? excess : amount)
    }
    processed += 1
  }
  state.pendingPartialWithdrawals = state.pendingPartialWithdrawals.slice(processed)

  const count = state.validators.length
  for (let step = 0; step < count && withdrawals.length < spec.MAX_WITHDRAWALS_PER_PAYLOAD; step += 1) {
    const index = (state.nextWithdrawalValidatorIndex + step) % count
    const validator = state.validators[index]
    const balance = state.balances[index] ?? 0n
    if (validator === undefined || !hasExecutionCredentials(validator)) continue
    const max = maxEffectiveBalance(validator, spec)
    if (validator.withdrawableEpoch <= epoch && balance > 0n) withdraw(index, balance)
    else if (validator.effectiveBalance === max && balance > max) withdraw(index, balance - max)
  }
  const last = withdrawals.at(-1)
  if (count > 0 && withdrawals.length === spec.MAX_WITHDRAWALS_PER_PAYLOAD && last !== undefined) {
    state.nextWithdrawalValidatorIndex = (last.validatorIndex + 1) % count
  }
  return withdrawals
}
