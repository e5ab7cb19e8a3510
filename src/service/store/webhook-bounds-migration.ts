import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** So many deliveries wait for an endpoint and no more: how many were dropped is counted, and the newest of an endpoint are found by their place. */
export const webhookBounds: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      alter table webhook_endpoints
        add column dropped bigint not null default 0,
        add column dropped_at timestamptz`.execute(db)
    await sql`create index webhook_deliveries_places on webhook_deliveries (endpoint_id, place)`.execute(db)
  },
}
