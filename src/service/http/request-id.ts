import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const given = /^[A-Za-z0-9._:-]{1,128}$/

/** The one that the client gave, where it is a plain word; else a new one. */
export const requestIdOf = ({ headers }: Pick<IncomingMessage, 'headers'>): string => {
  const id = headers['x-request-id']
  return typeof id === 'string' && given.test(id) ? id : randomUUID()
}
