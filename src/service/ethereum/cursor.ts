import { ProblemError } from '../errors.ts'

/** Of a list that has none of its own. */
export const defaultLimit = 50

/** Opaque to clients, so that it may become something else. */
export const encodeCursor = (id: string): string => Buffer.from(`v1:${id}`).toString('base64url')

export function decodeCursor(cursor: string): string {
  const id = /^v1:([0-9a-f]{32})$/.exec(Buffer.from(cursor, 'base64url').toString())?.[1]
  if (id === undefined) {
    const detail = 'the cursor is not one of this service: take it from nextCursor of the page before'
    throw new ProblemError('invalid-request', detail, { errors: [{ pointer: '/query/cursor', code: 'invalid-cursor', detail }] })
  }
  return id
}

/** A page from its rows and the one more that tells that there are more. */
export function pageOf<R extends { readonly id: string }, T>(rows: readonly R[], limit: number, bodyOf: (row: R) => T) {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown.map(bodyOf), ...(rows.length > limit && last !== undefined ? { nextCursor: encodeCursor(last.id) } : {}) }
}
