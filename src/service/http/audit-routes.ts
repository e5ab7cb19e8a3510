import type { FastifyInstance } from 'fastify'
import { routes } from '../../contract/routes.ts'
import type { AuditEntryBody } from '../../contract/schemas/audit-log.ts'
import { decodeCursor, defaultLimit, pageOf } from '../ethereum/cursor.ts'
import { type AuditRow, listAudit } from '../store/audit-log.ts'
import type { Store } from '../store/database.ts'
import { serve } from './contract-route.ts'

/** Who asked what of an account, for the account. */
export function auditRoutes(app: FastifyInstance, { db }: Store): void {
  serve(app, routes.listAuditLog, async ({ caller: { account }, query }) => {
    const limit = query.limit ?? defaultLimit
    const before = query.cursor === undefined ? undefined : decodeCursor(query.cursor)
    const [since, until] = [query.since, query.until].map((time) => (time === undefined ? undefined : new Date(time)))
    const rows = await listAudit(db, { account, keyId: query.keyId, since, until, before, limit })
    return { status: 200, body: pageOf(rows, limit, auditBody) }
  })
}

/** An entry as the contract has it: what isn't known is left out. */
export const auditBody = (row: AuditRow): AuditEntryBody => ({
  entryId: row.id,
  at: row.at.toISOString(),
  operation: row.operation,
  ...(row.key_id === null ? {} : { keyId: row.key_id }),
  ...(row.method === null ? {} : { method: row.method }),
  ...(row.path === null ? {} : { path: row.path }),
  ...(row.idempotency_key === null ? {} : { idempotencyKey: row.idempotency_key }),
  ...(row.request_id === null ? {} : { requestId: row.request_id }),
  ...(row.address === null ? {} : { address: row.address.slice(0, 64) }),
  ...(row.status === null ? {} : { status: row.status }),
  ...(row.resource_id === null ? {} : { resourceId: row.resource_id }),
})
