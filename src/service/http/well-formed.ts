import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { JsonError, parseJson } from '../../contract/json.ts'
import { ProblemError } from '../errors.ts'

/**
 * JSON is UTF-8 (RFC 8259, 8.1): read as something else, it would say something else. Halves of surrogate pairs can't be written in it.
 * @returns undefined for no body. @throws ProblemError `unsupported-media-type`, JsonError
 */
export function jsonOf(headers: IncomingHttpHeaders, body: Buffer): unknown {
  if (!saysUtf8(headers['content-type'])) throw new ProblemError('unsupported-media-type', 'send the body as UTF-8')
  if (!/^(identity)?$/i.test(headers['content-encoding'] ?? ''))
    throw new ProblemError('unsupported-media-type', 'send the body as it is, without Content-Encoding')
  if (!isUtf8(body)) throw new JsonError()
  return body.length === 0 ? undefined : parseJson(body.toString('utf8'))
}

/** Whoever else reads it may take the last charset of several for the one that counts. */
const saysUtf8 = (contentType = ''): boolean =>
  [...contentType.matchAll(/;\s*charset\*?\s*=\s*"?([^";\s]*)"?/gi)].every(([, charset = '']) => /^utf-?8$/i.test(charset))

/** Of these a request has one: Node takes the first of several, and whatever stands before the service may take another. */
const single: ReadonlySet<string> = new Set(['authorization', 'content-type', 'host'])

/** @param rawHeaders Names and values in turn, as they came. @returns the name of one that must not be there twice, and is */
export function givenTwice(rawHeaders: readonly string[]): string | undefined {
  let seen = ''
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    // By their lengths, most are others.
    if (name.length !== 4 && name.length !== 12 && name.length !== 13) continue
    const known = name.toLowerCase()
    if (!single.has(known)) continue
    if (seen.includes(known)) return known
    seen += `${known} `
  }
  return undefined
}

/**
 * What is wrong with how a request comes; undefined when nothing is. Of a body under a transfer coding that isn't undone here, whoever else reads it would make another
 * one; and every answer has its form, also that to a request which names no host.
 */
export function framingFault({ headers, httpVersion }: Pick<IncomingMessage, 'headers' | 'httpVersion'>): string | undefined {
  if (headers.host === undefined && httpVersion === '1.1') return 'a request of HTTP/1.1 has the header Host'
  const coding = headers['transfer-encoding']
  return coding === undefined || /^chunked$/i.test(coding) ? undefined : 'of transfer codings, chunked alone is taken'
}

/** Whether the query is text: `%ff` and halves of surrogate pairs are none. */
export function isDecodable(url: string): boolean {
  const at = url.indexOf('?')
  if (at === -1 || !url.includes('%', at)) return true
  try {
    decodeURIComponent(url.slice(at))
    return true
  } catch {
    return false
  }
}
