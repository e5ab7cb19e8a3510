import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What the consensus layer made of a deposit that is final. Stakes that were confirmed before are looked at once. */
export const depositFate: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      alter table ethereum_stakes
        add column consensus_status text not null default 'pending' check (consensus_status in ('pending', 'accepted', 'dropped')),
        add column consensus_reason text,
        add column consensus_at timestamptz not null default now(),
        add constraint ethereum_stakes_consensus check (consensus_status <> 'dropped' or consensus_reason is not null)`.execute(db)
    await sql`
      create index ethereum_stakes_undecided on ethereum_stakes (network, consensus_at)
        where status = 'confirmed' and consensus_status = 'pending'`.execute(db)
  },
}
