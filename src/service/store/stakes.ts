import { CompiledQuery, type Kysely, type Selectable, type SelectQueryBuilder, sql, type Transaction } from 'kysely'
import type { Hash, Hex } from '../../chains/ethereum/chain.ts'
import { lowerCase, type Pubkey } from '../../lib/chain-types.ts'
import { ProblemError } from '../errors.ts'
import { prepared } from './prepared.ts'
import type { Database, EthereumStakeHashesTable, EthereumStakesTable } from './schema.ts'

export type StakeRow = Selectable<EthereumStakesTable>
export type HashRow = Selectable<EthereumStakeHashesTable>
type Db = Kysely<Database> | Transaction<Database>

export type NewStake = Omit<
  StakeRow,
  | 'status'
  | 'hash'
  | 'block_number'
  | 'block_hash'
  | 'failure_reason'
  | 'check_at'
  | 'checked_head'
  | 'look_at'
  | 'consensus_status'
  | 'consensus_reason'
  | 'consensus_at'
  | 'keys_provisioned_at'
> & {
  deposit_data: string
  unsigned_transaction: string
}

export const findStake = (db: Db, account: string, id: string): Promise<StakeRow | undefined> =>
  db.selectFrom('ethereum_stakes').selectAll().where('account', '=', account).where('id', '=', id).executeTakeFirst()

/**
 * What names a state of a stake: the transaction that wrote its row, and all that is shown of it and can change. A standby that takes over without the last
 * transactions of its primary gives their numbers to others.
 */
const version = `row(xmin, account, status, hash, block_number, block_hash, failure_reason, withdrawal_is_contract, consensus_status, consensus_reason, keys_provisioned_at)::text`
const versionsById = prepared('stake_versions', `select id, ${version} as version from ethereum_stakes where id = any($1::text[])`)

/** The versions of those that there are. */
export async function stakeVersions(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { rows } = await db.executeQuery<{ id: string; version: string }>(CompiledQuery.raw(versionsById, [ids]))
  return new Map(rows.map(({ id, version }) => [id, version]))
}

export const findStakeVersion = (db: Db, account: string, id: string): Promise<(StakeRow & { version: string }) | undefined> =>
  db
    .selectFrom('ethereum_stakes')
    .selectAll()
    .select(sql.raw<string>(version).as('version'))
    .where('account', '=', account)
    .where('id', '=', id)
    .executeTakeFirst()

/** The stake that was made under an Idempotency-Key. */
export const stakeOfRequest = (db: Db, account: string, idempotencyKey: string): Promise<StakeRow | undefined> =>
  db
    .selectFrom('ethereum_stakes')
    .selectAll()
    .where('account', '=', account)
    .where('idempotency_key', '=', idempotencyKey)
    .executeTakeFirst()

/** The resource that holds a reference, of whatever kind. */
export const holderOf = (db: Db, account: string, reference: string): Promise<string | undefined> =>
  db
    .selectFrom('external_references')
    .select('resource_id')
    .where('account', '=', account)
    .where('reference', '=', reference)
    .executeTakeFirst()
    .then((row) => row?.resource_id)

export const referenceExists = (reference: string, existingId: string): ProblemError =>
  new ProblemError('reference-exists', `the external reference "${reference}" is held by ${existingId}`, { existingId })

/** Takes the external reference of a new resource, if it has one. @throws ProblemError `reference-exists` */
export async function takeReference(
  transaction: Transaction<Database>,
  { account, external_reference: reference, id }: { account: string; external_reference: string | null; id: string },
): Promise<void> {
  if (reference === null) return
  const taken = await transaction
    .insertInto('external_references')
    .values({ account, reference, resource_id: id })
    .onConflict((conflict) => conflict.doNothing())
    .returning('resource_id')
    .executeTakeFirst()
  if (taken === undefined) throw referenceExists(reference, (await holderOf(transaction, account, reference)) ?? 'another resource')
}

/** Takes the reference of a resource again that had let go of it, or says who has taken it meanwhile. */
export async function retakeReference(
  transaction: Transaction<Database>,
  resource: { account: string; external_reference: string | null; id: string },
): Promise<{ readonly referenceHeldBy?: string }> {
  try {
    await takeReference(transaction, resource)
    return {}
  } catch (error) {
    if (!(error instanceof ProblemError) || resource.external_reference === null) throw error
    const holder = await holderOf(transaction, resource.account, resource.external_reference)
    return holder === undefined ? {} : { referenceHeldBy: holder }
  }
}

