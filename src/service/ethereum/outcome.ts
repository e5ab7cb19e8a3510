import type { Address, BlockHash, ChainHead, ChainReceipt, ChainTransaction, Hash } from '../../chains/ethereum/chain.ts'
import { isSameNonce } from './supersede.ts'

/** What the chain shows of one reported hash. */
export interface Observed {
  readonly hash: Hash
  readonly receipt?: ChainReceipt
  /** Read when the receipt is final, or when it matters whether the transaction still waits somewhere. */
  readonly transaction?: ChainTransaction
  readonly sentBy?: { readonly sender: Address; readonly nonce: number }
  /** Of a final transaction: why it does not pay the stake; absent when it does. */
  readonly mismatch?: string
}

export type Outcome =
  | { readonly status: 'confirmed'; readonly hash: Hash; readonly blockNumber: bigint; readonly blockHash: BlockHash }
  | { readonly status: 'failed'; readonly hash: Hash; readonly blockNumber: bigint; readonly blockHash: BlockHash; readonly reason: string }
  /** In flight: mined when it has a block, which a reorganisation may take back. */
  | { readonly status: 'submitted'; readonly hash: Hash; readonly blockNumber?: bigint; readonly blockHash?: BlockHash }

export const isFinal = (receipt: ChainReceipt, head: ChainHead): boolean => receipt.blockNumber <= head.final

/**
 * The state of a stake from all hashes that were ever reported for it: whichever lands counts. It is settled by final blocks only, and it
 * fails only when it is proven that no other hash can land any more: one that no node shows may have been told before it is sent, however long ago.
 * @param observed At least one, in the order of reporting.
 */
export function outcomeOf(observed: readonly [Observed, ...Observed[]], head: ChainHead): Outcome {
  const mined = observed.flatMap((one) => (one.receipt === undefined ? [] : [{ ...one, receipt: one.receipt }]))
  const final = mined.filter((one) => isFinal(one.receipt, head))
  const paid = final.find((one) => one.receipt.success && one.mismatch === undefined)
  if (paid !== undefined) return { status: 'confirmed', hash: paid.hash, ...blockOf(paid.receipt) }
  const young = mined.find((one) => !isFinal(one.receipt, head))
  if (young !== undefined) return { status: 'submitted', hash: young.hash, ...blockOf(young.receipt) }
  const failed = final.at(-1)
  if (failed !== undefined && observed.every((one) => one.receipt !== undefined || cannotLand(one, final))) {
    const reason = failed.receipt.success ? (failed.mismatch ?? 'the transaction does not pay this stake') : 'the transaction was reverted'
    return { status: 'failed', hash: failed.hash, ...blockOf(failed.receipt), reason }
  }
  return { status: 'submitted', hash: (observed.at(-1) ?? observed[0]).hash }
}

const blockOf = (receipt: ChainReceipt) => ({ blockNumber: receipt.blockNumber, blockHash: receipt.blockHash })

/** Another transaction has used its nonce, in a final block. */
function cannotLand({ sentBy }: Observed, final: readonly Observed[]): boolean {
  return sentBy !== undefined && final.some((other) => other.sentBy !== undefined && isSameNonce(other.sentBy, sentBy))
}
