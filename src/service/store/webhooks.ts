import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { Database } from './schema.ts'
import type { WebhookDeliveriesTable, WebhookEndpointsTable, WebhookSecretsTable } from './webhooks-schema.ts'

export type EndpointRow = Selectable<WebhookEndpointsTable>
export type DeliveryRow = Selectable<WebhookDeliveriesTable>
export type SecretRow = Selectable<WebhookSecretsTable>
type Db = Kysely<Database> | Transaction<Database>

export interface EndpointState extends EndpointRow {
  readonly pending: bigint
  /** When the last of the former secrets ends. */
  readonly former_until: Date | null
}

const states = (db: Db) =>
  db
    .selectFrom('webhook_endpoints')
    .selectAll()
    .select([
      sql<bigint>`(select count(*) from webhook_deliveries where endpoint_id = webhook_endpoints.id)`.as('pending'),
      sql<Date | null>`(select max(expires_at) from webhook_secrets where endpoint_id = webhook_endpoints.id and expires_at > now())`.as(
        'former_until',
      ),
    ])

export const endpointsOf = (db: Db, account: string): Promise<EndpointState[]> =>
  states(db).where('account', '=', account).orderBy('id').execute()

export const findEndpoint = (db: Db, account: string, id: string): Promise<EndpointState | undefined> =>
  states(db).where('account', '=', account).where('id', '=', id).executeTakeFirst()

