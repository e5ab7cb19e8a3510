import { z } from 'zod'
import type { Clock } from './clock.ts'

/** The `error` of a JSON-RPC answer. `data` is the node's own: it may hold anything. */
export interface NodeError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/**
 * Why a call gave no result. `node`: the node answered with an error. `too-large`: more bytes than allowed. `timeout` and `no-answer` (reset,
 * 5xx, HTML, rate limit, another shape): nothing is known. The message holds neither the URL, which often is a credential, nor the answer.
 */
export type RpcFailureKind = 'node' | 'too-large' | 'timeout' | 'no-answer'
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
  readonly kind: RpcFailureKind
  readonly node: NodeError | undefined
  readonly retryAfterMs: number | undefined
  constructor(kind: RpcFailureKind, message: string, more: { node?: NodeError; retryAfterMs?: number | undefined } = {}) {
    super(message)
    this.kind = kind
    this.node = more.node
    this.retryAfterMs = more.retryAfterMs
  }
}

export type RpcCall = (method: string, params: readonly unknown[], signal: AbortSignal) => Promise<unknown>

/** Told of every call: `outcome` is `ok` or the kind of failure. */
export type OnRpcCall = (method: string, outcome: 'ok' | RpcFailureKind, ms: number) => void

const envelope = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.number().catch(-32000), message: z.string().catch(''), data: z.unknown().optional() }).optional(),
})

/**
 * JSON-RPC 2.0 over one http(s) URL, one call a request, no retries, no redirects. User name and password of the URL become Basic
 * authentication. Throws `RpcFailure`, or the signal's reason when that aborts.
 */
export function createRpcCall(options: {
  readonly url: string
  readonly clock: Clock
  /** From the first to the last byte. */
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly fetch?: typeof globalThis.fetch
  /** Reads the text of an answer. Default JSON.parse, which rounds numbers beyond 2^53. */
  readonly parse?: ((text: string) => unknown) | undefined
  readonly onCall?: OnRpcCall | undefined
}): RpcCall {
  const { clock, timeoutMs, maxBytes, onCall, parse = JSON.parse } = options
  const { url, authorization } = splitCredentials(options.url)
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    ...(authorization === undefined ? {} : { authorization }),
  }
  let id = 0

  const send = async (method: string, params: readonly unknown[], signal: AbortSignal): Promise<unknown> => {
    id += 1
    const request = {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
      redirect: 'error',
      signal,
    } as const
    const response = await (options.fetch ?? globalThis.fetch)(url, request)
    const text = await readText(response, maxBytes)
    const retryAfterMs = retryAfter(response.headers.get('retry-after'))
    let answer: z.output<typeof envelope>
    try {
      answer = envelope.parse(parse(text))
    } catch {
      throw new RpcFailure('no-answer', `the node answered ${method} with status ${response.status} and no JSON-RPC`, { retryAfterMs })
    }
    // Many nodes send their errors with 4xx or 5xx: the error itself says more.
    if (answer.error !== undefined) throw new RpcFailure('node', `the node refused ${method}`, { node: answer.error, retryAfterMs })
    if (!response.ok || answer.result === undefined) {
      throw new RpcFailure('no-answer', `the node answered ${method} with status ${response.status} and no result`, { retryAfterMs })
    }
    return answer.result
  }

  return async (method, params, signal) => {
    signal.throwIfAborted()
    const start = clock.monotonicMs()
    const done = new AbortController()
    const timeout = new AbortController()
    clock.sleep(timeoutMs, done.signal).then(
      () => timeout.abort(),
      () => {},
    )
    try {
      const result = await send(method, params, AbortSignal.any([signal, timeout.signal]))
      onCall?.(method, 'ok', clock.monotonicMs() - start)
      return result
    } catch (error) {
      signal.throwIfAborted()
      const failure = toFailure(error, timeout.signal.aborted, method, timeoutMs)
      onCall?.(method, failure.kind, clock.monotonicMs() - start)
      throw failure
    } finally {
      // With a reason of its own, or a DOMException is made, with its stack, for every call.
      done.abort('over')
    }
  }
}

function toFailure(error: unknown, timedOut: boolean, method: string, timeoutMs: number): RpcFailure {
  if (error instanceof RpcFailure) return error
  if (timedOut) return new RpcFailure('timeout', `the node did not answer ${method} within ${timeoutMs} ms`)
  // fetch's errors and their causes may hold the URL.
  return new RpcFailure('no-answer', `the node could not be reached for ${method}`)
}

/** The body as text, read only as far as it is allowed to go. Throws `too-large`. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    // Leaving the loop cancels the stream.
    if (size > maxBytes) throw new RpcFailure('too-large', `the node's answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** fetch refuses URLs with a user name or password. */
export function splitCredentials(text: string): { url: string; authorization: string | undefined } {
  const url = new URL(text)
  const { username, password } = url
  url.username = ''
  url.password = ''
  const none = username === '' && password === ''
  const basic = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
  return { url: url.href, authorization: none ? undefined : `Basic ${basic}` }
}

/** Seconds only, as RPC providers send it; at most a minute, since there may be other nodes. */
export const retryAfter = (header: string | null): number | undefined =>
  header !== null && /^\d{1,6}$/.test(header) ? Math.min(Number(header) * 1000, 60_000) : undefined
