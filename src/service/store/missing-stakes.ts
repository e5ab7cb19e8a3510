import { type Kysely, type Selectable, sql } from 'kysely'
import type { Hex } from '../../chains/ethereum/chain.ts'
import type { DepositMark } from '../../chains/ethereum/deposit-scan.ts'
import { lowerCase, type Pubkey } from '../../lib/chain-types.ts'
import type { Database, UnknownDepositsTable } from './schema.ts'

type Db = Kysely<Database>
export type UnknownDeposit = Selectable<UnknownDepositsTable>

/**
 * The mark of a network, for whoever comes first when it is due; it is due again after `intervalMs`.
 * @returns `none` where there is no mark yet; undefined while it is not due.
 */
export async function takeMark(db: Db, network: string, intervalMs: number): Promise<DepositMark | 'none' | undefined> {
  const taken = await db
    .updateTable('deposit_marks')
    .set({ check_at: sql<Date>`now() + make_interval(secs => ${intervalMs / 1000}::double precision)` })
    .where('network', '=', network)
    .where('check_at', '<=', sql<Date>`now()`)
    .returning(['block', 'count'])
    .executeTakeFirst()
  if (taken !== undefined) return taken
  const there = await db.selectFrom('deposit_marks').select('network').where('network', '=', network).executeTakeFirst()
  return there === undefined ? 'none' : undefined
}

export const insertMark = (db: Db, network: string, mark: DepositMark) =>
  db
    .insertInto('deposit_marks')
    .values({ network, ...mark })
    .onConflict((conflict) => conflict.doNothing())
    .execute()

/** Moves a mark on, and writes what was found on the way, both or neither. @returns what is new; nothing when another instance was first */
export const moveMark = (
  db: Db,
  network: string,
  { from, to }: { from: DepositMark; to: DepositMark },
  found: readonly UnknownDeposit[],
): Promise<readonly UnknownDeposit[]> =>
  db.transaction().execute(async (transaction) => {
    const moved = await transaction
      .updateTable('deposit_marks')
      .set({ block: to.block, count: to.count })
      .where('network', '=', network)
      .where('block', '=', from.block)
      .executeTakeFirst()
    if (moved.numUpdatedRows !== 1n || found.length === 0) return []
    return transaction
      .insertInto('unknown_deposits')
      .values([...found])
      .onConflict((conflict) => conflict.doNothing())
      .returningAll()
      .execute()
  })

/** Which of these addresses (EIP-55) are withdrawal addresses of a network's stakes that are paid: an address that somebody has merely asked for says nothing. */
export async function ownAddresses(db: Db, network: string, addresses: readonly Hex[]): Promise<ReadonlySet<Hex>> {
  if (addresses.length === 0) return new Set()
  const rows = await db
    .selectFrom('ethereum_stakes')
    .select('withdrawal_address')
    .distinct()
    .where('network', '=', network)
    .where('withdrawal_address', 'in', addresses)
    .where('status', '=', 'confirmed')
    .execute()
  return new Set(rows.map((row) => row.withdrawal_address))
}

/** Which of these validator keys a stake holds. */
export async function ownPubkeys(db: Db, pubkeys: readonly Pubkey[]): Promise<ReadonlySet<Hex>> {
  if (pubkeys.length === 0) return new Set()
  const rows = await db.selectFrom('ethereum_stakes').select('pubkey').where('pubkey', 'in', pubkeys).execute()
  return new Set(rows.map(({ pubkey }) => pubkey))
}

/** Deposits that still have no stake and that nobody has dismissed. */
const stillMissing = (db: Db) =>
  db
    .selectFrom('unknown_deposits')
    .where('dismissed_at', 'is', null)
    .where((where) =>
      where.not(
        where.exists(where.selectFrom('ethereum_stakes').select('id').whereRef('ethereum_stakes.pubkey', '=', 'unknown_deposits.pubkey')),
      ),
    )

export const missingStakesOf = (db: Db, network?: string): Promise<readonly UnknownDeposit[]> => {
  const all = stillMissing(db).selectAll().orderBy('network').orderBy('block_number').orderBy('pubkey')
  return (network === undefined ? all : all.where('network', '=', network)).execute()
}

export const countMissing = (db: Db): Promise<readonly { network: string; count: bigint }[]> =>
  stillMissing(db)
    .select((select) => ['network', select.fn.countAll<bigint>().as('count')])
    .groupBy('network')
    .execute()

/** @returns those that were missing until now */
export const dismissMissing = async (db: Db, pubkeys: readonly string[], now: Date): Promise<readonly Hex[]> => {
  if (pubkeys.length === 0) return []
  const rows = await db
    .updateTable('unknown_deposits')
    .set({ dismissed_at: now })
    .where('dismissed_at', 'is', null)
    .where(
      'pubkey',
      'in',
      pubkeys.map((pubkey) => lowerCase(pubkey as Pubkey)),
    )
    .returning('pubkey')
    .execute()
  return rows.map(({ pubkey }) => pubkey)
}
