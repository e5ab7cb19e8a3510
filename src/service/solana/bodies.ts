import { decodeMessage, joinTransaction } from '../../chains/solana/message.ts'
import type { SolanaStakeBody, SolanaTransactionBody } from '../../contract/schemas/solana.ts'
import { lamports } from '../../lib/amounts.ts'
import type { ChallengeColumns, SolanaStakeRow } from '../store/solana-stakes.ts'
import type { SolanaTransactionRow } from '../store/solana-transactions.ts'
import type { Protocol } from './protocol.ts'

export function challengeBody(row: ChallengeColumns): NonNullable<SolanaStakeBody['challenge']> | undefined {
  const { challenge_id: challengeId, challenge_message: message, challenge_issued_at: issuedAt, challenge_expires_at: expiresAt } = row
  if (challengeId === null || message === null || issuedAt === null || expiresAt === null) return undefined
  return { challengeId, message, issuedAt: issuedAt.toISOString(), expiresAt: expiresAt.toISOString() }
}

/** A stored transaction as the contract's resource. */
export function transactionBody(row: SolanaTransactionRow, network: string): SolanaTransactionBody {
  const message = Buffer.from(row.message, 'base64')
  const { signers, feePayer } = decodeMessage(message)
  // A signature that the cluster hasn't shown is nobody's business yet.
  const shown = row.status !== 'awaiting_submission' && row.status !== 'expired' ? row.signature : null
  return {
    txId: row.id,
    kind: row.kind,
    network,
    messageBase64: row.message,
    transactionBase64: Buffer.from(joinTransaction(message)).toString('base64'),
    requiredSigners: [...signers],
    feePayer,
    recentBlockhash: row.recent_blockhash,
    lastValidBlockHeight: Number(row.last_valid_block_height),
    status: row.status,
    ...(shown === null ? {} : { signature: shown }),
    ...(row.failure_reason === null ? {} : { failureReason: row.failure_reason }),
    createdAt: row.created_at.toISOString(),
  }
}

/** A stored stake, with where the cluster says it is, as the contract's resource. */
export function stakeBody(
  row: SolanaStakeRow,
  protocol: Protocol,
  transactions: readonly SolanaTransactionRow[],
  validator?: SolanaStakeBody['validator'],
): SolanaStakeBody {
  const challenge = challengeBody(row)
  return {
    stakeId: row.id,
    network: row.network,
    amountLamports: lamports(row.amount_lamports),
    stakeAccount: row.stake_account,
    stakeAuthority: row.stake_authority,
    withdrawAuthority: row.withdraw_authority,
    voteAccount: row.vote_account,
    ...(validator === undefined ? {} : { validator }),
    feePayer: row.fee_payer,
    ...(row.external_reference === null ? {} : { externalReference: row.external_reference }),
    ...(challenge === undefined ? {} : { challenge }),
    protocol,
    transactions: transactions.map((transaction) => transactionBody(transaction, row.network)),
    ...(row.cancelled_at === null ? {} : { cancelledAt: row.cancelled_at.toISOString() }),
    createdAt: row.created_at.toISOString(),
  }
}
