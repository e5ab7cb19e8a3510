import { z } from 'zod'
import {
  count,
  ethereumAddress,
  externalReference,
  gweiAmount,
  hexData,
  id,
  page,
  pageQuery,
  positiveGweiAmount,
  pubkey,
  time,
  weiAmount,
} from './common.ts'
import { credentialsType, minedFields, transactionStatus, validatorStatus } from './ethereum-stake.ts'

/** No field is required, and so no body is. */
export const createExitRequestBody = z
  .strictObject({ externalReference: externalReference.optional() })
  .nullish()
  .meta({ id: 'CreateExitRequest' })

export const createWithdrawalRequestBody = z
  .strictObject({ amountGwei: positiveGweiAmount, externalReference: externalReference.optional() })
  .meta({ id: 'CreateWithdrawalRequest' })

/** An EIP-7002 call for the client to sign with the key of `from`, the validator's withdrawal address. */
const requestTransaction = z
  .object({ chainId: z.int().positive(), from: ethereumAddress, to: ethereumAddress, data: hexData(4096), valueWei: weiAmount })
  .meta({ id: 'UnsignedRequestTransaction' })

/**
 * Accepted is not paid: the consensus layer may cut a withdrawal to what is available, and pays nothing for one whose validator begins to exit before its turn.
 * `unknown`: it left the queue, and whether it was paid can't be told any more.
 */
const withdrawalPayment = z
  .object({
    status: z.enum(['waiting', 'paid', 'void', 'unknown']),
    /** What is to be paid, or was. Less than what was asked for when less was available. */
    amountGwei: gweiAmount,
    /** From this epoch on it can be paid. */
    withdrawableEpoch: count,
    /** The block of the execution layer that paid it. */
    blockNumber: count.optional(),
    /** With `void` and `unknown`. */
    reason: z.string().max(1024).optional(),
  })
  .meta({ id: 'WithdrawalPayment' })

const shape = {
  requestId: id,
  pubkey,
  externalReference: externalReference.optional(),
  unsignedTransaction: requestTransaction,
  /** The contract's fee, and the block in which it was asked for. */
  fee: z.object({ feeWei: weiAmount, quotedAtBlock: count }),
  transaction: z.object(minedFields),
  /** Mined is not accepted: the consensus layer drops what its rules forbid, and says nothing. */
  consensus: z.object({
    status: z.enum(['pending', 'accepted', 'dropped']),
    reason: z.string().max(1024).optional(),
    /** Of an accepted withdrawal. Beyond the interface. */
    payment: withdrawalPayment.optional(),
  }),
  createdAt: time,
}

/**
 * Deposits for the validator that were queued when the exit was asked for, or when it began: they are credited after its balance can be withdrawn, and paid to
 * the withdrawal address by themselves. Left out where there are none, or no node tells. Beyond the interface.
 */
const queuedDeposits = z
  .object({
    amountGwei: positiveGweiAmount,
    /** Known once the exit was accepted. */
    creditedAfterEpoch: count.optional(),
  })
  .meta({ id: 'QueuedDeposits' })

const requestStatus = z.enum([...transactionStatus.options, 'cancelled'])

export const exitRequest = z
  .object({ ...shape, status: requestStatus, queuedDeposits: queuedDeposits.optional() })
  .meta({ id: 'ExitRequest' })
export type ExitRequestBody = z.output<typeof exitRequest>
export const exitRequestPage = page(exitRequest).meta({ id: 'ExitRequestPage' })

/** `cancelled` is beyond the interface: only who cancels a withdrawal sees it. */
export const withdrawalRequest = z
  .object({ ...shape, amountGwei: positiveGweiAmount, status: requestStatus })
  .meta({ id: 'WithdrawalRequest' })
export type WithdrawalRequestBody = z.output<typeof withdrawalRequest>
export const withdrawalRequestPage = page(withdrawalRequest).meta({ id: 'WithdrawalRequestPage' })

export const requestsQuery = pageQuery.extend({ externalReference: externalReference.optional() })

/** For display: what the consensus layer knows of a validator now. Creating a request validates by itself. */
export const withdrawalCapacity = z
  .object({
    pubkey,
    asOfEpoch: count,
    eligible: z.boolean(),
    /** Why it is not eligible; empty when it is. */
    reasons: z.array(z.string().max(256)).max(32),
    credentialsType: z.enum(['0x00', ...credentialsType.options]),
    validatorStatus,
    balanceGwei: gweiAmount,
    effectiveBalanceGwei: gweiAmount,
    pendingWithdrawalsGwei: gweiAmount,
    availableGwei: gweiAmount,
    earliestEligibleEpoch: count.optional(),
    requestFeeWei: weiAmount,
  })
  .meta({ id: 'WithdrawalCapacity' })
export type WithdrawalCapacityBody = z.output<typeof withdrawalCapacity>
