import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Whether a stake's withdrawal address was a contract when it was created (null where no node told, and for stakes of before); and where keys were exported to. */
export const withdrawalContract: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table ethereum_stakes add column withdrawal_is_contract boolean`.execute(db)
    // Keys that were handed to a validator client: one key in two places is slashed.
    await sql`
      create table keystore_exports (
        pubkey text not null,
        exported_at timestamptz not null,
        place text not null,
        primary key (pubkey, exported_at)
      )`.execute(db)
  },
}
