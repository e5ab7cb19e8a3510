import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** When a validator client was last seen to hold a stake's key, after it was pushed there. */
export const keysProvisioned: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table ethereum_stakes add column keys_provisioned_at timestamptz`.execute(db)
    await sql`
      create trigger ethereum_stakes_keys_change after update on ethereum_stakes for each row
        when (old.keys_provisioned_at is distinct from new.keys_provisioned_at) execute function tell_of_resource()`.execute(db)
  },
}