/** Of one account nobody else makes or changes endpoints until the transaction ends. */
export const lockEndpoints = (transaction: Transaction<Database>, account: string) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`webhook endpoints of ${account}`}, 0))`.execute(transaction)

export async function insertEndpoint(
  transaction: Transaction<Database>,
  endpoint: Pick<EndpointRow, 'id' | 'account' | 'url' | 'description' | 'created_at'>,
  salt: string,
): Promise<void> {
  const none = { disabled_at: null, disabled_reason: null, failing_since: null, last_error: null, last_delivered_at: null, owner: null }
  await transaction
    .insertInto('webhook_endpoints')
    .values({ ...endpoint, ...none })
    .execute()
  await insertSecret(transaction, endpoint.id, salt, endpoint.created_at)
}

const insertSecret = (db: Db, endpoint_id: string, salt: string, created_at: Date) =>
  db.insertInto('webhook_secrets').values({ endpoint_id, salt, created_at, expires_at: null }).execute()

export const deleteEndpoint = async (db: Db, account: string, id: string): Promise<boolean> =>
  (await db.deleteFrom('webhook_endpoints').where('account', '=', account).where('id', '=', id).executeTakeFirst()).numDeletedRows === 1n

/** Those that sign now, the newest first. */
export const secretsOf = (db: Db, endpointId: string, now: Date): Promise<SecretRow[]> =>
  db
    .selectFrom('webhook_secrets')
    .selectAll()
    .where('endpoint_id', '=', endpointId)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .orderBy('created_at', 'desc')
    .execute()

/** A new secret beside the former ones, which end at `until` at the latest. */
export async function replaceSecret(
  transaction: Transaction<Database>,
  endpointId: string,
  { salt, now, until }: { readonly salt: string; readonly now: Date; readonly until: Date },
): Promise<void> {
  const former = () => transaction.updateTable('webhook_secrets').where('endpoint_id', '=', endpointId)
  await former()
    .set({ expires_at: until })
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', until)]))
    .execute()
  await transaction.deleteFrom('webhook_secrets').where('endpoint_id', '=', endpointId).where('expires_at', '<=', now).execute()
  await insertSecret(transaction, endpointId, salt, now)
}

export const enableEndpoint = (db: Db, account: string, id: string) =>
  db
    .updateTable('webhook_endpoints')
    .set({ disabled_at: null, disabled_reason: null, failing_since: null, failures: 0, last_error: null, rest_until: sql<Date>`now()` })
    .where('account', '=', account)
    .where('id', '=', id)
    .where('disabled_at', 'is not', null)
    .execute()

/**
 * Takes up to `limit` endpoints that something is due for, those that have waited longest first, and at most `perAccount` of one account. They are the owner's until its
 * lease ends, or it gives them back: nobody else delivers to them meanwhile.
 */
export async function takeEndpoints(
  db: Kysely<Database>,
  { owner, limit, perAccount, leaseMs }: { owner: string; limit: number; perAccount: number; leaseMs: number },
): Promise<EndpointRow[]> {
  const { rows } = await sql<EndpointRow>`
    with due as (
      select id, row_number() over (partition by account order by served_at, id) as turn,
        (select count(*) from webhook_endpoints busy where busy.account = webhook_endpoints.account and busy.busy_until > now()) as busy
      from webhook_endpoints
      where disabled_at is null and busy_until <= now() and rest_until <= now()
        and exists (select 1 from webhook_deliveries where endpoint_id = webhook_endpoints.id and next_at <= now())
    ), taken as (
      select id from webhook_endpoints
      where id in (select id from due where turn + busy <= ${perAccount}) and busy_until <= now()
      order by served_at limit ${limit} for update skip locked
    )
    update webhook_endpoints
      set owner = ${owner}, served_at = now(), busy_until = now() + make_interval(secs => ${leaseMs / 1000}::double precision)
      where id in (select id from taken) returning *`.execute(db)
  return rows
}

export const giveBack = (db: Kysely<Database>, id: string, owner: string) =>
  db
    .updateTable('webhook_endpoints')
    .set({ busy_until: sql<Date>`now()`, owner: null })
    .where('id', '=', id)
    .where('owner', '=', owner)
    .execute()

/** Gives back what a crash left taken. Only for a database that no other process uses: there, whoever had an endpoint is gone. */
export const giveBackAll = (db: Kysely<Database>) =>
  db.updateTable('webhook_endpoints').set({ busy_until: sql<Date>`now()`, owner: null }).where('owner', 'is not', null).execute()

/** The delivery whose turn it is. */
export const nextDelivery = (db: Kysely<Database>, endpointId: string): Promise<DeliveryRow | undefined> =>
  db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('endpoint_id', '=', endpointId)
    .where('next_at', '<=', sql<Date>`now()`)
    .orderBy('next_at')
    .orderBy('place')
    .limit(1)
    .executeTakeFirst()

export const recordDelivered = (db: Kysely<Database>, delivery: Pick<DeliveryRow, 'id' | 'endpoint_id'>, now: Date) =>
  db.transaction().execute(async (transaction) => {
    // The endpoint first, as whoever deletes it does: two that wait for one another would both fail.
    await transaction
      .updateTable('webhook_endpoints')
      .set({ failing_since: null, failures: 0, last_error: null, last_delivered_at: now })
      .where('id', '=', delivery.endpoint_id)
      .execute()
    await transaction.deleteFrom('webhook_deliveries').where('id', '=', delivery.id).execute()
  })

export interface FailedAttempt {
  readonly error: string
  readonly now: Date
  /** When this delivery is tried again; undefined: never. */
  readonly againInMs: number | undefined
  /** When anything is tried there again. */
  readonly restMs: number
  readonly disableBecause: string | undefined
}

/**
 * What failed is tried again later, or given up; with `disableBecause` the endpoint gets nothing any more, and what waits for it is dropped.
 * @returns how many deliveries are never made
 */
export const recordFailed = (
  db: Kysely<Database>,
  delivery: Pick<DeliveryRow, 'id' | 'endpoint_id'>,
  failed: FailedAttempt,
): Promise<bigint> =>
  db.transaction().execute(async (transaction) => {
    const later = (ms: number) => sql<Date>`now() + make_interval(secs => ${ms / 1000}::double precision)`
    const { error, now, againInMs, restMs, disableBecause } = failed
    await transaction
      .updateTable('webhook_endpoints')
      .set((set) => ({
        failing_since: set.fn.coalesce('failing_since', set.val(now)),
        failures: set('failures', '+', 1),
        last_error: error,
        rest_until: later(restMs),
        ...(disableBecause === undefined ? {} : { disabled_at: now, disabled_reason: disableBecause }),
      }))
      .where('id', '=', delivery.endpoint_id)
      .execute()
    if (disableBecause === undefined && againInMs !== undefined) {
      await transaction
        .updateTable('webhook_deliveries')
        .set((set) => ({ attempts: set('attempts', '+', 1), next_at: later(againInMs) }))
        .where('id', '=', delivery.id)
        .execute()
      return 0n
    }
    const lost = transaction.deleteFrom('webhook_deliveries').where('endpoint_id', '=', delivery.endpoint_id).returning('type')
    const all = await (disableBecause === undefined ? lost.where('id', '=', delivery.id) : lost).execute()
    const count = BigInt(all.filter(({ type }) => type !== ofDropped).length)
    await transaction
      .updateTable('webhook_endpoints')
      .set((set) => ({ dropped: set('dropped', '+', count), dropped_at: sql<Date>`now()` }))
      .where('id', '=', delivery.endpoint_id)
      .execute()
    if (disableBecause === undefined) await tellOfDropped(transaction, delivery.endpoint_id)
    return count
  })

/** What tells a receiver that it has missed something. It is of all networks, and none of what is counted. */
const ofDropped = 'webhook-endpoint.dropped'

/** Has an endpoint told that it has missed something, unless that is waiting to be told already. */
const tellOfDropped = (transaction: Transaction<Database>, endpointId: string) =>
  sql`
    insert into webhook_deliveries (endpoint_id, type, resource_id, network, status)
      select ${endpointId}, ${ofDropped}, ${endpointId}, '', 'dropped'
      where not exists (select from webhook_deliveries where endpoint_id = ${endpointId} and type = ${ofDropped})`.execute(transaction)

/** How many of an endpoint's deliveries were dropped. */
export interface Dropped {
  readonly endpointId: string
  readonly account: string
  readonly count: bigint
}

/**
 * Drops what waits beyond the newest `most` of an endpoint, and what is older than `before`: up to `limit` of it. The endpoint counts it, and its receiver is told with
 * the next delivery that it has missed something. @returns what was dropped; nothing when there is no more
 */
export async function dropBeyond(
  db: Kysely<Database>,
  { most, before, limit }: { readonly most: number; readonly before: Date; readonly limit: number },
): Promise<readonly Dropped[]> {
  const { rows } = await sql<{ id: string; account: string; count: bigint }>`
    with over as materialized (
      select id, account,
        (select place from webhook_deliveries where endpoint_id = endpoint.id order by place desc offset ${most} limit 1) as place
      from webhook_endpoints endpoint
      where exists (select from webhook_deliveries where endpoint_id = endpoint.id order by place desc offset ${most} limit 1)
        or exists (select from webhook_deliveries where endpoint_id = endpoint.id and at < ${before})
      -- The endpoint first, as whoever records an attempt does; one of which an attempt is recorded now has its turn next time.
      for update skip locked
    ), gone as (
      delete from webhook_deliveries where id in (
        select old.id from over, lateral (
          select id from webhook_deliveries where endpoint_id = over.id and (place <= over.place or at < ${before}) order by place limit ${limit}
        ) old limit ${limit}
      ) returning id, endpoint_id, type
    ), counted as (
      select endpoint_id, count(*) filter (where type <> ${ofDropped}) as count from gone group by endpoint_id
    ), noted as (
      update webhook_endpoints set dropped = dropped + counted.count, dropped_at = now()
        from counted where webhook_endpoints.id = counted.endpoint_id returning webhook_endpoints.id, account, counted.count
    ), told as (
      insert into webhook_deliveries (endpoint_id, type, resource_id, network, status)
        select id, ${ofDropped}, id, '', 'dropped' from noted where not exists (
          select from webhook_deliveries
            where endpoint_id = noted.id and type = ${ofDropped} and id not in (select id from gone)
        )
    )
    select id, account, count from noted`.execute(db)
  return rows.map(({ id, ...row }) => ({ endpointId: id, ...row }))
}

export const pendingDeliveries = (db: Kysely<Database>): Promise<bigint> =>
  db
    .selectFrom('webhook_deliveries')
    .select((count) => count.fn.countAll<bigint>().as('count'))
    .executeTakeFirstOrThrow()
    .then(({ count }) => count)
