import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * A stake that was never paid can be cancelled; and whatever is not paid, as far as the service knows, is looked for in the deposit contract's logs. The
 * names of the checks are those that PostgreSQL gave them in 0001.
 */
export const cancelledStakes: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      alter table ethereum_stakes
        drop constraint ethereum_stakes_status_check,
        drop constraint ethereum_stakes_check,
        add constraint ethereum_stakes_status_check
          check (status in ('awaiting_submission', 'submitted', 'confirmed', 'failed', 'cancelled')),
        add constraint ethereum_stakes_check check ((status in ('awaiting_submission', 'cancelled')) = (hash is null)),
        add column look_at timestamptz not null default now()`.execute(db)
    await sql`create index ethereum_stakes_unpaid on ethereum_stakes (network, look_at) where status <> 'confirmed'`.execute(db)
  },
}
