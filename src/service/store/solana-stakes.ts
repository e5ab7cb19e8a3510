import { type Insertable, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { Database } from './schema.ts'
import type { SolanaStakesTable } from './solana-schema.ts'
import { releaseReference, retakeReference, takeReference } from './stakes.ts'

export type SolanaStakeRow = Selectable<SolanaStakesTable>
export type Db = Kysely<Database> | Transaction<Database>

/** A challenge as it is stored with its stake. */
export type ChallengeColumns = Pick<
  SolanaStakesTable,
  'challenge_id' | 'challenge_message' | 'challenge_issued_at' | 'challenge_expires_at'
>

export const findSolanaStake = (db: Db, account: string, id: string): Promise<SolanaStakeRow | undefined> =>
  db.selectFrom('solana_stakes').selectAll().where('account', '=', account).where('id', '=', id).executeTakeFirst()

/** The stake that was made under an Idempotency-Key. */
export const solanaStakeOfRequest = (db: Db, account: string, idempotencyKey: string): Promise<SolanaStakeRow | undefined> =>
  db.selectFrom('solana_stakes').selectAll().where('account', '=', account).where('idempotency_key', '=', idempotencyKey).executeTakeFirst()

/** The stake as it is now; until the transaction ends, nobody else changes it or adds transactions to it. */
export const lockSolanaStake = (transaction: Transaction<Database>, id: string): Promise<SolanaStakeRow> =>
  transaction.selectFrom('solana_stakes').selectAll().where('id', '=', id).forUpdate().executeTakeFirstOrThrow()

/** @throws ProblemError `reference-exists` */
export async function insertSolanaStake(transaction: Transaction<Database>, stake: Insertable<SolanaStakesTable>): Promise<SolanaStakeRow> {
  await takeReference(transaction, { ...stake, external_reference: stake.external_reference ?? null })
  return transaction.insertInto('solana_stakes').values(stake).returningAll().executeTakeFirstOrThrow()
}

/** A page, the newest first, and one row more where there are more. */
export function listSolanaStakes(
  db: Db,
  given: {
    account: string
    limit: number
    before?: string | undefined
    network?: string | undefined
    /** Only of these; undefined: of all. */
    networks?: readonly string[] | undefined
    externalReference?: string | undefined
  },
): Promise<SolanaStakeRow[]> {
  let query = db.selectFrom('solana_stakes').selectAll().where('account', '=', given.account)
  if (given.before !== undefined) query = query.where('id', '<', given.before)
  if (given.network !== undefined) query = query.where('network', '=', given.network)
  // An empty list is no list in SQL; no network is named by no letters.
  if (given.networks !== undefined) query = query.where('network', 'in', ['', ...given.networks])
  if (given.externalReference !== undefined) query = query.where('external_reference', '=', given.externalReference)
  return query
    .orderBy('id', 'desc')
    .limit(given.limit + 1)
    .execute()
}

export const setChallenge = (db: Db, id: string, challenge: ChallengeColumns) =>
  db.updateTable('solana_stakes').set(challenge).where('id', '=', id).execute()

/** Remembers that the stake account was there at this finalized slot. */
export const markSeen = (db: Db, id: string, slot: bigint) =>
  db.updateTable('solana_stakes').set({ seen_slot: slot }).where('id', '=', id).where('seen_slot', 'is', null).execute()

/** Ends a stake that nobody has paid: its reference is free, and its challenge is void. The stake is locked. */
export async function cancelSolanaStake(transaction: Transaction<Database>, id: string, now: Date): Promise<SolanaStakeRow> {
  await releaseReference(transaction, id)
  return transaction
    .updateTable('solana_stakes')
    .set({
      cancelled_at: now,
      challenge_id: null,
      challenge_message: null,
      challenge_issued_at: null,
      challenge_expires_at: null,
      look_at: sql<Date>`now()`,
    })
    .where('id', '=', id)
    .where('cancelled_at', 'is', null)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/**
 * A cancelled stake was paid all the same: it is no longer cancelled, and holds its reference again unless another has taken it. Undefined: somebody else has
 * written that down.
 */
export async function reviveSolanaStake(
  transaction: Transaction<Database>,
  id: string,
): Promise<{ readonly referenceHeldBy?: string } | undefined> {
  const stake = await lockSolanaStake(transaction, id)
  if (stake.cancelled_at === null) return undefined
  await transaction.updateTable('solana_stakes').set({ cancelled_at: null }).where('id', '=', id).execute()
  return retakeReference(transaction, stake)
}

/**
 * Takes up to `limit` cancelled stakes of a network that are due to be looked for on the chain, those first that have waited longest. Each is due again after
 * `intervalMs`, or a tenth of the time since it was cancelled where that is more: a payment that comes late mostly comes soon.
 */
export const takeCancelled = (
  db: Kysely<Database>,
  { network, limit, intervalMs }: { network: string; limit: number; intervalMs: number },
): Promise<SolanaStakeRow[]> =>
  db
    .updateTable('solana_stakes')
    .set({
      look_at: sql<Date>`now() + greatest(make_interval(secs => ${intervalMs / 1000}::double precision), (now() - cancelled_at) / 10)`,
    })
    .where('id', 'in', (query) =>
      query
        .selectFrom('solana_stakes')
        .select('id')
        .where('network', '=', network)
        .where('cancelled_at', 'is not', null)
        .where('look_at', '<=', sql<Date>`now()`)
        .orderBy('look_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()
