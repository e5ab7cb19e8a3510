import { z } from 'zod'
import { id, page, pageQuery, text, time } from './common.ts'

/** Who asked what, and when. */
export const auditEntry = z
  .object({
    entryId: id,
    at: time,
    /** The API key; left out: an administrator, by the command line. */
    keyId: z.string().max(64).optional(),
    /** An operation of this document, or a command such as `api-keys revoke`. */
    operation: z.string().max(64),
    method: z.string().max(16).optional(),
    path: z.string().max(2048).optional(),
    idempotencyKey: z.string().max(255).optional(),
    requestId: z.string().max(128).optional(),
    /** Where the request came from. */
    address: z.string().max(64).optional(),
    /** Of the answer; left out: none was sent, or which is not known. */
    status: z.int().min(100).max(599).optional(),
    /** What was created or answered about. */
    resourceId: z.string().max(64).optional(),
  })
  .meta({ id: 'AuditEntry' })
export type AuditEntryBody = z.output<typeof auditEntry>

export const auditPage = page(auditEntry).meta({ id: 'AuditPage' })

export const auditQuery = pageQuery.extend({
  keyId: text(64).optional(),
  since: time.meta({ description: 'From this moment on.' }).optional(),
  until: time.meta({ description: 'Before this moment.' }).optional(),
})
