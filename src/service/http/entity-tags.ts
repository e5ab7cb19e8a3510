import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'

/** Names a body (RFC 9110, 8.8.3): the same bytes have the same tag on every instance. */
export const entityTag = (payload: string): string => `"${createHash('sha256').update(payload).digest('base64url').slice(0, 27)}"`

/** What the client says it has, or `*`; weak tags count as strong ones (RFC 9110, 13.1.2). */
export const knownTags = (request: FastifyRequest): readonly string[] =>
  request.headers['if-none-match']?.split(',').map((one) => one.trim().replace(/^W\//, '')) ?? []
