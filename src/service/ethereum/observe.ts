import type { z } from 'zod'
import type { Address, ChainHead, ChainReceipt, ChainTransaction, EthereumChain, Hash } from '../../chains/ethereum/chain.ts'
import type { depositData } from '../../contract/schemas/ethereum-stake.ts'
import type { HashRow, StakeRow } from '../store/stakes.ts'
import { isFinal, type Observed } from './outcome.ts'
import { depositsIn, type ExpectedPayment, paymentMismatch } from './payment.ts'
import { isSameNonce } from './supersede.ts'

/** What a stake's row says must be paid, from the deposit data as it was handed out. */
export function expectedPayment(stake: Pick<StakeRow, 'deposit_data'>): ExpectedPayment {
  const deposit = stake.deposit_data as z.input<typeof depositData>
  return {
    depositContractAddress: deposit.depositContractAddress,
    pubkey: deposit.pubkey,
    withdrawalCredentials: deposit.withdrawalCredentials,
    amountGwei: BigInt(deposit.amountGwei),
    signature: deposit.signature,
  }
}

/** Why a mined and successful transaction is not what was asked for; undefined when it is. */
export type Mismatch = (receipt: ChainReceipt, transaction: ChainTransaction) => string | undefined

/** Why a mined transaction does not pay a stake. */
export function mismatchOf(stake: StakeRow): Mismatch {
  const expected = expectedPayment(stake)
  return (receipt) => paymentMismatch(expected, depositsIn(receipt, expected.depositContractAddress))
}

/**
 * A transaction's receipt as far as all nodes bear it out. One whose block is at a final height counts only where that block is in the chain of the
 * node that shows it and no other node says otherwise: a node may show a receipt of a block that has left the chain, or stand on a fork.
 */
export async function receiptIn(
  chain: Pick<EthereumChain, 'trace'>,
  head: ChainHead,
  hash: Hash,
  signal: AbortSignal,
): Promise<ChainReceipt | undefined> {
  const { final, mined } = await chain.trace([hash], signal)
  if (final !== undefined) return final
  return mined === undefined || isFinal(mined, head) ? undefined : mined
}

/**
 * Reads from the chain what is needed to judge a stake or a request, and no more: a receipt for each hash, the transaction itself for those that are
 * final or whose sender isn't known yet, and, only where one has failed for good, whether the others still wait somewhere.
 */
export async function observe(
  deps: { chain: EthereumChain; head: ChainHead },
  hashes: readonly Omit<HashRow, 'stake_id'>[],
  mismatchIn: Mismatch,
  signal: AbortSignal,
): Promise<Observed[]> {
  const { chain, head } = deps
  const observed = await Promise.all(
    hashes.map(async (row): Promise<Observed> => {
      const known = { hash: row.hash, ...sentByOf(row) }
      const receipt = await receiptIn(chain, head, row.hash, signal)
      if (receipt !== undefined && !isFinal(receipt, head)) return { ...known, receipt }
      // Who sent it is learnt while a node shows it: once it is replaced, none does.
      if (receipt === undefined && known.sentBy !== undefined) return known
      const transaction = await chain.transaction(row.hash, signal)
      // Between the two calls the chain has changed, or another node answered: look again later.
      if (transaction === undefined) return known
      if (receipt === undefined) return { ...known, sentBy: { sender: transaction.from, nonce: transaction.nonce } }
      const mismatch = receipt.success ? mismatchIn(receipt, transaction) : undefined
      return {
        ...known,
        receipt,
        transaction,
        sentBy: { sender: transaction.from, nonce: transaction.nonce },
        ...(mismatch === undefined ? {} : { mismatch }),
      }
    }),
  )
  if (!observed.some((one) => one.receipt !== undefined && isFinal(one.receipt, head))) return observed
  return Promise.all(
    observed.map(async (one) => {
      if (one.receipt !== undefined) return one
      const transaction = await chain.transaction(one.hash, signal)
      return transaction === undefined ? one : { ...one, transaction, sentBy: { sender: transaction.from, nonce: transaction.nonce } }
    }),
  )
}

/** The chain tells of a sender and nonce what nobody had told, or something else than the client did: the chain's word counts. */
export function hasNewSender(
  hashes: readonly Pick<HashRow, 'hash' | 'sender' | 'nonce'>[],
  hash: Hash,
  sentBy: { readonly sender: Address; readonly nonce: number },
): boolean {
  const row = hashes.find((one) => one.hash === hash)
  if (row === undefined) return false
  return row.sender === null || row.nonce === null || !isSameNonce({ sender: row.sender, nonce: Number(row.nonce) }, sentBy)
}

const sentByOf = (row: Pick<HashRow, 'sender' | 'nonce'>): { sentBy?: { sender: Address; nonce: number } } =>
  row.sender === null || row.nonce === null ? {} : { sentBy: { sender: row.sender, nonce: Number(row.nonce) } }
