import type { ColumnType, Generated } from 'kysely'

export type SolanaTransactionKind = 'stake' | 'deactivation' | 'withdrawal'
export type SolanaTransactionStatus = 'awaiting_submission' | 'submitted' | 'confirmed' | 'failed' | 'expired'

/** What was asked for. Where the stake is in its life is asked of the chain, and not stored. */
export interface SolanaStakesTable {
  /** Time-ordered; also the seed of the stake account's address. */
  id: string
  account: string
  network: string
  amount_lamports: bigint
  stake_account: string
  stake_authority: string
  withdraw_authority: string
  vote_account: string
  /** Pays for the stake and its deactivation; the stake account's address is made of it. */
  fee_payer: string
  /** The withdraw authority, so that it alone signs a withdrawal, unless the client named a fee payer. */
  withdrawal_fee_payer: string
  external_reference: string | null
  /** The one challenge that counts; null once it was used. */
  challenge_id: string | null
  challenge_message: string | null
  challenge_issued_at: Date | null
  challenge_expires_at: Date | null
  /** A finalized slot at which the stake account was there: when it is gone later, it was withdrawn. */
  seen_slot: bigint | null
  /** When it was cancelled, before anything was paid; null again once it was paid all the same. */
  cancelled_at: Date | null
  /** When the account of a cancelled stake is looked for again. */
  look_at: Generated<Date>
  created_at: Date
  /** Under which it was made; null of one from before this was kept. */
  idempotency_key: ColumnType<string | null, string | null | undefined, never>
}

export interface SolanaTransactionsTable {
  id: string
  stake_id: string
  kind: SolanaTransactionKind
  /** Base64 of the message to sign. */
  message: string
  recent_blockhash: string
  last_valid_block_height: bigint
  /** Slot at which the blockhash was read: the history must reach back as far to say that it never landed. */
  prepared_slot: bigint
  /** Goes up with each refresh: what was concluded of an earlier message doesn't hold for a later one. */
  attempt: Generated<number>
  status: Generated<SolanaTransactionStatus>
  /** The fee payer's, as reported; it counts once the cluster has shown it. */
  signature: string | null
  /** Those that were reported of earlier attempts: they are looked for as well. */
  earlier_signatures: Generated<string[]>
  /** Of a withdrawal. */
  destination: string | null
  failure_reason: string | null
  created_at: Date
  /** When it is looked for again, for the account's webhooks. */
  check_at: Generated<Date>
}
