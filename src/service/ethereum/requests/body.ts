import { z } from 'zod'
import type { Hex } from '../../../chains/ethereum/chain.ts'
import { type ExitRequestBody, exitRequest, type WithdrawalRequestBody } from '../../../contract/schemas/ethereum-requests.ts'
import { gwei, wei } from '../../../lib/amounts.ts'
import type { RequestRow } from '../../store/requests.ts'
import { maxReason } from './verdict.ts'

export const unsignedTransaction = exitRequest.shape.unsignedTransaction

/** A stored exit request as the contract's resource. */
export const exitBody = (row: RequestRow): ExitRequestBody => ({
  ...common(row),
  status: row.status,
  ...(row.queued_deposits_gwei === null
    ? {}
    : {
        queuedDeposits: {
          amountGwei: gwei(row.queued_deposits_gwei),
          ...(row.queued_deposits_epoch === null ? {} : { creditedAfterEpoch: Number(row.queued_deposits_epoch) }),
        },
      }),
})

/** A stored withdrawal request as the contract's resource. */
export function withdrawalBody(row: RequestRow): WithdrawalRequestBody {
  const { status, amount_gwei: amount } = row
  // The tables say the same in their checks.
  if (amount === null) throw new Error(`the row of withdrawal request ${row.id} is not one`)
  return { ...common(row), amountGwei: gwei(amount), status }
}

const common = (row: RequestRow) => ({
  requestId: row.id,
  pubkey: row.pubkey,
  ...(row.external_reference === null ? {} : { externalReference: row.external_reference }),
  unsignedTransaction: z.decode(unsignedTransaction, row.unsigned_transaction as z.input<typeof unsignedTransaction>),
  fee: { feeWei: wei(BigInt(row.fee_wei)), quotedAtBlock: Number(row.quoted_at_block) },
  transaction: {
    ...(row.hash === null ? {} : { hash: row.hash }),
    ...(row.block_number === null ? {} : { blockNumber: Number(row.block_number) }),
    ...(row.block_hash === null ? {} : { blockHash: row.block_hash as Hex }),
    ...(row.failure_reason === null ? {} : { failureReason: row.failure_reason }),
  },
  consensus: { ...consensusBody(row), ...paymentBody(row) },
  createdAt: row.created_at.toISOString(),
})

/**
 * Who is told that a request was dropped may ask again, and be paid twice if it wasn't: so it is told once the block that handed it on is final, and was judged
 * as such. Before, the nodes of the two layers may stand on different forks. What was accepted is told at once: nothing is done because of it.
 */
function consensusBody({ consensus_status: status, consensus_reason: reason, consensus_block: block, settled }: RequestRow) {
  if (status !== 'dropped' || settled) return { status, ...(reason === null ? {} : { reason }) }
  const until = block === null ? 'its block is final' : `block ${block} is final`
  return {
    status: 'pending' as const,
    reason: `not certain before ${until}, by the states so far it was dropped: ${reason ?? ''}`.slice(0, maxReason),
  }
}

const paymentBody = (row: RequestRow) =>
  row.payment_status === null || row.payable_gwei === null || row.withdrawable_epoch === null
    ? {}
    : {
        payment: {
          status: row.payment_status,
          amountGwei: gwei(row.payable_gwei),
          withdrawableEpoch: Number(row.withdrawable_epoch),
          ...(row.paid_block === null ? {} : { blockNumber: Number(row.paid_block) }),
          ...(row.payment_reason === null ? {} : { reason: row.payment_reason }),
        },
      }
