import type { Kysely } from 'kysely'
import type { Hex } from '../../chains/ethereum/chain.ts'
import type { Database } from './schema.ts'

/** The network of an account's stake, exit or withdrawal. */
export async function networkOfResource(db: Kysely<Database>, account: string, id: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('ethereum_stakes')
    .select('network')
    .where('account', '=', account)
    .where('id', '=', id)
    .unionAll(db.selectFrom('solana_stakes').select('network').where('account', '=', account).where('id', '=', id))
    .unionAll(db.selectFrom('ethereum_requests').select('network').where('account', '=', account).where('id', '=', id))
    .executeTakeFirst()
  return row?.network
}

/** The networks that an account's stakes and requests of a validator are on. */
export async function networksOfRecords(db: Kysely<Database>, account: string, pubkey: string): Promise<string[]> {
  const key = pubkey as Hex
  const rows = await db
    .selectFrom('ethereum_stakes')
    .select('network')
    .where('account', '=', account)
    .where('pubkey', '=', key)
    .union(db.selectFrom('ethereum_requests').select('network').where('account', '=', account).where('pubkey', '=', key))
    .execute()
  return rows.map(({ network }) => network)
}
