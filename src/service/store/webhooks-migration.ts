import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Table, kind of event, column whose change it tells, and whether a new row is news too. */
const told = [
  { table: 'ethereum_stakes', type: `'ethereum-stake.transaction'`, column: 'status', whenNew: true },
  { table: 'ethereum_stakes', type: `'ethereum-stake.consensus'`, column: 'consensus_status', whenNew: false },
  { table: 'ethereum_requests', type: `new.kind || '-request.transaction'`, column: 'status', whenNew: true },
  { table: 'ethereum_requests', type: `new.kind || '-request.consensus'`, column: 'consensus_status', whenNew: false },
  { table: 'ethereum_requests', type: `new.kind || '-request.payment'`, column: 'payment_status', whenNew: false },
] as const

/**
 * Webhooks. What is to be delivered is written by triggers, in the transaction that changes the state and whatever code changes it: none is forgotten, and none
 * is told of a change that didn't happen. The delivery's id is random, so that a database that was restored from a copy never uses one for something else.
 */
export const webhooks: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      create table webhook_endpoints (
        id text primary key,
        account text not null,
        url text not null,
        description text,
        created_at timestamptz not null,
        disabled_at timestamptz,
        disabled_reason text,
        failing_since timestamptz,
        failures integer not null default 0,
        last_error text,
        last_delivered_at timestamptz,
        rest_until timestamptz not null default now(),
        busy_until timestamptz not null default now(),
        owner text,
        served_at timestamptz not null default now(),
        unique (account, url),
        check ((disabled_at is null) = (disabled_reason is null))
      )`.execute(db)
    await sql`
      create table webhook_secrets (
        endpoint_id text not null references webhook_endpoints (id) on delete cascade,
        salt text not null,
        created_at timestamptz not null,
        expires_at timestamptz,
        primary key (endpoint_id, salt)
      )`.execute(db)
    await sql`
      create table webhook_deliveries (
        id uuid primary key default gen_random_uuid(),
        place bigint not null generated always as identity,
        endpoint_id text not null references webhook_endpoints (id) on delete cascade,
        type text not null,
        resource_id text not null,
        stake_id text,
        pubkey text,
        network text not null,
        status text not null,
        at timestamptz not null default now(),
        attempts integer not null default 0,
        next_at timestamptz not null default now()
      )`.execute(db)
    await sql`create index webhook_deliveries_due on webhook_deliveries (endpoint_id, next_at, place)`.execute(db)

    for (const [count, { table, type, column, whenNew }] of told.entries()) {
      const [name, pubkey] = [`webhook_${count}_${table}`, table === 'ethereum_requests' ? 'new.pubkey' : 'null::text']
      await sql`
        create function ${sql.ref(name)}() returns trigger language plpgsql as $$
        begin
          insert into webhook_deliveries (endpoint_id, type, resource_id, pubkey, network, status)
            select id, ${sql.raw(type)}, new.id, ${sql.raw(pubkey)}, new.network, new.${sql.ref(column)}
            from webhook_endpoints where account = new.account and disabled_at is null;
          return null;
        end $$`.execute(db)
      const [before, after] = [sql.ref(`old.${column}`), sql.ref(`new.${column}`)]
      await sql`
        create trigger ${sql.ref(`${name}_change`)} after update on ${sql.table(table)} for each row
          when (${before} is distinct from ${after} and ${after} is not null) execute function ${sql.ref(name)}()`.execute(db)
      if (whenNew)
        await sql`
          create trigger ${sql.ref(`${name}_new`)} after insert on ${sql.table(table)}
            for each row execute function ${sql.ref(name)}()`.execute(db)
    }
    // Ethereum's tables have a tracker; what became of a Solana transaction is looked for where somebody waits for it.
    await sql`alter table solana_transactions add column check_at timestamptz not null default now()`.execute(db)
    await sql`
      create function webhook_solana_transactions() returns trigger language plpgsql as $$
      begin
        insert into webhook_deliveries (endpoint_id, type, resource_id, stake_id, network, status)
          select endpoint.id, 'solana-transaction.transaction', new.id, new.stake_id, stake.network, new.status
          from solana_stakes stake join webhook_endpoints endpoint on endpoint.account = stake.account
          where stake.id = new.stake_id and endpoint.disabled_at is null;
        return null;
      end $$`.execute(db)
    await sql`
      create trigger webhook_solana_transactions_change after update on solana_transactions for each row
        when (old.status is distinct from new.status) execute function webhook_solana_transactions()`.execute(db)
    await sql`
      create trigger webhook_solana_transactions_new after insert on solana_transactions
        for each row execute function webhook_solana_transactions()`.execute(db)
  },
}
