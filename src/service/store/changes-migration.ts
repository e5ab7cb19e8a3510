import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What the API shows of a row that can change. */
const shown = {
  ethereum_stakes: 'status hash block_number block_hash failure_reason withdrawal_is_contract consensus_status consensus_reason',
  ethereum_requests:
    'status hash block_number block_hash failure_reason consensus_status consensus_reason queued_deposits_gwei queued_deposits_epoch payment_status payable_gwei withdrawable_epoch paid_block payment_reason',
  solana_stakes: 'challenge_id challenge_expires_at',
} as const

/**
 * Whoever waits for a change of a resource hears of it, by the resource's id, on every instance. Creation is told to nobody: there is no one yet who knows of
 * the resource. The condition keeps a tracker's many looks, which change nothing that is shown, from costing anything.
 */
export const changesTold: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      create function tell_of_resource() returns trigger language plpgsql as $$
      begin
        perform pg_notify('staking_resources', new.id);
        return null;
      end $$`.execute(db)
    for (const [table, columns] of Object.entries(shown)) {
      const [before, after] = ['old', 'new'].map((row) => sql.join(columns.split(' ').map((column) => sql.ref(`${row}.${column}`))))
      await sql`
        create trigger ${sql.ref(`${table}_change`)} after update on ${sql.table(table)}
          for each row when (row(${before}) is distinct from row(${after}))
          execute function tell_of_resource()`.execute(db)
    }
    await sql`
      create function tell_of_solana_transaction() returns trigger language plpgsql as $$
      begin
        perform pg_notify('staking_resources', new.stake_id);
        return null;
      end $$`.execute(db)
    await sql`
      create trigger solana_transactions_change after update on solana_transactions for each row
        when (row(old.attempt, old.status, old.signature, old.failure_reason)
          is distinct from row(new.attempt, new.status, new.signature, new.failure_reason))
        execute function tell_of_solana_transaction()`.execute(db)
    await sql`
      create trigger solana_transactions_new after insert on solana_transactions
        for each row execute function tell_of_solana_transaction()`.execute(db)
  },
}
