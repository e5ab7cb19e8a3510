import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What the chain shows of stakes that the database lacks. */
export const missingStakes: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      create table deposit_marks (
        network text primary key,
        block bigint not null,
        count bigint not null,
        check_at timestamptz not null default now()
      )`.execute(db)
    await sql`
      create table unknown_deposits (
        network text not null,
        pubkey text not null,
        hash text not null,
        block_number bigint not null,
        withdrawal_address text not null,
        amount_gwei bigint not null,
        seen_at timestamptz not null,
        dismissed_at timestamptz,
        primary key (network, pubkey)
      )`.execute(db)
    await sql`create index ethereum_stakes_by_withdrawal_address on ethereum_stakes (network, withdrawal_address) where status = 'confirmed'`.execute(
      db,
    )
  },
}
