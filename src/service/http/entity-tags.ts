import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'

/** Names a body (RFC 9110, 8.8.3): the same bytes have the same tag on every instance. */
export const entityTag = (payload: string): string => `"${createHash('sha256').update(payload).digest('base64url').slice(0, 27)}"`

/** What the client says it has, or `*`; weak tags count as strong ones (RFC 9110, 13.1.2). */
export const knownTags = ({ headers }: Pick<FastifyRequest, 'headers'>): readonly string[] => tagsIn(headers['if-none-match'])

/** Whether who asks has what a tag names, or would be content with anything. */
export const namesTag = (ifNoneMatch: string | undefined, tag: string): boolean => {
  if (ifNoneMatch === undefined) return false
  const known = tagsIn(ifNoneMatch)
  return known.includes(tag) || known.includes('*')
}

const tagsIn = (text: string | undefined): readonly string[] => text?.split(',').map((one) => one.trim().replace(/^W\//, '')) ?? []
