import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { Hash, Hex, Pubkey } from '../../chains/ethereum/chain.ts'
import { type RequestRow, requestHashes, sendAgain } from './requests.ts'
import type { Database, UnreportedRequestsTable } from './schema.ts'
import { retakeReference } from './stakes.ts'

type Db = Kysely<Database> | Transaction<Database>
export type UnreportedRequest = Selectable<UnreportedRequestsTable>

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

export const unreportedOf = (db: Db, network: string): Promise<UnreportedRequest[]> =>
  db
    .selectFrom('unreported_requests')
    .selectAll()
    .where('network', '=', network)
    .orderBy('block_number')
    .orderBy('hash')
    .limit(1_000)
    .execute()

const alike = (db: Db, { network, pubkey, amount_gwei: amount, sender }: Alike) =>
  db
    .selectFrom('ethereum_requests')
    .where('network', '=', network)
    .where('pubkey', '=', pubkey)
    .where(sql<bigint>`coalesce(amount_gwei, 0)`, '=', amount)
    .where(sql<string>`lower(ethereum_requests.sender)`, '=', sender)

/** Stored requests that ask for the very same and are not known to have landed, the oldest first. */
export const unlandedAlike = (db: Db, which: Alike): Promise<RequestRow[]> =>
  alike(db, which).selectAll().where('status', '<>', 'confirmed').orderBy('id').execute()

/**
 * Which of these hashes were reported for a request that asks for the very same: of any account, or of one. What is reported for another request says nothing:
 * anybody may report any hash.
 */
export async function reportedAlike(
  db: Db,
  which: Alike & { readonly account?: string },
  hashes: readonly Hex[],
): Promise<ReadonlySet<Hex>> {
  if (hashes.length === 0) return new Set()
  let query = alike(db, which).innerJoin('ethereum_request_hashes', 'request_id', 'id').where('ethereum_request_hashes.hash', 'in', hashes)
  if (which.account !== undefined) query = query.where('account', '=', which.account)
  return new Set((await query.select('ethereum_request_hashes.hash as reported').execute()).map(({ reported }) => reported))
}

export const forgetUnreported = (db: Db, { network, hash, pubkey, amount_gwei: amount, sender }: Alike & { readonly hash: Hash }) =>
  db
    .deleteFrom('unreported_requests')
    .where('network', '=', network)
    .where('hash', '=', hash)
    .where('pubkey', '=', pubkey)
    .where('amount_gwei', '=', amount)
    .where('sender', '=', sender)
    .execute()

/** What is told of a request that was not submitted while others alike may have been sent. Null: nothing. */
export const tellAwaiting = (db: Db, ids: readonly string[], reason: string | null) =>
  db
    .updateTable('ethereum_requests')
    .set({ consensus_reason: reason })
    .where('id', 'in', ids)
    .where('status', '=', 'awaiting_submission')
    .where('consensus_reason', 'is distinct from', reason)
    .execute()

export interface SeenRequest {
  readonly was: RequestRow['status']
  /** Another resource has taken its external reference meanwhile. */
  readonly referenceHeldBy?: string
}

/**
 * Records a transaction that was seen in a final block to have made a request, as if it were reported. One that counted as failed or cancelled is in flight again,
 * and holds its reference again unless another has taken it.
 * @returns undefined when it was reported meanwhile, or has landed
 */
export async function seeRequest(transaction: Transaction<Database>, id: string, hash: Hash, now: Date): Promise<SeenRequest | undefined> {
  const request = await transaction.selectFrom('ethereum_requests').selectAll().where('id', '=', id).forUpdate().executeTakeFirstOrThrow()
  if (request.status === 'confirmed') return undefined
  if ((await requestHashes(transaction, [id])).some((one) => one.hash === hash)) return undefined
  await sendAgain(transaction, id, { hash, sentBy: undefined, now })
  if (request.status !== 'failed' && request.status !== 'cancelled') return { was: request.status }
  return { was: request.status, ...(await retakeReference(transaction, request)) }
}
