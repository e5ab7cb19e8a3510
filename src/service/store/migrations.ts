import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { apiKeyLimits } from './api-key-limits-migration.ts'
import { cancelledSolanaStakes } from './cancelled-solana-stakes-migration.ts'
import { cancelledStakes } from './cancelled-stakes-migration.ts'
import { cancelledWithdrawals } from './cancelled-withdrawals-migration.ts'
import { changesTold } from './changes-migration.ts'
import { consensusBlock } from './consensus-block-migration.ts'
import { depositFate } from './deposit-fate-migration.ts'
import { keysProvisioned } from './keys-provisioned-migration.ts'
import { keysTold } from './keys-told-migration.ts'
import { missingStakes } from './missing-stakes-migration.ts'
import { withdrawalPayment } from './payment-migration.ts'
import { processingBlock } from './processing-block-migration.ts'
import { queuePlace } from './queue-place-migration.ts'
import { requestsRemembered } from './requests-remembered-migration.ts'
import type { Database } from './schema.ts'
import { solanaTables, withdrawalFeePayer } from './solana-migration.ts'
import { unreportedRequests } from './unreported-requests-migration.ts'
import { unreportedTurns } from './unreported-turns-migration.ts'
import { webhookBounds } from './webhook-bounds-migration.ts'
import { webhooks } from './webhooks-migration.ts'
import { withdrawalContract } from './withdrawal-contract-migration.ts'

/** In order, never edited once released: a change of the tables is a new entry. */
const migrations: Readonly<Record<string, Migration>> = {
  '0001_first': {
    async up(db: Kysely<unknown>) {
      await sql`
        create table api_keys (
          id text primary key,
          account text not null,
          label text not null,
          key_hash text not null unique,
          scopes text[] not null,
          created_at timestamptz not null,
          expires_at timestamptz,
          revoked_at timestamptz
        )`.execute(db)
      await sql`
        create table idempotency_keys (
          account text not null,
          key text not null,
          fingerprint text not null,
          owner text not null,
          lease_until timestamptz not null default now(),
          status integer,
          body text,
          primary key (account, key),
          check ((status is null) = (body is null))
        )`.execute(db)
      await sql`
        create table external_references (
          account text not null,
          reference text not null,
          resource_id text not null,
          primary key (account, reference)
        )`.execute(db)
      await sql`
        create table key_counters (
          seed_fingerprint text primary key,
          next_index bigint not null check (next_index >= 0)
        )`.execute(db)
      await sql`
        create table ethereum_stakes (
          id text primary key,
          account text not null,
          network text not null,
          amount_gwei bigint not null check (amount_gwei > 0),
          withdrawal_address text not null,
          credentials_type text not null check (credentials_type in ('0x01', '0x02')),
          key_index bigint not null unique,
          pubkey text not null unique,
          deposit_data jsonb not null,
          unsigned_transaction jsonb not null,
          external_reference text,
          status text not null default 'awaiting_submission' check (status in ('awaiting_submission', 'submitted', 'confirmed', 'failed')),
          hash text,
          block_number bigint,
          block_hash text,
          failure_reason text,
          created_at timestamptz not null,
          check_at timestamptz not null default now(),
          checked_head bigint,
          check ((status = 'awaiting_submission') = (hash is null)),
          check ((status = 'failed') = (failure_reason is not null))
        )`.execute(db)
      await sql`create index ethereum_stakes_by_account on ethereum_stakes (account, id desc)`.execute(db)
      await sql`create index ethereum_stakes_in_flight on ethereum_stakes (network, check_at) where status = 'submitted'`.execute(db)
      await sql`
        create table ethereum_stake_hashes (
          stake_id text not null references ethereum_stakes (id),
          hash text not null,
          submitted_at timestamptz not null,
          sender text,
          nonce bigint,
          primary key (stake_id, hash)
        )`.execute(db)
    },
  },
  '0002_validator_requests': {
    async up(db: Kysely<unknown>) {
      await sql`
        create table ethereum_requests (
          id text primary key,
          account text not null,
          network text not null,
          kind text not null check (kind in ('exit', 'withdrawal')),
          pubkey text not null,
          amount_gwei bigint check (amount_gwei > 0),
          sender text not null,
          unsigned_transaction jsonb not null,
          fee_wei text not null,
          quoted_at_block bigint not null,
          external_reference text,
          status text not null default 'awaiting_submission'
            check (status in ('awaiting_submission', 'submitted', 'confirmed', 'failed', 'cancelled')),
          hash text,
          block_number bigint,
          block_hash text,
          failure_reason text,
          consensus_status text not null default 'pending' check (consensus_status in ('pending', 'accepted', 'dropped')),
          consensus_reason text,
          settled boolean not null default false,
          created_at timestamptz not null,
          check_at timestamptz not null default now(),
          checked_head bigint,
          check ((kind = 'exit') = (amount_gwei is null)),
          check (kind = 'exit' or status <> 'cancelled'),
          check ((status in ('awaiting_submission', 'cancelled')) = (hash is null)),
          check ((status = 'failed') = (failure_reason is not null)),
          check (not settled or status in ('confirmed', 'failed', 'cancelled'))
        )`.execute(db)
      await sql`create index ethereum_requests_by_validator on ethereum_requests (account, pubkey, kind, id desc)`.execute(db)
      await sql`
        create index ethereum_requests_in_flight on ethereum_requests (network, check_at)
          where not settled and status in ('submitted', 'confirmed')`.execute(db)
      await sql`
        create table ethereum_request_hashes (
          request_id text not null references ethereum_requests (id),
          hash text not null,
          submitted_at timestamptz not null,
          sender text,
          nonce bigint,
          primary key (request_id, hash)
        )`.execute(db)
    },
  },
  '0003_solana_stakes': solanaTables,
  '0004_withdrawal_fee_payer': withdrawalFeePayer,
  '0005_withdrawal_payment': withdrawalPayment,
  '0006_cancelled_stakes': cancelledStakes,
  '0007_deposit_fate': depositFate,
  '0008_queue_place': queuePlace,
  '0009_withdrawal_contract': withdrawalContract,
  '0010_api_key_limits': apiKeyLimits,
  '0011_cancelled_withdrawals': cancelledWithdrawals,
  '0012_changes_told': changesTold,
  '0013_webhooks': webhooks,
  '0014_missing_stakes': missingStakes,
  '0015_keys_provisioned': keysProvisioned,
  '0016_consensus_block': consensusBlock,
  '0017_cancelled_solana_stakes': cancelledSolanaStakes,
  '0018_unreported_requests': unreportedRequests,
  '0019_processing_block': processingBlock,
  '0020_unreported_turns': unreportedTurns,
  '0021_keys_told': keysTold,
  '0022_requests_remembered': requestsRemembered,
  '0023_webhook_bounds': webhookBounds,
}

/**
 * Brings the tables up to date. Kysely runs it in one transaction under an advisory lock, so instances that start together don't collide.
 * @throws Error when a migration fails, or when the database was made by a newer version.
 */
export async function migrate(db: Kysely<Database>): Promise<void> {
  const { error } = await new Migrator({ db, provider: { getMigrations: async () => ({ ...migrations }) } }).migrateToLatest()
  if (error !== undefined)
    throw new Error(`the database could not be brought up to date: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
}
