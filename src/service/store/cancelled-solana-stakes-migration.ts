import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * A Solana stake that was never paid can be cancelled. Its account is looked for afterwards, and what becomes of it is told to whoever waits for the stake and
 * to the account's webhooks.
 */
export const cancelledSolanaStakes: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      alter table solana_stakes
        add column cancelled_at timestamptz,
        add column look_at timestamptz not null default now()`.execute(db)
    await sql`create index solana_stakes_cancelled on solana_stakes (network, look_at) where cancelled_at is not null`.execute(db)
    await sql`drop trigger solana_stakes_change on solana_stakes`.execute(db)
    await sql`
      create trigger solana_stakes_change after update on solana_stakes for each row
        when (row(old.challenge_id, old.challenge_expires_at, old.cancelled_at)
          is distinct from row(new.challenge_id, new.challenge_expires_at, new.cancelled_at))
        execute function tell_of_resource()`.execute(db)
    await sql`
      create function webhook_solana_stakes() returns trigger language plpgsql as $$
      begin
        insert into webhook_deliveries (endpoint_id, type, resource_id, network, status)
          select id, 'solana-stake.cancellation', new.id, new.network, case when new.cancelled_at is null then 'paid' else 'cancelled' end
          from webhook_endpoints where account = new.account and disabled_at is null;
        return null;
      end $$`.execute(db)
    await sql`
      create trigger webhook_solana_stakes_change after update on solana_stakes for each row
        when ((old.cancelled_at is null) is distinct from (new.cancelled_at is null)) execute function webhook_solana_stakes()`.execute(db)
  },
}