/** A resource that is cancelled or failed no longer holds its reference: its owner may try again under the same name. */
export const releaseReference = (transaction: Transaction<Database>, id: string) =>
  transaction.deleteFrom('external_references').where('resource_id', '=', id).execute()

/** @throws ProblemError `reference-exists` */
export async function insertStake(transaction: Transaction<Database>, stake: NewStake): Promise<StakeRow> {
  await takeReference(transaction, stake)
  return transaction.insertInto('ethereum_stakes').values(stake).returningAll().executeTakeFirstOrThrow()
}

/** A page, the newest first, and one row more where there are more. */
export function listStakes(
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
): Promise<StakeRow[]> {
  let query = db.selectFrom('ethereum_stakes').selectAll().where('account', '=', given.account)
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

export const hashesOf = (db: Db, stakeIds: readonly string[]): Promise<HashRow[]> =>
  stakeIds.length === 0
    ? Promise.resolve([])
    : db.selectFrom('ethereum_stake_hashes').selectAll().where('stake_id', 'in', stakeIds).orderBy('submitted_at').orderBy('hash').execute()

/** A hash as it is reported, with its sender and nonce where they are known. */
export interface ReportedHash {
  readonly hash: Hash
  readonly sentBy: SentBy | undefined
  readonly now: Date
}
export interface SentBy {
  readonly sender: string
  readonly nonce: number
}

export const sentByColumns = (sentBy: SentBy | undefined) => ({
  sender: (sentBy?.sender ?? null) as Hex | null,
  nonce: sentBy === undefined ? null : BigInt(sentBy.nonce),
})

/**
 * Records a reported hash; the tracker looks at once. A stake that had failed is in flight again, and holds its reference again.
 * @throws ProblemError `reference-exists` when another resource has taken it meanwhile
 */
export async function addHash(transaction: Transaction<Database>, stake: StakeRow, { hash, sentBy, now }: ReportedHash): Promise<StakeRow> {
  if (stake.status === 'failed') await takeReference(transaction, stake)
  await transaction
    .insertInto('ethereum_stake_hashes')
    .values({ stake_id: stake.id, hash, submitted_at: now, ...sentByColumns(sentBy) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return transaction
    .updateTable('ethereum_stakes')
    .set({
      status: 'submitted',
      hash,
      block_number: null,
      block_hash: null,
      failure_reason: null,
      check_at: sql<Date>`now()`,
      checked_head: null,
    })
    .where('id', '=', stake.id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

export const rememberSender = (db: Db, stakeId: string, hash: Hash, sentBy: SentBy) =>
  db.updateTable('ethereum_stake_hashes').set(sentByColumns(sentBy)).where('stake_id', '=', stakeId).where('hash', '=', hash).execute()

/**
 * Takes up to `limit` stakes that are due, and that the chain can tell something new of. What is taken is due again after `intervalMs`, for
 * whoever comes first: several instances share the work, and one that dies holds nothing up.
 */
export const takeDue = (
  db: Kysely<Database>,
  given: { network: string; head: bigint; limit: number; intervalMs: number },
): Promise<StakeRow[]> =>
  takeStakes(db, 'check_at', given, (due) =>
    due
      .where('status', '=', 'submitted')
      .where((where) => where.or([where('checked_head', 'is', null), where('checked_head', '<>', given.head)])),
  )

const inMs = (ms: number) => sql<Date>`now() + make_interval(secs => ${ms / 1000}::double precision)`

/**
 * Takes up to `limit` stakes of a network, of those that `which` chooses, whose time in `column` has come, oldest first: it is set to `intervalMs` from now, so
 * that no other instance takes them meanwhile; or to `next`.
 */
const takeStakes = (
  db: Kysely<Database>,
  column: 'check_at' | 'look_at' | 'consensus_at',
  { network, limit, intervalMs }: { network: string; limit: number; intervalMs: number },
  which: (
    due: SelectQueryBuilder<Database, 'ethereum_stakes', { id: string }>,
  ) => SelectQueryBuilder<Database, 'ethereum_stakes', { id: string }>,
  next = inMs(intervalMs),
): Promise<StakeRow[]> =>
  db
    .updateTable('ethereum_stakes')
    .set({ [column]: next })
    .where('id', 'in', (query) =>
      which(query.selectFrom('ethereum_stakes').select('id').where('network', '=', network))
        .where(column, '<=', sql<Date>`now()`)
        .orderBy(column)
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()

/**
 * Writes what was seen of a stake. It counts only while the stake is in flight and no further hash was reported meanwhile (`expectedHash`
 * and the number of hashes are as they were read): what was concluded without that hash may be wrong.
 */
export const recordOutcome = (
  db: Kysely<Database>,
  stake: Pick<StakeRow, 'id' | 'account' | 'hash'>,
  hashCount: number,
  seen: Pick<StakeRow, 'status' | 'hash' | 'block_number' | 'block_hash' | 'failure_reason' | 'checked_head'>,
): Promise<boolean> =>
  db.transaction().execute(async (transaction) => {
    const result = await transaction
      .updateTable('ethereum_stakes')
      .set(seen)
      .where('id', '=', stake.id)
      .where('status', '=', 'submitted')
      .where('hash', '=', stake.hash)
      .where((where) =>
        where(
          where
            .selectFrom('ethereum_stake_hashes')
            .select((count) => count.fn.countAll<bigint>().as('count'))
            .where('stake_id', '=', stake.id),
          '=',
          BigInt(hashCount),
        ),
      )
      .executeTakeFirst()
    if (result.numUpdatedRows !== 1n) return false
    if (seen.status === 'failed') await releaseReference(transaction, stake.id)
    return true
  })

/** A stake that is still in flight, as it was read and as it was seen. */
export interface SeenInFlight {
  readonly stake: Pick<StakeRow, 'id' | 'hash'>
  readonly hashCount: number
  readonly seen: Pick<StakeRow, 'hash' | 'block_number' | 'block_hash'>
}

/** The same for many that go on being in flight, in one statement: of thousands that wait, a transaction for each would take longer than the blocks. */
export async function recordInFlight(db: Kysely<Database>, head: bigint, all: readonly SeenInFlight[]): Promise<void> {
  if (all.length === 0) return
  const values = sql.join(
    all.map(
      ({ stake, hashCount, seen }) =>
        sql`(${stake.id}::text, ${stake.hash}::text, ${hashCount}::bigint, ${seen.hash}::text, ${seen.block_number}::bigint, ${seen.block_hash}::text)`,
    ),
  )
  await sql`
    update ethereum_stakes as stake
      set hash = seen.hash, block_number = seen.block_number, block_hash = seen.block_hash, failure_reason = null, checked_head = ${head}
      from (values ${values}) as seen (id, was, hashes, hash, block_number, block_hash)
      where stake.id = seen.id and stake.status = 'submitted' and stake.hash = seen.was
        and (select count(*) from ethereum_stake_hashes where stake_id = stake.id) = seen.hashes`.execute(db)
}

export const countByState = (db: Kysely<Database>): Promise<{ network: string; status: string; count: bigint }[]> =>
  db
    .selectFrom('ethereum_stakes')
    .select((select) => ['network', 'status', select.fn.countAll<bigint>().as('count')])
    .groupBy(['network', 'status'])
    .execute()

/** Which validator key belongs to which stake, in the order of the keys. */
export function stakeKeys(
  db: Kysely<Database>,
  filter: { network?: string | undefined; status?: string | undefined; pubkeys?: readonly string[] | undefined },
): Promise<{ stakeId: string; network: string; status: string; pubkey: string; keyIndex: bigint }[]> {
  let query = db.selectFrom('ethereum_stakes').select(['id as stakeId', 'network', 'status', 'pubkey', 'key_index as keyIndex'])
  if (filter.network !== undefined) query = query.where('network', '=', filter.network)
  if (filter.status !== undefined) query = query.where('status', '=', filter.status as StakeRow['status'])
  if (filter.pubkeys !== undefined)
    query = query.where(
      'pubkey',
      'in',
      filter.pubkeys.map((pubkey) => lowerCase(pubkey as Pubkey)),
    )
  return query.orderBy('key_index').execute()
}

export const hasStakeOf = async (db: Db, pubkey: Pubkey): Promise<boolean> =>
  (await db.selectFrom('ethereum_stakes').select('id').where('pubkey', '=', pubkey).executeTakeFirst()) !== undefined

/** Whose validator it is, and where, when a stake of this service holds the key. */
export const stakeOfKey = (db: Db, pubkey: Pubkey): Promise<Pick<StakeRow, 'account' | 'network' | 'credentials_type'> | undefined> =>
  db.selectFrom('ethereum_stakes').select(['account', 'network', 'credentials_type']).where('pubkey', '=', pubkey).executeTakeFirst()

/** A stake, and nobody else changes it until the transaction ends. */
export const lockStake = (transaction: Transaction<Database>, id: string): Promise<StakeRow> =>
  transaction.selectFrom('ethereum_stakes').selectAll().where('id', '=', id).forUpdate().executeTakeFirstOrThrow()

/** Ends a stake that nobody has paid; it frees its reference, and keeps its key. Hashes that were reported are kept in their own table. */
export async function cancelStake(transaction: Transaction<Database>, id: string): Promise<StakeRow> {
  await releaseReference(transaction, id)
  return transaction
    .updateTable('ethereum_stakes')
    .set({ status: 'cancelled', hash: null, block_number: null, block_hash: null })
    .where('id', '=', id)
    .where('status', 'in', ['awaiting_submission', 'submitted'])
    .returningAll()
    .executeTakeFirstOrThrow()
}

/**
 * Takes up to `limit` stakes that are not known to be paid and are due to be looked for among the deposits, as `takeDue` does. The longer a stake has been unpaid, the
 * more seldom it is due: stakes that nobody ever pays, however many an account makes, cost next to nothing. A deposit for one wakes it (`lookSoon`).
 */
export const takeUnpaid = (db: Kysely<Database>, given: { network: string; limit: number; intervalMs: number }): Promise<StakeRow[]> =>
  takeStakes(
    db,
    'look_at',
    given,
    (due) => due.where('status', '<>', 'confirmed'),
    sql<Date>`greatest(${inMs(given.intervalMs)}, now() + least((now() - created_at) / 10, make_interval(hours => 1)))`,
  )

/** Has those of these stakes that are not known to be paid looked for among the deposits within `withinMs`. */
export async function lookSoon(
  db: Kysely<Database>,
  { by, of, withinMs }: { readonly by: 'id' | 'pubkey'; readonly of: readonly string[]; readonly withinMs: number },
): Promise<void> {
  if (of.length === 0) return
  const soon = inMs(withinMs)
  await sql`
    update ethereum_stakes set look_at = ${soon}
      where ${sql.ref(by)} = any(${of}::text[]) and status <> 'confirmed' and look_at > ${soon}`.execute(db)
}

/** Takes up to `limit` confirmed stakes whose deposit the consensus layer has not decided on and that are due, as `takeDue` does. */
export const takeUndecided = (db: Kysely<Database>, given: { network: string; limit: number; intervalMs: number }): Promise<StakeRow[]> =>
  takeStakes(db, 'consensus_at', given, (due) => due.where('status', '=', 'confirmed').where('consensus_status', '=', 'pending'))

/** Writes what the consensus layer made of a deposit. What it has decided stays. */
export const recordConsensus = async (
  db: Kysely<Database>,
  id: string,
  seen: Pick<StakeRow, 'consensus_status' | 'consensus_reason'>,
): Promise<boolean> => {
  const result = await db
    .updateTable('ethereum_stakes')
    .set(seen)
    .where('id', '=', id)
    .where('status', '=', 'confirmed')
    .where('consensus_status', '=', 'pending')
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

export interface SeenStakePayment {
  /** What the stake counted as until now. */
  readonly was: StakeRow['status']
  /** Another resource that has taken the stake's reference meanwhile. */
  readonly referenceHeldBy?: string
}

/**
 * Records a transaction that the chain shows to have paid a stake, whatever it counted as: it is followed as one that was reported. It holds its reference
 * again unless another has taken it. Undefined when there is nothing new: it is confirmed, or this hash is on its way.
 */
export async function seePayment(
  transaction: Transaction<Database>,
  id: string,
  hash: Hash,
  now: Date,
): Promise<SeenStakePayment | undefined> {
  const stake = await lockStake(transaction, id)
  if (stake.status === 'confirmed') return undefined
  const inserted = await transaction
    .insertInto('ethereum_stake_hashes')
    .values({ stake_id: id, hash, submitted_at: now, sender: null, nonce: null })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  if (stake.status === 'submitted' && inserted.numInsertedOrUpdatedRows !== 1n) return undefined
  await transaction
    .updateTable('ethereum_stakes')
    .set({
      status: 'submitted',
      hash,
      block_number: null,
      block_hash: null,
      failure_reason: null,
      check_at: sql<Date>`now()`,
      checked_head: null,
    })
    .where('id', '=', id)
    .execute()
  if (stake.status !== 'failed' && stake.status !== 'cancelled') return { was: stake.status }
  return { was: stake.status, ...(await retakeReference(transaction, stake)) }
}

/** Where a validator's key was taken to. */
export interface KeyExport {
  readonly pubkey: Pubkey
  /** The last time. */
  readonly exportedAt: Date
  readonly place: string
  /** All places that it was ever taken to. */
  readonly places: readonly string[]
  /** When a validator client was last seen to hold it, at its last place. */
  readonly provisionedAt: Date | null
}

/** When and where the keys of validators were exported to before, the last time of each. */
export async function exportsOf(db: Db, pubkeys: readonly string[]): Promise<KeyExport[]> {
  if (pubkeys.length === 0) return []
  return db
    .selectFrom('keystore_exports')
    .distinctOn('pubkey')
    .select([
      'pubkey',
      'exported_at as exportedAt',
      'place',
      sql<string[]>`array(select distinct place from keystore_exports one where one.pubkey = keystore_exports.pubkey)`.as('places'),
      sql<Date | null>`(select keys_provisioned_at from ethereum_stakes where pubkey = keystore_exports.pubkey)`.as('provisionedAt'),
    ])
    .where('pubkey', 'in', pubkeys as readonly Hex[])
    .orderBy('pubkey')
    .orderBy('exported_at', 'desc')
    .execute()
}

/**
 * Writes down that the keys of these validators go to a place, unless the last place of one of them is another: those are returned, and nothing is written. Of two
 * that do so at once, one comes first. With `again` they go whatever was before; of those that leave a place, or are `gone` from it, no validator client is known to
 * hold them.
 */
export const claimPlace = (
  db: Kysely<Database>,
  {
    again,
    gone = [],
    ...claim
  }: { pubkeys: readonly string[]; at: Date; place: string; again: boolean; gone?: readonly string[] | undefined },
): Promise<KeyExport[]> =>
  db.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('places of validator keys', 0))`.execute(transaction)
    const before = await exportsOf(transaction, claim.pubkeys)
    const elsewhere = before.filter(({ place }) => place !== claim.place)
    if (elsewhere.length > 0 && !again) return elsewhere
    const here = new Set(again ? [] : before.map(({ pubkey }): string => pubkey))
    await rememberExports(transaction, { ...claim, pubkeys: claim.pubkeys.filter((pubkey) => !here.has(pubkey)) })
    await forgetProvisioned(transaction, [...elsewhere.map(({ pubkey }) => pubkey), ...gone])
    return []
  })

const forgetProvisioned = (db: Db, pubkeys: readonly string[]) =>
  db
    .updateTable('ethereum_stakes')
    .set({ keys_provisioned_at: null })
    .where('pubkey', 'in', ['0x', ...pubkeys] as Hex[])
    .where('keys_provisioned_at', 'is not', null)
    .execute()

export const noteProvisioned = (db: Db, { pubkeys, at }: { pubkeys: readonly string[]; at: Date }) =>
  db
    .updateTable('ethereum_stakes')
    .set({ keys_provisioned_at: at })
    .where('pubkey', 'in', ['0x', ...pubkeys] as Hex[])
    .execute()

const rememberExports = async (db: Db, exported: { pubkeys: readonly string[]; at: Date; place: string }): Promise<void> => {
  if (exported.pubkeys.length === 0) return
  await db
    .insertInto('keystore_exports')
    .values(exported.pubkeys.map((pubkey) => ({ pubkey: pubkey as Hex, exported_at: exported.at, place: exported.place })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
