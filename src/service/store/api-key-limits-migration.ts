import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What API keys may do, and who did what with them. */
export const apiKeyLimits: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      alter table api_keys
        add column networks text[],
        add column operations text[],
        add column address_ranges text[],
        add column last_used_at timestamptz,
        add column rotated_to text`.execute(db)
    // Every instance that remembers a key hears of a change to it. When it was last used changes nothing.
    await sql`
      create function tell_of_api_key() returns trigger language plpgsql as $$
      begin
        perform pg_notify('staking_api_keys', old.id);
        return null;
      end $$`.execute(db)
    await sql`
      create trigger api_keys_change
        after delete or update of key_hash, account, scopes, expires_at, revoked_at, networks, operations, address_ranges on api_keys
        for each row execute function tell_of_api_key()`.execute(db)
    await sql`
      create table audit_log (
        id text primary key,
        at timestamptz not null,
        account text not null,
        key_id text,
        operation text not null,
        method text,
        path text,
        idempotency_key text,
        request_id text,
        address text,
        status integer,
        resource_id text
      )`.execute(db)
    await sql`create index audit_log_by_account on audit_log (account, id desc)`.execute(db)
    await sql`create index audit_log_by_time on audit_log (at)`.execute(db)
    // A crash of the server may forget it: then the windows begin anew.
    await sql`
      create unlogged table rate_limits (
        subject text primary key,
        window_start timestamptz not null,
        taken bigint not null,
        granted bigint not null
      )`.execute(db)
  },
}
