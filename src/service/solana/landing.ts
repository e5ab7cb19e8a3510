import type { SolanaChain } from '../../chains/solana/chain.ts'
import { decideLanding, type Landing } from '../../chains/solana/expiry.ts'
import { describeFailure } from '../../chains/solana/transaction-error.ts'
import type { Store } from '../store/database.ts'
import { type Db, markSeen } from '../store/solana-stakes.ts'
import { recordStatus, type SolanaTransactionRow } from '../store/solana-transactions.ts'

/** All signatures that were reported of a transaction, of earlier attempts also. */
export const signaturesOf = (row: Pick<SolanaTransactionRow, 'signature' | 'earlier_signatures'>): readonly string[] => [
  ...row.earlier_signatures,
  ...(row.signature === null ? [] : [row.signature]),
]

/**
 * Whether a transaction is in a block, may come into one, or never will. Without a reported signature only its end can be seen: a finalized
 * height beyond its last valid one.
 */
export async function lookForTransaction(chain: SolanaChain, row: SolanaTransactionRow, signal: AbortSignal): Promise<Landing> {
  const signatures = signaturesOf(row)
  const { last_valid_block_height: lastValidBlockHeight } = row
  const facts = await chain.landingFacts(signatures, signal)
  return decideLanding({ lastValidBlockHeight, facts, preparedAtSlot: row.prepared_slot })
}

type Status = Pick<SolanaTransactionRow, 'status' | 'signature' | 'failure_reason'>

/** What a look makes of a transaction's status. `confirmed` and `failed` are of finalized blocks, and for good. */
export function statusAfter(
  row: Pick<SolanaTransactionRow, 'signature' | 'earlier_signatures' | 'status' | 'failure_reason'>,
  landing: Landing,
): Status {
  const { status, signature, failure_reason } = row
  switch (landing.kind) {
    case 'landed': {
      const landed = signaturesOf(row)[landing.index] ?? signature
      if (!landing.final) return { status: 'submitted', signature: landed, failure_reason: null }
      const { failure } = landing.status
      return failure === undefined
        ? { status: 'confirmed', signature: landed, failure_reason: null }
        : { status: 'failed', signature: landed, failure_reason: describeFailure(failure) }
    }
    case 'expired':
      return { status: 'expired', signature, failure_reason: null }
    case 'may-land':
    case 'unknown':
      return { status, signature, failure_reason }
  }
}

export const isLive = ({ status }: Pick<SolanaTransactionRow, 'status'>): boolean =>
  status === 'awaiting_submission' || status === 'submitted'

/** The transaction as the cluster shows it now; what is final is not asked again. */
export async function upToDate(
  store: Store,
  chain: SolanaChain,
  row: SolanaTransactionRow,
  signal: AbortSignal,
): Promise<SolanaTransactionRow> {
  if (!isLive(row)) return row
  const landing = await lookForTransaction(chain, row, signal)
  return (await recordLanding(store.db, row, landing)) ?? row
}

/** Writes what a look showed. Undefined: somebody else changed the transaction meanwhile. */
export async function recordLanding(db: Db, row: SolanaTransactionRow, landing: Landing): Promise<SolanaTransactionRow | undefined> {
  const seen = statusAfter(row, landing)
  if (row.status === seen.status && row.signature === seen.signature) return row
  const recorded = await recordStatus(db, row, seen)
  // The account was there, even if it is gone before anybody asks for the stake.
  if (recorded?.status === 'confirmed' && recorded.kind === 'stake' && landing.kind === 'landed')
    await markSeen(db, row.stake_id, landing.status.slot)
  return recorded
}
