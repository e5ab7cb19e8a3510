import { type Insertable, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import { ProblemError } from '../errors.ts'
import { isUniqueViolation } from './database.ts'
import type { Database } from './schema.ts'
import type { SolanaTransactionsTable } from './solana-schema.ts'
import type { Db } from './solana-stakes.ts'

export type SolanaTransactionRow = Selectable<SolanaTransactionsTable>

/** As many as the contract's stake can hold. */
const maxTransactions = 256

/** The newest of each of these stakes, in the order of their making. */
export async function transactionsOf(db: Db, stakeId: string): Promise<SolanaTransactionRow[]> {
  const rows = await db
    .selectFrom('solana_transactions')
    .selectAll()
    .where('stake_id', '=', stakeId)
    .orderBy('id', 'desc')
    .limit(maxTransactions)
    .execute()
  return rows.toReversed()
}

export const findTransaction = (db: Db, stakeId: string, id: string): Promise<SolanaTransactionRow | undefined> =>
  db.selectFrom('solana_transactions').selectAll().where('stake_id', '=', stakeId).where('id', '=', id).executeTakeFirst()

export const insertTransaction = (
  transaction: Transaction<Database>,
  row: Insertable<SolanaTransactionsTable>,
): Promise<SolanaTransactionRow> => transaction.insertInto('solana_transactions').values(row).returningAll().executeTakeFirstOrThrow()

/**
 * Takes up to `limit` transactions of a network that may still land and whose account has webhooks, those first that have waited longest. They are due again after
 * `intervalMs`, for whoever comes first.
 */
export const takeFollowed = (
  db: Kysely<Database>,
  { network, limit, intervalMs }: { network: string; limit: number; intervalMs: number },
): Promise<SolanaTransactionRow[]> =>
  db
    .updateTable('solana_transactions')
    .set({ check_at: sql<Date>`now() + make_interval(secs => ${intervalMs / 1000}::double precision)` })
    .where('id', 'in', (query) =>
      query
        .selectFrom('solana_transactions')
        .select('solana_transactions.id')
        .where('status', 'in', ['awaiting_submission', 'submitted'])
        .where('check_at', '<=', sql<Date>`now()`)
        .where('stake_id', 'in', (stakes) =>
          stakes
            .selectFrom('solana_stakes')
            .innerJoin('webhook_endpoints', 'webhook_endpoints.account', 'solana_stakes.account')
            .select('solana_stakes.id')
            .where('solana_stakes.network', '=', network)
            .where('webhook_endpoints.disabled_at', 'is', null),
        )
        .orderBy('check_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()

/** Only the attempt that was looked at, in the state in which it was looked at. Undefined: somebody was faster. */
const unchanged = (db: Db, row: SolanaTransactionRow) =>
  db.updateTable('solana_transactions').where('id', '=', row.id).where('attempt', '=', row.attempt).where('status', '=', row.status)

/** Writes what the cluster says of an attempt. */
export const recordStatus = (
  db: Db,
  row: SolanaTransactionRow,
  seen: Pick<SolanaTransactionRow, 'status' | 'signature' | 'failure_reason'>,
): Promise<SolanaTransactionRow | undefined> => unchanged(db, row).set(seen).returningAll().executeTakeFirst()

/** Remembers a signature before the cluster has shown it, so that it is looked for from now on. */
export const rememberSignature = (db: Db, row: SolanaTransactionRow, signature: string): Promise<SolanaTransactionRow | undefined> =>
  unchanged(db, row).set({ signature }).returningAll().executeTakeFirst()

/** Replaces an expired attempt by a new message under the same id. */
export const replaceMessage = (
  db: Db,
  row: SolanaTransactionRow,
  next: Pick<SolanaTransactionRow, 'message' | 'recent_blockhash' | 'last_valid_block_height' | 'prepared_slot'>,
): Promise<SolanaTransactionRow | undefined> =>
  unchanged(db, row)
    .set({
      ...next,
      attempt: row.attempt + 1,
      status: 'awaiting_submission',
      signature: null,
      ...(row.signature === null ? {} : { earlier_signatures: sql<string[]>`array_append(earlier_signatures, ${row.signature}::text)` }),
    })
    .returningAll()
    .executeTakeFirst()

/** @throws ProblemError `invalid-state` where the database refuses a second live transaction. */
export async function refusingSecond<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (isUniqueViolation(error, 'solana_transactions_live') || isUniqueViolation(error, 'solana_transactions_one_stake'))
      throw new ProblemError('invalid-state', 'the stake has a transaction of this kind that may still land')
    throw error
  }
}
