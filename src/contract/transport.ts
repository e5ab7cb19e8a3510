import type { Dispatcher } from 'undici'
import type { Clock } from '../lib/clock.ts'
import { abortable } from '../lib/shared-call.ts'
import { StakingApiError } from './client-error.ts'

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly origin: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string | undefined
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** Codes of failures before a connection stood: nothing was sent, so nothing was done. */
const neverSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

/**
 * One request and its whole answer, within `timeoutMs` from first to last byte and `maxBodyBytes`. Redirects are not followed.
 * @param what names the operation in messages.
 * @throws StakingApiError `timeout`, `network`, `invalid-response`; the signal's reason when the caller's signal aborts.
 */
export async function send(
  request: HttpRequest,
  given: { dispatcher: Dispatcher; clock: Clock; timeoutMs: number; maxBodyBytes: number; what: string },
  signal: AbortSignal,
): Promise<HttpAnswer> {
  signal.throwIfAborted()
  const { dispatcher, clock, timeoutMs, what } = given
  const done = new AbortController()
  const timeout = new AbortController()
  const changes = request.method !== 'GET'
  clock.sleep(timeoutMs, done.signal).then(
    () => timeout.abort(),
    () => {},
  )
  const either = AbortSignal.any([signal, timeout.signal])
  try {
    // A dispatcher that ignores its signal must not hold the caller.
    const response = await abortable(
      dispatcher.request({
        origin: request.origin,
        path: request.path,
        method: request.method,
        headers: request.headers,
        body: request.body ?? null,
        signal: either,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      }),
      either,
    )
    const text = await abortable(readBody(response.body, response.statusCode, given, changes), either)
    return { status: response.statusCode, headers: response.headers, text }
  } catch (error) {
    if (error instanceof StakingApiError) throw error
    signal.throwIfAborted()
    const code = codeOf(error)
    if (timeout.signal.aborted || code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') {
      throw new StakingApiError(`${what}: no whole answer within ${timeoutMs} ms`, { kind: 'timeout', outcomeUnknown: changes })
    }
    throw new StakingApiError(`${what}: the service could not be reached (${code})`, {
      kind: 'network',
      outcomeUnknown: changes && !neverSent.has(code),
    })
  } finally {
    // With a reason of its own, or a DOMException is made, with its stack, for every call.
    done.abort('over')
  }
}

async function readBody(
  body: Dispatcher.ResponseData['body'],
  status: number,
  { maxBodyBytes, what }: { maxBodyBytes: number; what: string },
  changes: boolean,
): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength
    if (size > maxBodyBytes) {
      body.destroy()
      throw new StakingApiError(`${what}: the answer (${status}) is larger than ${maxBodyBytes} bytes`, {
        kind: 'invalid-response',
        status,
        outcomeUnknown: changes && (status < 400 || status >= 500),
      })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The code of a Node or undici error: upper-case letters only, so that it can stand in a message. */
function codeOf(error: unknown): string {
  for (let current = error, depth = 0; current instanceof Error && depth < 4; current = current.cause, depth++) {
    const code = (current as { code?: unknown }).code
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return code
  }
  return 'unknown error'
}
