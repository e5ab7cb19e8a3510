import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Unreported requests are judged in turn: those that stay unclear for ever hold up nobody. */
export const unreportedTurns: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table unreported_requests add column judged_at timestamptz not null default 'epoch'`.execute(db)
    await sql`create index unreported_requests_in_turn on unreported_requests (network, pubkey, amount_gwei, sender)`.execute(db)
  },
}
