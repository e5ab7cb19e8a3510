import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { Hash, Pubkey } from '../../chains/ethereum/chain.ts'
import { type Gwei, gwei } from '../../lib/amounts.ts'
import type { Database, EthereumRequestHashesTable, EthereumRequestsTable } from './schema.ts'
import { type ReportedHash, releaseReference, retakeReference, type SentBy, sentByColumns, takeReference } from './stakes.ts'

/** An exit or a partial withdrawal that was asked for. */
export type RequestRow = Selectable<EthereumRequestsTable>
export type RequestHashRow = Selectable<EthereumRequestHashesTable>
export type RequestKind = RequestRow['kind']
type Db = Kysely<Database> | Transaction<Database>

export type NewRequest = Pick<
  RequestRow,
  | 'id'
  | 'account'
  | 'network'
  | 'kind'
  | 'pubkey'
  | 'amount_gwei'
  | 'sender'
  | 'fee_wei'
  | 'quoted_at_block'
  | 'external_reference'
  | 'queued_deposits_gwei'
  | 'created_at'
  | 'idempotency_key'
> & { unsigned_transaction: string }

/** Where a request is: of another account, kind or validator it doesn't exist. */
export interface RequestKey {
  readonly account: string
  readonly kind: RequestKind
  readonly pubkey: Pubkey
  readonly id: string
}

const find = (db: Db, { account, kind, pubkey, id }: RequestKey) =>
  db
    .selectFrom('ethereum_requests')
    .selectAll()
    .where('id', '=', id)
    .where('account', '=', account)
    .where('kind', '=', kind)
    .where('pubkey', '=', pubkey)

export const findRequest = (db: Db, key: RequestKey): Promise<RequestRow | undefined> => find(db, key).executeTakeFirst()

/** The same, and nobody else changes it until the transaction ends. */
export const lockRequest = (transaction: Transaction<Database>, key: RequestKey): Promise<RequestRow | undefined> =>
  find(transaction, key).forUpdate().executeTakeFirst()

/** The request that was made under an Idempotency-Key. */
export const madeUnder = (db: Db, account: string, idempotencyKey: string): Promise<RequestRow | undefined> =>
  db
    .selectFrom('ethereum_requests')
    .selectAll()
    .where('account', '=', account)
    .where('idempotency_key', '=', idempotencyKey)
    .executeTakeFirst()

/** @throws ProblemError `reference-exists` */
export async function insertRequest(transaction: Transaction<Database>, request: NewRequest): Promise<RequestRow> {
  await takeReference(transaction, request)
  return transaction.insertInto('ethereum_requests').values(request).returningAll().executeTakeFirstOrThrow()
}

/** What an account has asked for of a validator, and no state of the beacon chain shows yet. */
export interface Promised {
  /** Of all withdrawals together. */
  readonly withdrawals: { readonly count: bigint; readonly gwei: bigint; readonly first: string | undefined }
  /** An exit whose transaction was reported. */
  readonly exitOnItsWay: string | undefined
}

/**
 * Blocks after which what is mined, and not judged, is no longer taken for what the beacon chain is about to show: after its own block, or, where it waits in the
 * contract's queue, after the one whose turn it is. By then the state that a new request is judged by shows it, also where nobody can tell any more which one it was.
 */
const shownWithin = 32n

/** A validator, for an account. */
interface ValidatorOf {
  readonly account: string
  readonly network: string
  readonly pubkey: Pubkey
}

/** What the state of the beacon chain that a new request is judged by shows of its validator. */
export interface ShownOfValidator {
  readonly epoch: number
  /** Its withdrawals that wait to be paid. */
  readonly pending: readonly { readonly amountGwei: Gwei; readonly withdrawableEpoch: number }[]
}

