import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** From Gloas on, the block of the beacon chain by whose state a request was judged: another one may take its place. */
export const processingBlock: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table ethereum_requests add column consensus_slot bigint, add column consensus_root text`.execute(db)
  },
}
