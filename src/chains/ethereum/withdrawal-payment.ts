import type { Gwei } from '../../lib/amounts.ts'
import type { WithdrawalView } from './beacon.ts'
import type { ChainBlock } from './request-queue.ts'

/** A partial withdrawal in the consensus layer's queue, as it was accepted. */
export interface AcceptedWithdrawal {
  readonly amountGwei: Gwei
  readonly withdrawableEpoch: number
}

export type QueuedPayment =
  | { readonly is: 'waiting' }
  /** It is in the queue and will be passed over. */
  | { readonly is: 'void'; readonly reason: string }
  /** It is not in the queue any more: paid, or passed over when its turn came. */
  | { readonly is: 'gone' }

/**
 * Accepted is not paid. When its turn comes, a queued withdrawal of a validator whose exit epoch is set pays nothing (consensus-specs, electra and
 * gloas/beacon-chain.md: get_pending_partial_withdrawals, is_eligible_for_partial_withdrawals), and no exit is ever taken back. Pure.
 * @param view Of a finalized state: what it says is for good.
 */
export function queuedPayment(view: WithdrawalView, { amountGwei, withdrawableEpoch }: AcceptedWithdrawal): QueuedPayment {
  const { validator, pendingPartialWithdrawals, epoch } = view
  const queued = pendingPartialWithdrawals.some(
    (entry) =>
      entry.validatorIndex === validator?.index && entry.amountGwei === amountGwei && entry.withdrawableEpoch === withdrawableEpoch,
  )
  if (!queued) return { is: epoch < withdrawableEpoch ? 'waiting' : 'gone' }
  if (validator?.exitEpoch === undefined) return { is: 'waiting' }
  const why = validator.slashed ? 'the validator was slashed and exits' : 'the validator exits'
  return {
    is: 'void',
    reason: `${why} in epoch ${validator.exitEpoch}, before the turn of this withdrawal: it pays nothing, and the amount comes with the validator's whole balance${validator.withdrawableEpoch === undefined ? '' : ` from epoch ${validator.withdrawableEpoch} on`}`,
  }
}

/** What another withdrawal of the validator was paid by. */
export interface ClaimedPayment {
  readonly blockNumber: bigint
  readonly amountGwei: Gwei
}

/** A block without what others were paid by: of two withdrawals alike each has a payment of its own, or none. */
export function unclaimed(block: ChainBlock, validatorIndex: number | undefined, claimed: readonly ClaimedPayment[]): ChainBlock {
  const taken = claimed.filter(({ blockNumber }) => blockNumber === block.number).map(({ amountGwei }) => amountGwei)
  if (taken.length === 0 || block.withdrawals === undefined) return block
  const withdrawals = block.withdrawals.filter((one) => {
    const at = one.validatorIndex === validatorIndex ? taken.indexOf(one.amountGwei) : -1
    if (at >= 0) taken.splice(at, 1)
    return at < 0
  })
  return { ...block, withdrawals }
}

export type Payment =
  | { readonly is: 'paid'; readonly amountGwei: Gwei; readonly blockNumber?: bigint }
  | { readonly is: 'void'; readonly reason: string }
  | { readonly is: 'unknown'; readonly reason: string }

/**
 * What became of a withdrawal that left the queue, by the withdrawals in the blocks of the execution layer from when it was last seen there (EIP-4895).
 * @param blocks All of them, or fewer with `complete` false.
 */
export function paymentIn(given: {
  readonly accepted: AcceptedWithdrawal
  readonly validator: WithdrawalView['validator']
  readonly blocks: readonly ChainBlock[]
  readonly complete: boolean
}): Payment {
  const { accepted, validator, blocks, complete } = given
  const own = blocks.flatMap(({ number, withdrawals = [] }) =>
    withdrawals
      .filter((one) => one.validatorIndex === validator?.index && one.amountGwei > 0n && one.amountGwei <= accepted.amountGwei)
      .map(({ amountGwei }) => ({ amountGwei, blockNumber: number })),
  )
  const found = own.find(({ amountGwei }) => amountGwei === accepted.amountGwei) ?? own[0]
  if (found !== undefined) return { is: 'paid', ...found }
  // A chain whose blocks hold no withdrawals at all, such as a simulated one, proves nothing by holding none of this validator.
  const proven = complete && blocks.some(({ withdrawals = [] }) => withdrawals.length > 0)
  if (proven) return { is: 'void', reason: 'its turn has passed, and no block of the execution layer pays it' }
  if (validator !== undefined && validator.exitEpoch === undefined) return { is: 'paid', amountGwei: accepted.amountGwei }
  return {
    is: 'unknown',
    reason:
      'it left the queue at a time when the validator may have been exiting already, and the blocks of then were not found: look at the withdrawal address',
  }
}