/**
 * What an account's requests of a validator ask for that the state of the beacon chain doesn't show: in no block, and made after `since`; or mined a moment ago; or
 * mined, and waiting in the contract's queue, which may be long; or accepted by a later state than the one that is judged by, which a node that is a little behind has
 * told, or which was read before another request came to its end. Until the transaction ends, nobody else makes one of them.
 *
 * A reported hash is not more of a promise than none: it may be mistyped, and can't be cancelled. What lands after `since` and is dropped costs its sender a fee; what
 * counted for ever would shut the validator.
 * @param head The latest block of the execution layer. Not the one that a request was looked at by: that is unknown while the beacon chain can't tell of it.
 */
export async function lockPromised(
  transaction: Transaction<Database>,
  { since, head, shown, ...validator }: ValidatorOf & { since: Date; head: bigint; shown: ShownOfValidator },
): Promise<Promised> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`withdrawals of ${validator.account} ${validator.pubkey}`}, 0))`.execute(
    transaction,
  )
  const all = await transaction
    .selectFrom('ethereum_requests')
    .select((select) => [
      'kind',
      sql<boolean>`status <> 'awaiting_submission'`.as('reported'),
      select.fn.countAll<bigint>().as('count'),
      sql<bigint>`coalesce(sum(amount_gwei), 0)::bigint`.as('gwei'),
      sql<string>`min(id)`.as('first'),
    ])
    .where('account', '=', validator.account)
    .where('network', '=', validator.network)
    .where('pubkey', '=', validator.pubkey)
    .where('settled', '=', false)
    .where('consensus_status', '=', 'pending')
    .where((where) =>
      where.or([
        where.and([
          where('block_number', 'is', null),
          where('status', 'in', ['awaiting_submission', 'submitted']),
          where('created_at', '>', since),
        ]),
        where('block_number', '>', head - shownWithin),
        where('queue_turn', '>', head - shownWithin),
      ]),
    )
    .groupBy(['kind', sql`2`])
    .execute()
  const decided = await acceptedOf(transaction, validator, shown.epoch)
  const withdrawals = [...all.filter(({ kind }) => kind === 'withdrawal'), ...unseenOf(decided, shown)]
  const sum = (values: readonly bigint[]) => values.reduce((one, other) => one + other, 0n)
  return {
    withdrawals: {
      count: sum(withdrawals.map(({ count }) => count)),
      gwei: sum(withdrawals.map(({ gwei }) => gwei)),
      first: withdrawals.map(({ first }) => first).sort()[0],
    },
    exitOnItsWay: (all.find(({ kind, reported }) => kind === 'exit' && reported) ?? decided.find(({ kind }) => kind === 'exit'))?.first,
  }
}

interface Accepted {
  readonly kind: RequestKind
  readonly first: string
  readonly gwei: bigint | null
  readonly epoch: bigint | null
}

/** Exits that were accepted, and withdrawals that can't have been paid by an epoch. */
const acceptedOf = (db: Db, { account, network, pubkey }: ValidatorOf, epoch: number): Promise<readonly Accepted[]> =>
  db
    .selectFrom('ethereum_requests')
    .select(['kind', 'id as first', 'payable_gwei as gwei', 'withdrawable_epoch as epoch'])
    .where('account', '=', account)
    .where('network', '=', network)
    .where('pubkey', '=', pubkey)
    .where('consensus_status', '=', 'accepted')
    .where((where) => where.or([where('kind', '=', 'exit'), where('withdrawable_epoch', '>', BigInt(epoch))]))
    .execute()

/** Accepted withdrawals that a state's queue doesn't have, which is older then: nothing leaves the queue before its epoch. */
function unseenOf(accepted: readonly Accepted[], { pending }: ShownOfValidator) {
  const left = pending.map(({ amountGwei, withdrawableEpoch }) => `${amountGwei} ${withdrawableEpoch}`)
  return accepted.flatMap(({ kind, first, gwei: amount, epoch }) => {
    if (kind === 'exit' || amount === null || epoch === null) return []
    const at = left.indexOf(`${amount} ${epoch}`)
    if (at !== -1) left.splice(at, 1)
    return at === -1 ? [{ count: 1n, gwei: amount, first }] : []
  })
}

/** A page of a validator's requests of one kind, the newest first, and one row more where there are more. */
export function listRequests(
  db: Db,
  given: Omit<RequestKey, 'id'> & { limit: number; before: string | undefined; externalReference: string | undefined },
): Promise<RequestRow[]> {
  let query = db
    .selectFrom('ethereum_requests')
    .selectAll()
    .where('account', '=', given.account)
    .where('pubkey', '=', given.pubkey)
    .where('kind', '=', given.kind)
  if (given.before !== undefined) query = query.where('id', '<', given.before)
  if (given.externalReference !== undefined) query = query.where('external_reference', '=', given.externalReference)
  return query
    .orderBy('id', 'desc')
    .limit(given.limit + 1)
    .execute()
}

/** Ends a request that nobody has submitted; it frees its reference. */
export async function cancelRequest(transaction: Transaction<Database>, id: string): Promise<RequestRow> {
  await releaseReference(transaction, id)
  return transaction
    .updateTable('ethereum_requests')
    .set({ status: 'cancelled', settled: true })
    .where('id', '=', id)
    .where('status', '=', 'awaiting_submission')
    .returningAll()
    .executeTakeFirstOrThrow()
}

export const requestHashes = (db: Db, ids: readonly string[]): Promise<RequestHashRow[]> =>
  ids.length === 0
    ? Promise.resolve([])
    : db.selectFrom('ethereum_request_hashes').selectAll().where('request_id', 'in', ids).orderBy('submitted_at').orderBy('hash').execute()

/**
 * Records a reported hash; the tracker looks at once. What was concluded without it no longer holds, and a request that had failed is in flight again.
 * @throws ProblemError `reference-exists` when another resource has taken its reference meanwhile
 */
export async function addRequestHash(
  transaction: Transaction<Database>,
  request: RequestRow,
  { hash, sentBy, now }: ReportedHash,
): Promise<RequestRow> {
  if (request.status === 'failed') await takeReference(transaction, request)
  return sendAgain(transaction, request.id, { hash, sentBy, now })
}

/** Adds a hash to a request, which is in flight by it from now on. */
export async function sendAgain(transaction: Transaction<Database>, id: string, { hash, sentBy, now }: ReportedHash): Promise<RequestRow> {
  await transaction
    .insertInto('ethereum_request_hashes')
    .values({ request_id: id, hash, submitted_at: now, ...sentByColumns(sentBy) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return transaction
    .updateTable('ethereum_requests')
    .set({ ...sentAgain, ...forgotten, hash, check_at: sql<Date>`now()` })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** The same for many, in as many statements as for one. */
export async function sendManyAgain(
  transaction: Transaction<Database>,
  all: readonly { readonly id: string; readonly hash: Hash }[],
  now: Date,
): Promise<void> {
  if (all.length === 0) return
  const sent = sql`jsonb_to_recordset(${JSON.stringify(all.map(({ id, hash }) => ({ id, hash })))}::jsonb) as sent (id text, hash text)`
  await sql`
    insert into ethereum_request_hashes (request_id, hash, submitted_at) select sent.id, sent.hash, ${now} from ${sent}
    on conflict do nothing`.execute(transaction)
  const columns = Object.entries({ ...sentAgain, ...forgotten }).map(([column, value]) => sql`${sql.ref(column)} = ${sql.lit(value)}`)
  await sql`
    update ethereum_requests set ${sql.join(columns)}, hash = sent.hash, check_at = now()
    from ${sent} where ethereum_requests.id = sent.id`.execute(transaction)
}

export const rememberRequestSender = (db: Db, id: string, hash: Hash, sentBy: SentBy) =>
  db.updateTable('ethereum_request_hashes').set(sentByColumns(sentBy)).where('request_id', '=', id).where('hash', '=', hash).execute()

const sentAgain = { status: 'submitted', consensus_status: 'pending', settled: false } as const
/** What was concluded of earlier transactions. */
const forgotten = {
  block_number: null,
  block_hash: null,
  failure_reason: null,
  consensus_reason: null,
  checked_head: null,
  consensus_block: null,
  consensus_block_hash: null,
  consensus_slot: null,
  consensus_root: null,
  queue_position: null,
  queue_turn: null,
  payment_status: null,
  payable_gwei: null,
  withdrawable_epoch: null,
  paid_block: null,
  payment_reason: null,
  payment_seen_slot: null,
} as const

/** So many hashes of a cancelled request are followed. */
const maxLateHashes = 16

/** Remembers a hash that is reported for a cancelled request, so that the tracker sees it should it land. It stays cancelled until then. */
export async function addLateHash(
  transaction: Transaction<Database>,
  request: RequestRow,
  { hash, sentBy, now }: ReportedHash,
): Promise<void> {
  const hashes = await requestHashes(transaction, [request.id])
  if (hashes.length >= maxLateHashes || hashes.some((one) => one.hash === hash)) return
  await transaction
    .insertInto('ethereum_request_hashes')
    .values({ request_id: request.id, hash, submitted_at: now, ...sentByColumns(sentBy) })
    .execute()
  await transaction
    .updateTable('ethereum_requests')
    .set({ settled: false, check_at: sql<Date>`now()`, checked_head: null })
    .where('id', '=', request.id)
    .execute()
}

/**
 * A cancelled request is in flight again, by a transaction that the chain shows to make it. It holds its reference again unless another has taken it.
 * @returns undefined when it is not cancelled any more
 */
export async function reviveRequest(
  transaction: Transaction<Database>,
  id: string,
  hash: Hash,
): Promise<{ readonly referenceHeldBy?: string } | undefined> {
  const request = await transaction.selectFrom('ethereum_requests').selectAll().where('id', '=', id).forUpdate().executeTakeFirstOrThrow()
  if (request.status !== 'cancelled') return undefined
  await transaction
    .updateTable('ethereum_requests')
    .set({ status: 'submitted', hash, settled: false, check_at: sql<Date>`now()`, checked_head: null })
    .where('id', '=', id)
    .execute()
  return retakeReference(transaction, request)
}

/** A cancelled request that has hashes, none of which makes it: there is nothing to follow any more, unless another was reported meanwhile. */
export const settleCancelled = (db: Kysely<Database>, id: string, hashCount: number) =>
  db
    .updateTable('ethereum_requests')
    .set({ settled: true })
    .where('id', '=', id)
    .where('status', '=', 'cancelled')
    .where((where) =>
      where(
        where
          .selectFrom('ethereum_request_hashes')
          .select((count) => count.fn.countAll<bigint>().as('count'))
          .where('request_id', '=', id),
        '=',
        BigInt(hashCount),
      ),
    )
    .execute()

/** Takes up to `limit` requests that are due, as `takeDue` takes stakes; one that is confirmed goes on until its judgement is final. */
export const takeDueRequests = (
  db: Kysely<Database>,
  given: { network: string; head: bigint; limit: number; intervalMs: number },
): Promise<RequestRow[]> =>
  db
    .updateTable('ethereum_requests')
    .set({ check_at: sql<Date>`now() + make_interval(secs => ${given.intervalMs / 1000}::double precision)` })
    .where('id', 'in', (query) =>
      query
        .selectFrom('ethereum_requests')
        .select('id')
        .where('network', '=', given.network)
        .where('settled', '=', false)
        .where('status', 'in', ['submitted', 'confirmed', 'cancelled'])
        .where('check_at', '<=', sql<Date>`now()`)
        .where((where) => where.or([where('checked_head', 'is', null), where('checked_head', '<>', given.head)]))
        .orderBy('check_at')
        .limit(given.limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()

export type SeenOfRequest = Pick<
  RequestRow,
  | 'status'
  | 'hash'
  | 'block_number'
  | 'block_hash'
  | 'failure_reason'
  | 'consensus_status'
  | 'consensus_reason'
  | 'consensus_block'
  | 'consensus_block_hash'
  | 'consensus_slot'
  | 'consensus_root'
  | 'queue_position'
  | 'queue_turn'
  | 'queued_deposits_gwei'
  | 'queued_deposits_epoch'
  | 'payment_status'
  | 'payable_gwei'
  | 'withdrawable_epoch'
  | 'settled'
  | 'checked_head'
>

/** A request of which nothing new was seen. */
export interface UnchangedRequest {
  readonly request: Pick<RequestRow, 'id' | 'hash'>
  readonly hashCount: number
}

/** Notes of many of which nothing new was seen that they were looked at, in one statement, under the same conditions. */
export async function recordUnchanged(db: Kysely<Database>, head: bigint, all: readonly UnchangedRequest[]): Promise<void> {
  if (all.length === 0) return
  const values = sql.join(all.map(({ request, hashCount }) => sql`(${request.id}::text, ${request.hash}::text, ${hashCount}::bigint)`))
  await sql`
    update ethereum_requests set checked_head = ${head}
    from (values ${values}) as seen (id, hash, hash_count)
    where ethereum_requests.id = seen.id and not settled and ethereum_requests.hash = seen.hash
      and (select count(*) from ethereum_request_hashes where request_id = seen.id) = seen.hash_count`.execute(db)
}

/** What was seen of a request, as it was read. */
export interface SeenRequests extends UnchangedRequest {
  readonly seen: SeenOfRequest
}

const seenColumns = {
  ...{ status: 'text', hash: 'text', block_number: 'bigint', block_hash: 'text', failure_reason: 'text' },
  ...{ consensus_status: 'text', consensus_reason: 'text', consensus_block: 'bigint', consensus_block_hash: 'text' },
  ...{ consensus_slot: 'bigint', consensus_root: 'text', queue_position: 'bigint', queue_turn: 'bigint' },
  ...{ queued_deposits_gwei: 'bigint', queued_deposits_epoch: 'bigint', payment_status: 'text', payable_gwei: 'bigint' },
  ...{ withdrawable_epoch: 'bigint', settled: 'boolean', checked_head: 'bigint' },
} as const satisfies Record<keyof SeenOfRequest, string>

/**
 * Writes what was seen of many, in one statement, under the same conditions as of one: a transaction for each of thousands would take longer than the blocks.
 * None of them has failed: that frees a reference. @returns the ids of those that were written
 */
export async function recordRequests(db: Kysely<Database>, all: readonly SeenRequests[]): Promise<ReadonlySet<string>> {
  if (all.length === 0) return new Set()
  const columns = Object.entries(seenColumns)
  const json = JSON.stringify(
    all.map(({ request, hashCount, seen }) => ({ ...seen, id: request.id, was: request.hash, hash_count: hashCount })),
    (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value),
  )
  const { rows } = await sql<{ id: string }>`
    update ethereum_requests
    set ${sql.join(columns.map(([column]) => sql`${sql.ref(column)} = ${sql.ref(`seen.${column}`)}`))}
    from jsonb_to_recordset(${json}::jsonb) as seen (
      id text, was text, hash_count bigint, ${sql.join(columns.map(([column, type]) => sql`${sql.ref(column)} ${sql.raw(type)}`))}
    )
    where ethereum_requests.id = seen.id and not ethereum_requests.settled
      and ethereum_requests.status in ('submitted', 'confirmed') and ethereum_requests.hash = seen.was
      and (select count(*) from ethereum_request_hashes where request_id = seen.id) = seen.hash_count
    returning ethereum_requests.id`.execute(db)
  return new Set(rows.map(({ id }) => id))
}

/** Writes what was seen of a request, if it is still in flight and no further hash was reported meanwhile (see `recordOutcome`). */
export const recordRequest = (
  db: Kysely<Database>,
  request: Pick<RequestRow, 'id' | 'hash'>,
  hashCount: number,
  seen: SeenOfRequest,
): Promise<boolean> => {
  const write = async (within: Db): Promise<boolean> => {
    const result = await within
      .updateTable('ethereum_requests')
      .set(seen)
      .where('id', '=', request.id)
      .where('settled', '=', false)
      .where('status', 'in', ['submitted', 'confirmed'])
      .where('hash', '=', request.hash)
      .where((where) =>
        where(
          where
            .selectFrom('ethereum_request_hashes')
            .select((count) => count.fn.countAll<bigint>().as('count'))
            .where('request_id', '=', request.id),
          '=',
          BigInt(hashCount),
        ),
      )
      .executeTakeFirst()
    return result.numUpdatedRows === 1n
  }
  if (seen.status !== 'failed') return write(db)
  return db.transaction().execute(async (transaction) => {
    if (!(await write(transaction))) return false
    await releaseReference(transaction, request.id)
    return true
  })
}

/** Takes up to `limit` accepted withdrawals that wait to be paid and are due, as `takeDueRequests` takes requests; due again after `intervalMs`. */
export const takeDuePayments = (
  db: Kysely<Database>,
  given: { network: string; limit: number; intervalMs: number },
): Promise<RequestRow[]> =>
  db
    .updateTable('ethereum_requests')
    .set({ check_at: sql<Date>`now() + make_interval(secs => ${given.intervalMs / 1000}::double precision)` })
    .where('id', 'in', (query) =>
      query
        .selectFrom('ethereum_requests')
        .select('id')
        .where('network', '=', given.network)
        .where('settled', '=', true)
        .where('payment_status', '=', 'waiting')
        .where('check_at', '<=', sql<Date>`now()`)
        .orderBy('check_at')
        .limit(given.limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()

export type SeenPayment = Partial<
  Pick<RequestRow, 'payment_status' | 'payable_gwei' | 'paid_block' | 'payment_reason' | 'payment_seen_slot'>
>

type Paid = Pick<RequestRow, 'hash' | 'network' | 'pubkey'>

/**
 * Blocks and amounts that other withdrawals of the same validator are known to be paid by, whoever asked for them. Rows of one transaction are one withdrawal:
 * another account may follow it too, and must not take its payment away.
 */
export async function claimedPayments(
  db: Db,
  { hash, network, pubkey }: Paid,
): Promise<readonly { readonly blockNumber: bigint; readonly amountGwei: Gwei }[]> {
  const rows = await db
    .selectFrom('ethereum_requests')
    .select(['hash', 'paid_block', 'payable_gwei'])
    .distinct()
    .where('network', '=', network)
    .where('pubkey', '=', pubkey)
    .where('hash', '<>', hash)
    .where('payment_status', '=', 'paid')
    .execute()
  return rows.flatMap(({ paid_block: blockNumber, payable_gwei: amount }) =>
    blockNumber === null || amount === null ? [] : [{ blockNumber, amountGwei: gwei(amount) }],
  )
}

/**
 * Writes what was seen of a payment that still waits.
 * @param claims How many payments other withdrawals of the validator had when this one's was looked for: one that has come meanwhile may be the same.
 * @returns false where nothing was written: it is looked for again
 */
export const recordPayment = (
  db: Kysely<Database>,
  request: Paid & Pick<RequestRow, 'id'>,
  seen: SeenPayment,
  claims?: number,
): Promise<boolean> =>
  db.transaction().execute(async (transaction) => {
    if (claims !== undefined) {
      const what = `payments of ${request.network} ${request.pubkey}`
      await sql`select pg_advisory_xact_lock(hashtextextended(${what}, 0))`.execute(transaction)
      if ((await claimedPayments(transaction, request)).length !== claims) return false
    }
    const result = await transaction
      .updateTable('ethereum_requests')
      .set(seen)
      .where('id', '=', request.id)
      .where('settled', '=', true)
      .where('payment_status', '=', 'waiting')
      .executeTakeFirst()
    return result.numUpdatedRows === 1n
  })
