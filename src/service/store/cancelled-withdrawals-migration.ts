import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * A withdrawal that was never submitted can be cancelled, and a hash that is reported for a cancelled request is followed. The check that forbade the first has
 * no name of ours: it is known by what it says.
 */
export const cancelledWithdrawals: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      do $$
      declare name text;
      begin
        select conname into strict name from pg_constraint
          where conrelid = 'ethereum_requests'::regclass and contype = 'c'
            and pg_get_constraintdef(oid) like '%kind%' and pg_get_constraintdef(oid) like '%cancelled%';
        execute format('alter table ethereum_requests drop constraint %I', name);
      end $$`.execute(db)
    await sql`drop index ethereum_requests_in_flight`.execute(db)
    await sql`
      create index ethereum_requests_in_flight on ethereum_requests (network, check_at)
        where not settled and status in ('submitted', 'confirmed', 'cancelled')`.execute(db)
  },
}
