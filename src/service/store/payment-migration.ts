import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What is paid of an accepted withdrawal. Of those that were accepted before, nothing is known. */
export const withdrawalPayment: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      alter table ethereum_requests
        add column consensus_block bigint,
        add column payment_status text check (payment_status in ('waiting', 'paid', 'void', 'unknown')),
        add column payable_gwei bigint,
        add column withdrawable_epoch bigint,
        add column paid_block bigint,
        add column payment_reason text,
        add column payment_seen_slot bigint,
        add constraint ethereum_requests_payment check (
          (payment_status is null) = (payable_gwei is null) and (payment_status is null) = (withdrawable_epoch is null)
        )`.execute(db)
    await sql`
      create index ethereum_requests_payments on ethereum_requests (network, check_at)
        where settled and payment_status = 'waiting'`.execute(db)
  },
}
