import type { SimulatorSpec } from './spec.ts'
import { FAR_FUTURE } from './spec.ts'
import {
  computeExitEpochAndUpdateChurn,
  currentEpoch,
  hasExecutionCredentials,
  indexOf,
  initiateValidatorExit,
  isActive,
  isCompounding,
  type SimulatedState,
  type WithdrawalRequest,
} from './state.ts'

/** What became of a request. A real node says nothing of those that it drops. */
export type RequestResult = { readonly accepted: true } | { readonly accepted: false; readonly reason: DropReason }
export type DropReason =
  | 'queue is full'
  | 'unknown pubkey'
  | 'no execution credentials'
  | 'wrong source address'
  | 'not active'
  | 'exit already initiated'
  | 'active for less than SHARD_COMMITTEE_PERIOD'
  | 'pending partial withdrawals'
  | 'not compounding'
  | 'effective balance below MIN_ACTIVATION_BALANCE'
  | 'no excess balance'

/** consensus-specs, electra/beacon-chain.md: process_withdrawal_request, in its order. */
export function processWithdrawalRequest(state: SimulatedState, spec: SimulatorSpec, request: WithdrawalRequest): RequestResult {
  const drop = (reason: DropReason): RequestResult => ({ accepted: false, reason })
  const isFullExit = request.amount === 0n
  if (state.pendingPartialWithdrawals.length === spec.PENDING_PARTIAL_WITHDRAWALS_LIMIT && !isFullExit) return drop('queue is full')
  const index = indexOf(state, request.validatorPubkey)
  const validator = index === undefined ? undefined : state.validators[index]
  if (index === undefined || validator === undefined) return drop('unknown pubkey')
  if (!hasExecutionCredentials(validator)) return drop('no execution credentials')
  if (validator.withdrawalCredentials.slice(26) !== request.sourceAddress.slice(2).toLowerCase()) return drop('wrong source address')
  const epoch = currentEpoch(state, spec)
  if (!isActive(validator, epoch)) return drop('not active')
  if (validator.exitEpoch !== FAR_FUTURE) return drop('exit already initiated')
  if (epoch < validator.activationEpoch + spec.SHARD_COMMITTEE_PERIOD) return drop('active for less than SHARD_COMMITTEE_PERIOD')

  const pending = state.pendingPartialWithdrawals.reduce((sum, entry) => sum + (entry.validatorIndex === index ? entry.amount : 0n), 0n)
  if (isFullExit) {
    if (pending !== 0n) return drop('pending partial withdrawals')
    initiateValidatorExit(state, spec, validator)
    return { accepted: true }
  }
  const excess = (state.balances[index] ?? 0n) - spec.MIN_ACTIVATION_BALANCE - pending
  if (!isCompounding(validator)) return drop('not compounding')
  if (validator.effectiveBalance < spec.MIN_ACTIVATION_BALANCE) return drop('effective balance below MIN_ACTIVATION_BALANCE')
  if (excess <= 0n) return drop('no excess balance')
  const amount = excess < request.amount ? excess : request.amount
  const exitQueueEpoch = computeExitEpochAndUpdateChurn(state, spec, amount)
  const withdrawableEpoch = exitQueueEpoch + spec.MIN_VALIDATOR_WITHDRAWABILITY_DELAY
  state.pendingPartialWithdrawals.push({ validatorIndex: index, amount, withdrawableEpoch })
  return { accepted: true }
}
