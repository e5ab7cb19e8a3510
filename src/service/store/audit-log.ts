import { CompiledQuery, type Kysely, type Selectable, sql } from 'kysely'
import { prepared } from './prepared.ts'
import type { AuditLogTable, Database } from './schema.ts'

export type AuditRow = Selectable<AuditLogTable>

export interface AuditFilter {
  readonly account?: string | undefined
  readonly keyId?: string | undefined
  /** From this moment on. */
  readonly since?: Date | undefined
  /** Before this moment. */
  readonly until?: Date | undefined
}

/** What became of a request. */
export interface AuditOutcome {
  readonly id: string
  readonly status: number
  readonly resource_id: string | null
}

export const insertAudit = (db: Kysely<Database>, rows: readonly AuditRow[]) =>
  rows.length === 0 ? undefined : db.insertInto('audit_log').values(rows).execute()

/**
 * Writes down what keys ask, of those that are good at this moment: not of one that was revoked or has expired. One statement, so that nothing comes between.
 * @returns The ids of what was written.
 */
export async function insertAuditOfKeys(
  db: Kysely<Database>,
  rows: readonly (AuditRow & { readonly key_id: string })[],
): Promise<ReadonlySet<string>> {
  const { rows: written } = await db.executeQuery<{ id: string }>(CompiledQuery.raw(insertOfKeys, [JSON.stringify(rows)]))
  return new Set(written.map(({ id }) => id))
}
const columns =
  'id text, at timestamptz, account text, key_id text, operation text, method text, path text, idempotency_key text, request_id text, address text, status integer, resource_id text'
const names = columns.replaceAll(/ (text|timestamptz|integer)/g, '')
const insertOfKeys = prepared(
  'insert_audit_of_keys',
  `insert into audit_log (${names})
    select asked.* from jsonb_to_recordset($1::jsonb) as asked (${columns})
      join api_keys on api_keys.id = asked.key_id
      where api_keys.revoked_at is null and (api_keys.expires_at is null or api_keys.expires_at > asked.at)
    returning id`,
)

export const noteOutcomes = (db: Kysely<Database>, outcomes: readonly AuditOutcome[]) =>
  outcomes.length === 0
    ? undefined
    : sql`
        update audit_log set status = seen.status, resource_id = seen.resource_id
        from jsonb_to_recordset(${JSON.stringify(outcomes)}::jsonb) as seen(id text, status integer, resource_id text)
        where audit_log.id = seen.id`.execute(db)

/** A page and one row more where there are more; the newest first, or after an id the oldest first. */
export function listAudit(
  db: Kysely<Database>,
  filter: AuditFilter & { readonly limit: number; readonly before?: string | undefined; readonly after?: string | undefined },
): Promise<AuditRow[]> {
  let query = db.selectFrom('audit_log').selectAll()
  if (filter.account !== undefined) query = query.where('account', '=', filter.account)
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId)
  if (filter.since !== undefined) query = query.where('at', '>=', known(filter.since))
  if (filter.until !== undefined) query = query.where('at', '<', known(filter.until))
  if (filter.before !== undefined) query = query.where('id', '<', filter.before)
  if (filter.after !== undefined) query = query.where('id', '>', filter.after)
  return query
    .orderBy('id', filter.after === undefined ? 'desc' : 'asc')
    .limit(filter.limit + 1)
    .execute()
}

/** Nothing is older than Unix time; and the year 0, which RFC 3339 has, databases don't. */
const known = (time: Date): Date => new Date(Math.max(0, time.getTime()))

/** Forgets up to `limit` entries that are older than `before`, and says how many. */
export const pruneAudit = (db: Kysely<Database>, before: Date, limit: number) =>
  db
    .deleteFrom('audit_log')
    .where('id', 'in', (query) => query.selectFrom('audit_log').select('id').where('at', '<', before).orderBy('at').limit(limit))
    .executeTakeFirstOrThrow()

/** When keys were last used. */
export const noteUses = (db: Kysely<Database>, uses: ReadonlyMap<string, Date>) =>
  uses.size === 0
    ? undefined
    : sql`
        update api_keys set last_used_at = greatest(last_used_at, seen.at)
        from jsonb_to_recordset(${JSON.stringify([...uses].map(([id, at]) => ({ id, at })))}::jsonb) as seen(id text, at timestamptz)
        where api_keys.id = seen.id`.execute(db)
