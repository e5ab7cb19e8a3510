import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Requests that were sent and never reported are found in the logs of the EIP-7002 contract: how far they were read, and those that several stored requests may
 * have made.
 */
export const unreportedRequests: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      create table request_marks (
        network text primary key,
        block bigint not null,
        check_at timestamptz not null default now()
      )`.execute(db)
    await sql`
      create table unreported_requests (
        network text not null,
        hash text not null,
        pubkey text not null,
        amount_gwei bigint not null,
        sender text not null,
        block_number bigint not null,
        seen_at timestamptz not null,
        primary key (network, hash, pubkey, amount_gwei, sender)
      )`.execute(db)
    await sql`create index ethereum_requests_unlanded on ethereum_requests (network, pubkey) where status <> 'confirmed'`.execute(db)
    await sql`create index ethereum_request_hashes_by_hash on ethereum_request_hashes (hash)`.execute(db)
  },
}
