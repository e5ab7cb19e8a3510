import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Whether a validator client holds a stake's key is a state of the stake, and so told to its account's endpoints: by a trigger, as all that changes (ADR 15). */
export const keysTold: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      create function webhook_stake_keys() returns trigger language plpgsql as $$
      begin
        insert into webhook_deliveries (endpoint_id, type, resource_id, network, status)
          select id, 'ethereum-stake.keys', new.id, new.network,
            case when new.keys_provisioned_at is null then 'not-provisioned' else 'provisioned' end
          from webhook_endpoints where account = new.account and disabled_at is null;
        return null;
      end $$`.execute(db)
    await sql`
      create trigger webhook_stake_keys_change after update on ethereum_stakes for each row
        when ((old.keys_provisioned_at is null) <> (new.keys_provisioned_at is null)) execute function webhook_stake_keys()`.execute(db)
  },
}
