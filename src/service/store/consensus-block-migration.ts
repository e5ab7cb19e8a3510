import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The hash of the block that a request was judged by: at its height another block may be in the chain by now. */
export const consensusBlock: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`alter table ethereum_requests add column consensus_block_hash text`.execute(db)
  },
}
