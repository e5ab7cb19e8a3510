import type { Gwei } from '../../lib/amounts.ts'
import type { BeaconSpec, PendingPartialWithdrawal, WithdrawalView } from './beacon.ts'
import type { LoggedRequest } from './requests.ts'
import { type BrokenRule, exitBroken, type RuleState, withdrawalBroken } from './withdrawal-rules.ts'

/** What the consensus layer made of a request. */
export type RequestOutcome =
  | { readonly status: 'accepted'; readonly kind: 'exit'; readonly exitEpoch: number; readonly withdrawableEpoch: number | undefined }
  /** `amountGwei` is less than what was asked for when less was available. */
  | { readonly status: 'accepted'; readonly kind: 'withdrawal'; readonly amountGwei: Gwei; readonly withdrawableEpoch: number }
  /** `broken` is empty when the state shows no reason: another request in the same block came first. */
  | { readonly status: 'dropped'; readonly broken: readonly BrokenRule[] }

/**
 * Tells a request that was taken from one that was dropped, by the states around the slot of the block that held it: mined says nothing.
 * An accepted exit has set the validator's exit epoch; an accepted withdrawal stands in the queue; a dropped one has changed nothing, so that the
 * state after it still breaks the rule. Pure.
 */
export function requestOutcome(input: {
  readonly logged: LoggedRequest
  readonly spec: BeaconSpec
  /** The state at the slot before. */
  readonly before: WithdrawalView
  /** The state at the slot of the block. */
  readonly after: WithdrawalView
}): RequestOutcome {
  const { logged, spec, before, after } = input
  const { request, source } = logged
  const rules: RuleState = { ...after, spec, sender: source }
  if (request.kind === 'exit') {
    const { exitEpoch, withdrawableEpoch } = after.validator ?? {}
    if (exitEpoch !== undefined && before.validator?.exitEpoch === undefined) {
      return { status: 'accepted', kind: 'exit', exitEpoch, withdrawableEpoch }
    }
    return { status: 'dropped', broken: exitBroken(rules) }
  }
  const added = addedFor(after.validator?.index, before.pendingPartialWithdrawals, after.pendingPartialWithdrawals).find(
    ({ amountGwei }) => amountGwei <= request.amountGwei,
  )
  if (added !== undefined) {
    return { status: 'accepted', kind: 'withdrawal', amountGwei: added.amountGwei, withdrawableEpoch: added.withdrawableEpoch }
  }
  return { status: 'dropped', broken: withdrawalBroken(rules, request.amountGwei).filter(({ drops }) => drops) }
}

/** The queue loses entries at its front only and gains them at its end only. */
function addedFor(
  index: number | undefined,
  before: readonly PendingPartialWithdrawal[],
  after: readonly PendingPartialWithdrawal[],
): readonly PendingPartialWithdrawal[] {
  const same = (a: PendingPartialWithdrawal, b: PendingPartialWithdrawal | undefined): boolean =>
    a.validatorIndex === b?.validatorIndex && a.amountGwei === b.amountGwei && a.withdrawableEpoch === b.withdrawableEpoch
  // How many were paid: the smallest number by which the rest of the old queue is the beginning of the new one.
  let paid = 0
  while (before.some((entry, position) => position >= paid && !same(entry, after[position - paid]))) paid += 1
  return after.slice(before.length - paid).filter(({ validatorIndex }) => validatorIndex === index)
}
