import type { Kysely, Selectable, Transaction } from 'kysely'
import type { Database } from './schema.ts'
import type { SolanaStakesTable } from './solana-schema.ts'
import { takeReference } from './stakes.ts'

export type SolanaStakeRow = Selectable<SolanaStakesTable>
export type Db = Kysely<Database> | Transaction<Database>

/** A challenge as it is stored with its stake. */
export type ChallengeColumns = Pick<
  SolanaStakesTable,
  'challenge_id' | 'challenge_message' | 'challenge_issued_at' | 'challenge_expires_at'
>

export const findSolanaStake = (db: Db, account: string, id: string): Promise<SolanaStakeRow | undefined> =>
  db.selectFrom('solana_stakes').selectAll().where('account', '=', account).where('id', '=', id).executeTakeFirst()

/** The stake as it is now; until the transaction ends, nobody else changes it or adds transactions to it. */
export const lockSolanaStake = (transaction: Transaction<Database>, id: string): Promise<SolanaStakeRow> =>
  transaction.selectFrom('solana_stakes').selectAll().where('id', '=', id).forUpdate().executeTakeFirstOrThrow()

/** @throws ProblemError `reference-exists` */
export async function insertSolanaStake(transaction: Transaction<Database>, stake: SolanaStakeRow): Promise<SolanaStakeRow> {
  await takeReference(transaction, stake)
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
