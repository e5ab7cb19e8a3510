import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What is queued to be credited to a validator that is to exit. And where a request waits in the EIP-7002 contract's queue: nodes don't keep the states that tell it for as long as a long queue takes. */
export const queuePlace: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      alter table ethereum_requests
        add column queue_position bigint,
        add column queue_turn bigint,
        add column queued_deposits_gwei bigint check (queued_deposits_gwei > 0),
        add column queued_deposits_epoch bigint,
        add constraint ethereum_requests_queue check ((queue_position is null) = (queue_turn is null))`.execute(db)
  },
}
