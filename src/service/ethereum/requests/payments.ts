import { BeaconError, type BeaconValidator } from '../../../chains/ethereum/beacon.ts'
import { firstSlotOf, slotAt } from '../../../chains/ethereum/beacon-time.ts'
import { ChainError, type ChainHead } from '../../../chains/ethereum/chain.ts'
import type { ChainBlock } from '../../../chains/ethereum/request-queue.ts'
import {
  type AcceptedWithdrawal,
  type ClaimedPayment,
  type Payment,
  paymentIn,
  queuedPayment,
  unclaimed,
} from '../../../chains/ethereum/withdrawal-payment.ts'
import { gwei } from '../../../lib/amounts.ts'
import type { Logger } from '../../../lib/log.ts'
import type { Store } from '../../store/database.ts'
import { claimedPayments, type RequestRow, recordPayment, takeDuePayments } from '../../store/requests.ts'
import type { EthereumNetwork, ValidatorAccess } from '../networks.ts'
import { inParallel } from '../parallel.ts'
import { maxReason } from './verdict.ts'

const batchSize = 50
const concurrency = 4
/** Blocks that one look searches for a payment: those of a look that is an epoch old, and of many that were missed. The next look goes on. */
const maxBlocks = 1_024
/** A payload may pay what an earlier one should have (EIP-7732), so a few more are searched. */
const laterBlocks = 64n

export interface PaymentTracker {
  /** Looks once at the accepted withdrawals of a network that are due. Nobody's trouble is another's: what can't be asked now is asked later. */
  pass(network: EthereumNetwork, head: ChainHead, signal: AbortSignal): Promise<void>
}

/** Follows accepted withdrawals until they are paid, or are known to pay nothing: once an epoch, by the finalized state. */
export function createPaymentTracker(deps: { store: Store; log: Logger }): PaymentTracker {
  const { log } = deps
  const { db } = deps.store

  async function look(access: ValidatorAccess, head: ChainHead, row: RequestRow, signal: AbortSignal): Promise<void> {
    if (row.payable_gwei === null || row.withdrawable_epoch === null) return
    const accepted = { amountGwei: gwei(row.payable_gwei), withdrawableEpoch: Number(row.withdrawable_epoch) }
    const view = await access.beacon.withdrawalView(row.pubkey, 'finalized', signal)
    const queued = queuedPayment(view, accepted)
    if (queued.is === 'waiting') {
      await recordPayment(db, row, { payment_seen_slot: BigInt(view.slot) })
      return
    }
    const claimed = await claimedPayments(db, row)
    const payment =
      queued.is === 'void'
        ? queued
        : await searched(access, { head, row, accepted, to: view.slot, validator: view.validator, claimed }, signal)
    if (payment.is === 'searching') {
      await recordPayment(db, row, { payment_seen_slot: BigInt(payment.slot) })
      return
    }
    if (!(await recordPayment(db, row, columnsOf(payment), claimed.length))) return
    const line = { requestId: row.id, network: row.network, pubkey: row.pubkey, payment: payment.is }
    if (payment.is === 'paid') log.info({ ...line, amountGwei: payment.amountGwei.toString() }, 'a withdrawal was paid')
    else log.warn({ ...line, reason: payment.reason }, 'an accepted withdrawal pays nothing, or can no longer be followed')
  }

  return {
    async pass(network, head, signal) {
      const { validators: access, config } = network
      if (access === undefined) return
      try {
        const spec = await access.beacon.spec(signal)
        const epochMs = spec.slotDurationMs * spec.slotsPerEpoch
        const rows = await takeDuePayments(db, {
          network: config.name,
          limit: batchSize,
          intervalMs: Math.max(epochMs, config.pollIntervalMs),
        })
        await inParallel(concurrency, rows, (row) => look(access, head, row, signal))
      } catch (error) {
        if (!(error instanceof BeaconError) && !(error instanceof ChainError)) throw error
        log.debug({ err: error, network: config.name }, 'the payments of withdrawals could not be looked at; it tries again')
      }
    },
  }
}

interface Search {
  readonly head: ChainHead
  readonly row: RequestRow
  readonly accepted: AcceptedWithdrawal
  /** Of the first finalized state that hasn't it in the queue. */
  readonly to: number
  readonly validator: BeaconValidator | undefined
  /** What other withdrawals of the validator were paid by. */
  readonly claimed: readonly ClaimedPayment[]
}

/** There are more blocks than one look takes, and those up to this slot don't pay it. */
interface Searching {
  readonly is: 'searching'
  readonly slot: number
}

/** Searches the blocks since the withdrawal was last seen in the queue, or since those that were searched before. */
async function searched({ beacon, reads }: ValidatorAccess, search: Search, signal: AbortSignal): Promise<Payment | Searching> {
  const { head, row, accepted, to, validator, claimed } = search
  const [genesis, spec] = await Promise.all([beacon.genesis(signal), beacon.spec(signal)])
  const after = row.payment_seen_slot === null ? firstSlotOf(accepted.withdrawableEpoch, spec) - 1 : Number(row.payment_seen_slot)
  const slotOf = ({ timestamp }: ChainBlock): number => slotAt(genesis, spec, timestamp)
  const blockAt = async (number: bigint): Promise<ChainBlock> => {
    const block = await reads.blockAt(number, signal)
    if (block === undefined) throw new ChainError('unavailable', `no node has block ${number}`)
    return block
  }

  // The first block after that slot, by halves.
  let [low, high] = [row.consensus_block ?? row.block_number ?? 0n, head.latest]
  while (low < high) {
    const middle = (low + high) / 2n
    if (slotOf(await blockAt(middle)) > after) high = middle
    else low = middle + 1n
  }
  const blocks: ChainBlock[] = []
  let later = 0n
  let complete = false
  for (let number = low; blocks.length < maxBlocks; number += 1n) {
    if (number > head.latest || later > laterBlocks) {
      const last = blocks.at(-1)
      // A node of the execution layer that is behind the state hasn't shown the block yet that pays it.
      if (last === undefined || slotOf(last) < to) return { is: 'searching', slot: after }
      complete = true
      break
    }
    const block = unclaimed(await blockAt(number), validator?.index, claimed)
    blocks.push(block)
    if (slotOf(block) > to) later += 1n
    const found = paymentIn({ accepted, validator, blocks: [block], complete: false })
    if (found.is === 'paid' && found.amountGwei === accepted.amountGwei && found.blockNumber !== undefined) return found
  }
  const last = blocks.at(-1)
  const paysValidator = (block: ChainBlock): boolean =>
    block.withdrawals?.some(({ validatorIndex, amountGwei }) => validatorIndex === validator?.index && amountGwei > 0n) === true
  if (!complete && last !== undefined && !blocks.some(paysValidator)) return { is: 'searching', slot: slotOf(last) }
  return paymentIn({ accepted, validator, blocks, complete })
}

const columnsOf = (payment: Payment) =>
  payment.is === 'paid'
    ? { payment_status: payment.is, payable_gwei: payment.amountGwei, paid_block: payment.blockNumber ?? null }
    : { payment_status: payment.is, payment_reason: payment.reason.slice(0, maxReason) }
