import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { Hex, Pubkey } from '../../chains/ethereum/chain.ts'
import type { Database, UnreportedRequestsTable } from './schema.ts'

type Db = Kysely<Database> | Transaction<Database>
export type UnreportedRequest = Omit<Selectable<UnreportedRequestsTable>, 'judged_at'>

/** Rows or values of one statement: PostgreSQL takes 65,535 parameters, and anyone may fill the EIP-7002 contract's blocks with requests. */
const atOnce = 5_000

/** What requests have in common that the chain can't tell apart. `amount_gwei` is 0 for an exit, `sender` in lower case. */
export type Alike = Pick<UnreportedRequest, 'network' | 'pubkey' | 'amount_gwei' | 'sender'>

/**
 * How far the requests of a network were read, for whoever comes first when it is due; due again after `intervalMs`.
 * @returns `none` where nothing was read yet; undefined while it is not due.
 */
export async function takeRequestMark(db: Kysely<Database>, network: string, intervalMs: number): Promise<bigint | 'none' | undefined> {
  const taken = await db
    .updateTable('request_marks')
    .set({ check_at: sql<Date>`now() + make_interval(secs => ${intervalMs / 1000}::double precision)` })
    .where('network', '=', network)
    .where('check_at', '<=', sql<Date>`now()`)
    .returning('block')
    .executeTakeFirst()
  if (taken !== undefined) return taken.block
  const there = await db.selectFrom('request_marks').select('network').where('network', '=', network).executeTakeFirst()
  return there === undefined ? 'none' : undefined
}

/** Begins before the oldest request that may have been sent and not been reported, or at `final` where there is none. */
export async function insertRequestMark(db: Kysely<Database>, network: string, final: bigint): Promise<void> {
  const { oldest } = await db
    .selectFrom('ethereum_requests')
    .select((select) => select.fn.min('quoted_at_block').as('oldest'))
    .where('network', '=', network)
    .where('status', 'in', ['awaiting_submission', 'submitted'])
    .executeTakeFirstOrThrow()
  const block = oldest === null || oldest > final ? final : oldest
  await db
    .insertInto('request_marks')
    .values({ network, block })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Moves a mark on, and keeps what was logged on the way and may be a stored request's; nothing when another instance was first. */
export const moveRequestMark = (
  db: Kysely<Database>,
  network: string,
  { from, to }: { from: bigint; to: bigint },
  found: readonly UnreportedRequest[],
): Promise<void> =>
  db.transaction().execute(async (transaction) => {
    for (let at = 0; at < found.length; at += atOnce) {
      await transaction
        .insertInto('unreported_requests')
        .values(found.slice(at, at + atOnce))
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    }
    await transaction.updateTable('request_marks').set({ block: to }).where('network', '=', network).where('block', '=', from).execute()
  })

/** Which of these addresses, in lower case, stored requests that are not known to have landed are to be sent from. */
export async function awaitedSenders(db: Db, network: string, addresses: readonly Hex[]): Promise<ReadonlySet<string>> {
  const own = new Set<string>()
  for (let from = 0; from < addresses.length; from += atOnce) {
    const rows = await db
      .selectFrom('ethereum_requests')
      .select(sql<string>`lower(ethereum_requests.sender)`.as('sender'))
      .distinct()
      .where('network', '=', network)
      .where('status', '<>', 'confirmed')
      .where(sql<string>`lower(ethereum_requests.sender)`, 'in', addresses.slice(from, from + atOnce))
      .execute()
    for (const { sender } of rows) own.add(sender)
  }
  return own
}

/** What the stored requests of these validators ask for that are not known to have landed. */
export const awaitedOf = async (db: Db, network: string, pubkeys: readonly Pubkey[]): Promise<readonly Alike[]> => {
  const found: Alike[] = []
  for (let from = 0; from < pubkeys.length; from += atOnce) {
    const rows = await db
      .selectFrom('ethereum_requests')
      .select(['pubkey', 'amount_gwei', 'sender'])
      .distinct()
      .where('network', '=', network)
      .where('status', '<>', 'confirmed')
      .where('pubkey', 'in', pubkeys.slice(from, from + atOnce))
      .execute()
    for (const { pubkey, amount_gwei: amount, sender } of rows)
      found.push({ network, pubkey, amount_gwei: amount ?? 0n, sender: sender.toLowerCase() as Hex })
  }
  return found
}

/**
 * Which of these hashes an account has reported for a request that asks for the very same. What is reported for another request says nothing: anybody may report
 * any hash.
 */
export async function reportedAlike(
  db: Db,
  { account, network, pubkey, amount_gwei: amount, sender }: Alike & { readonly account: string },
  hashes: readonly Hex[],
): Promise<ReadonlySet<Hex>> {
  if (hashes.length === 0) return new Set()
  const rows = await db
    .selectFrom('ethereum_requests')
    .innerJoin('ethereum_request_hashes', 'request_id', 'id')
    .select('ethereum_request_hashes.hash as reported')
    .where('account', '=', account)
    .where('network', '=', network)
    .where('pubkey', '=', pubkey)
    .where(sql<bigint>`coalesce(amount_gwei, 0)`, '=', amount)
    .where(sql<string>`lower(ethereum_requests.sender)`, '=', sender)
    .where('ethereum_request_hashes.hash', 'in', hashes)
    .execute()
  return new Set(rows.map(({ reported }) => reported))
}
