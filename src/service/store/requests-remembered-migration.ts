import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const tables = ['ethereum_stakes', 'ethereum_requests', 'solana_stakes'] as const

/**
 * Under which Idempotency-Key a resource was made, in its own row: should the record of the answer be lost, by a restore of some tables or by hand, the same request
 * finds its resource, and none is made twice under one key. Of those before, the records say it, whose answers begin with the resource's id.
 */
export const requestsRemembered: Migration = {
  async up(db: Kysely<unknown>) {
    for (const table of tables) {
      await sql`alter table ${sql.table(table)} add column idempotency_key text`.execute(db)
      await sql`
        update ${sql.table(table)} as made set idempotency_key = record.key from idempotency_keys as record
          where record.account = made.account and record.status = 201
            and made.id = substring(record.body from '^{"(?:stakeId|requestId)":"([0-9a-f]{32})"')`.execute(db)
      await sql`
        create unique index ${sql.ref(`${table}_request`)} on ${sql.table(table)} (account, idempotency_key)`.execute(db)
    }
  },
}
