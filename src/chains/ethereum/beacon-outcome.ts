import type { Gwei } from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import type { BeaconSpec, PendingPartialWithdrawal, WithdrawalView } from './beacon.ts'
import type { LoggedRequest } from './requests.ts'
import { type BrokenRule, exitBroken, type RuleState, withdrawalAddressOf, withdrawalBroken } from './withdrawal-rules.ts'

/** What the consensus layer made of a request. */
export type RequestOutcome =
  | { readonly status: 'accepted'; readonly kind: 'exit'; readonly exitEpoch: number; readonly withdrawableEpoch: number | undefined }
  /** `amountGwei` is less than what was asked for when less was available. */
  | { readonly status: 'accepted'; readonly kind: 'withdrawal'; readonly amountGwei: Gwei; readonly withdrawableEpoch: number }
  | { readonly status: 'dropped'; readonly broken: readonly [BrokenRule, ...BrokenRule[]] }
  /** These states show neither an effect nor a rule against it. */
  | { readonly status: 'not shown' }

/**
 * Tells a request that was taken from one that was dropped, by the states around the block of the beacon chain that processed it: mined says nothing.
 * An accepted exit has set the validator's exit epoch; an accepted withdrawal stands in the queue; a dropped one has changed nothing, so that the
 * states around it still break the rule. Pure.
 *
 * Of several requests of one validator in a block, the first ones are taken: a withdrawal that is cut leaves nothing for those after it, and an exit
 * ends them (consensus-specs, electra/beacon-chain.md: process_withdrawal_request).
 */
export function requestOutcome(input: {
  readonly logged: LoggedRequest
  readonly spec: BeaconSpec
  /** The state at the slot before. */
  readonly before: WithdrawalView
  /** The state at the slot of the block that processed it: its own slot, or from Gloas on the slot of the next block. */
  readonly after: WithdrawalView
  /** The validator's requests that were processed together, in order, with this one at `index`. Default: this one alone. */
  readonly batch?: readonly LoggedRequest[]
  readonly index?: number
}): RequestOutcome {
  const { logged, spec, before, after, batch = [logged], index = 0 } = input
  const { request, source } = logged
  const owner = withdrawalAddressOf(after.validator?.withdrawalCredentials ?? '0x')
  /** How many of the same kind that may be taken come before it. */
  const rank = batch.slice(0, index).filter((one) => one.request.kind === request.kind && isFrom(one, owner)).length
  const rules: RuleState = { ...after, spec, sender: source }
  // A balance moves a little within a block, and what was pending may have been paid in it.
  const earlier: RuleState = { ...rules, ...before, epoch: after.epoch }
  if (request.kind === 'exit') {
    const { exitEpoch, withdrawableEpoch, slashed } = after.validator ?? {}
    const begun = exitEpoch !== undefined && before.validator !== undefined && before.validator.exitEpoch === undefined && slashed !== true
    if (begun && rank === 0 && isFrom(logged, owner)) return { status: 'accepted', kind: 'exit', exitEpoch, withdrawableEpoch }
    return droppedBy(exitBroken(rules), exitBroken(earlier))
  }
  const added = addedFor(after.validator?.index, before.pendingPartialWithdrawals, after.pendingPartialWithdrawals)
  const entry = isFrom(logged, owner) ? added[rank] : undefined
  if (entry !== undefined && entry.amountGwei <= request.amountGwei) {
    return { status: 'accepted', kind: 'withdrawal', amountGwei: entry.amountGwei, withdrawableEpoch: entry.withdrawableEpoch }
  }
  if (entry !== undefined) return { status: 'not shown' }
  return droppedBy(withdrawalBroken(rules, request.amountGwei), withdrawalBroken(earlier, request.amountGwei))
}

const isFrom = ({ source }: LoggedRequest, owner: string | undefined): boolean => owner !== undefined && sameHex(source, owner)

function droppedBy(...states: readonly (readonly BrokenRule[])[]): RequestOutcome {
  for (const rules of states) {
    const [first, ...others] = rules.filter(({ drops }) => drops)
    if (first !== undefined) return { status: 'dropped', broken: [first, ...others] }
  }
  return { status: 'not shown' }
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
