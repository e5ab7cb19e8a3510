import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Solana's tables. The two unique indices hold whatever the code does: one live transaction per kind and stake, and one stake transaction that
 * has not failed.
 */
export const solanaTables: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      create table solana_stakes (
        id text primary key,
        account text not null,
        network text not null,
        amount_lamports bigint not null check (amount_lamports > 0),
        stake_account text not null unique,
        stake_authority text not null,
        withdraw_authority text not null,
        vote_account text not null,
        fee_payer text not null,
        external_reference text,
        challenge_id text,
        challenge_message text,
        challenge_issued_at timestamptz,
        challenge_expires_at timestamptz,
        seen_slot bigint,
        created_at timestamptz not null,
        check (num_nulls(challenge_id, challenge_message, challenge_issued_at, challenge_expires_at) in (0, 4))
      )`.execute(db)
    await sql`create index solana_stakes_by_account on solana_stakes (account, id desc)`.execute(db)
    await sql`
      create table solana_transactions (
        id text primary key,
        stake_id text not null references solana_stakes (id),
        kind text not null check (kind in ('stake', 'deactivation', 'withdrawal')),
        message text not null,
        recent_blockhash text not null,
        last_valid_block_height bigint not null,
        prepared_slot bigint not null,
        attempt integer not null default 1,
        status text not null default 'awaiting_submission'
          check (status in ('awaiting_submission', 'submitted', 'confirmed', 'failed', 'expired')),
        signature text,
        earlier_signatures text[] not null default '{}',
        destination text,
        failure_reason text,
        created_at timestamptz not null,
        check ((status = 'failed') = (failure_reason is not null)),
        check (status in ('awaiting_submission', 'expired') or signature is not null),
        check ((kind = 'withdrawal') = (destination is not null))
      )`.execute(db)
    await sql`create index solana_transactions_by_stake on solana_transactions (stake_id, id desc)`.execute(db)
    await sql`
      create unique index solana_transactions_live on solana_transactions (stake_id, kind)
        where status in ('awaiting_submission', 'submitted')`.execute(db)
    await sql`
      create unique index solana_transactions_one_stake on solana_transactions (stake_id)
        where kind = 'stake' and status <> 'failed'`.execute(db)
  },
}

/** Stakes from before keep the fee payer that they were created with. */
export const withdrawalFeePayer: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table solana_stakes add column withdrawal_fee_payer text`.execute(db)
    await sql`update solana_stakes set withdrawal_fee_payer = fee_payer`.execute(db)
    await sql`alter table solana_stakes alter column withdrawal_fee_payer set not null`.execute(db)
  },
}
