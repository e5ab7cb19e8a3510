import type { BeaconBlock } from '../../../chains/ethereum/beacon.ts'
import { type Gwei, gwei } from '../../../lib/amounts.ts'
import type { RequestRow, SeenOfRequest } from '../../store/requests.ts'
import type { Outcome } from '../outcome.ts'
import { type Decided, rulesIn, type Verdict } from './verdict.ts'

/** What the row says of a request that was looked at. */
export const columnsOf = (
  outcome: Outcome,
  verdict: Verdict,
): Omit<SeenOfRequest, 'settled' | 'checked_head' | 'queued_deposits_gwei' | 'queued_deposits_epoch'> => ({
  status: outcome.status,
  hash: outcome.hash,
  block_number: outcome.blockNumber ?? null,
  block_hash: outcome.blockHash ?? null,
  failure_reason: outcome.status === 'failed' ? outcome.reason : null,
  consensus_status: verdict.status,
  consensus_reason: verdict.reason ?? null,
  consensus_block: verdict.status === 'pending' ? null : verdict.judgedAt,
  consensus_block_hash: (verdict.status === 'pending' ? undefined : verdict.judgedBy) ?? null,
  ...processingColumns(verdict.status === 'pending' ? undefined : verdict.processedBy),
  queue_position: (verdict.status === 'pending' ? verdict.place?.position : undefined) ?? null,
  queue_turn: (verdict.status === 'pending' ? verdict.place?.turn : undefined) ?? null,
  ...paymentColumns(verdict.status === 'accepted' ? verdict.payment : undefined),
})

const processingColumns = (block: BeaconBlock | undefined) => ({
  consensus_slot: block === undefined ? null : BigInt(block.slot),
  consensus_root: block?.root ?? null,
})

const paymentColumns = (payment: { readonly amountGwei: Gwei; readonly withdrawableEpoch: number } | undefined) =>
  payment === undefined
    ? { payment_status: null, payable_gwei: null, withdrawable_epoch: null }
    : { payment_status: 'waiting' as const, payable_gwei: payment.amountGwei, withdrawable_epoch: BigInt(payment.withdrawableEpoch) }

/** The judgement that stands in the row, if there is one. */
export function storedVerdict(row: RequestRow): Decided | undefined {
  const { consensus_status: status, consensus_reason: reason, payable_gwei: amount, withdrawable_epoch: epoch } = row
  const judgedAt = row.consensus_block ?? row.block_number ?? 0n
  const by = {
    ...(row.consensus_block_hash === null ? {} : { judgedBy: row.consensus_block_hash }),
    ...(row.consensus_slot === null || row.consensus_root === null
      ? {}
      : { processedBy: { slot: Number(row.consensus_slot), root: row.consensus_root } }),
  }
  if (status === 'dropped') {
    const rules = rulesIn(reason ?? '')
    // Of a version that judged without a rule: judged anew.
    return reason === null || rules === undefined ? undefined : { status, judgedAt, ...by, reason, rules }
  }
  if (status === 'pending') return undefined
  return {
    status,
    judgedAt,
    ...by,
    ...(reason === null ? {} : { reason }),
    ...(amount === null || epoch === null ? {} : { payment: { amountGwei: gwei(amount), withdrawableEpoch: Number(epoch) } }),
  }
}
