import { z } from 'zod'
import type { Clock } from './clock.ts'
import { readText, retryAfter, splitCredentials } from './http-answer.ts'
import { type NodeError, RpcFailure, type RpcFailureKind } from './rpc-failure.ts'
import { inSpan } from './tracing.ts'

export { isLastingRefusal, type NodeError, RpcFailure, type RpcFailureKind } from './rpc-failure.ts'

export type RpcCall = (method: string, params: readonly unknown[], signal: AbortSignal) => Promise<unknown>

export interface RpcRequest {
  readonly method: string
  readonly params: readonly unknown[]
}
/** Each request's result or failure, in the order of the requests. Throws `RpcFailure` when there was no answer at all. */
export type RpcBatch = (requests: readonly RpcRequest[], signal: AbortSignal) => Promise<readonly RpcResult[]>
export type RpcResult = { readonly value: unknown } | { readonly failure: RpcFailure }

export interface RpcClient {
  readonly call: RpcCall
  /** Many calls in one request; one by one for a node that refuses batches. */
  readonly batch: RpcBatch
}

/** Told of every call: `outcome` is `ok` or the kind of failure. */
export type OnRpcCall = (method: string, outcome: 'ok' | RpcFailureKind, ms: number) => void

export interface RpcClientOptions {
  readonly url: string
  readonly clock: Clock
  /** From the first to the last byte. */
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly fetch?: typeof globalThis.fetch
  /** Reads the text of an answer. Default JSON.parse, which rounds numbers beyond 2^53. */
  readonly parse?: ((text: string) => unknown) | undefined
  readonly onCall?: OnRpcCall | undefined
  /** Which node it is, for traces: the network's name, and the node's number in its list, from 1. Its URL is told to nobody. */
  readonly node?: { readonly network: string; readonly number: number } | undefined
}

const nodeError = z.object({ code: z.number().catch(-32000), message: z.string().catch(''), data: z.unknown().optional() })
const envelope = z.object({ result: z.unknown().optional(), error: nodeError.optional() })
type Envelope = z.output<typeof envelope>
const batchEnvelope = z.array(envelope.extend({ id: z.unknown() }))

/** Nodes bound their batches, some at 20. */
const batchSize = 20
/** How long a node that refused a batch is asked one by one. */
const noBatchMs = 600_000

/**
 * JSON-RPC 2.0 over one http(s) URL, no retries, no redirects. User name and password of the URL become Basic authentication. Throws `RpcFailure`, or the
 * signal's reason when that aborts.
 */
export function createRpcClient(options: RpcClientOptions): RpcClient {
  const { clock, timeoutMs, maxBytes, onCall, parse = JSON.parse } = options
  const { url, authorization } = splitCredentials(options.url)
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    ...(authorization === undefined ? {} : { authorization }),
  }
  let id = 0
  let batchesFrom = 0

  const post = async (body: unknown, signal: AbortSignal) => {
    const request = { method: 'POST', headers, body: JSON.stringify(body), redirect: 'error', signal } as const
    const response = await (options.fetch ?? globalThis.fetch)(url, request)
    const text = await readText(response, maxBytes)
    return { text, status: response.status, ok: response.ok, retryAfterMs: retryAfter(response.headers.get('retry-after')) }
  }

  const send = async ({ method, params }: RpcRequest, signal: AbortSignal): Promise<unknown> => {
    id += 1
    const { text, ...http } = await post({ jsonrpc: '2.0', id, method, params }, signal)
    let answer: Envelope
    try {
      answer = envelope.parse(parse(text))
    } catch {
      throw noResult(method, http, 'no JSON-RPC')
    }
    return resultOf(method, answer, http)
  }

  /** Undefined: the node refuses batches. */
  const sendBatch = async (requests: readonly RpcRequest[], signal: AbortSignal): Promise<readonly RpcResult[] | undefined> => {
    const first = id + 1
    id += requests.length
    const body = requests.map(({ method, params }, index) => ({ jsonrpc: '2.0', id: first + index, method, params }))
    const { text, ...http } = await post(body, signal)
    let parsed: unknown
    try {
      parsed = parse(text)
    } catch {
      if (refusesBatch(http.status)) return undefined
      throw noResult('a batch', http, 'no JSON-RPC')
    }
    if (!Array.isArray(parsed)) {
      // Too many requests, or a failure of its own, is no refusal of batches.
      if (http.ok || refusesBatch(http.status)) return undefined
      throw noResult('a batch', http, 'one answer for all')
    }
    const answers = batchEnvelope.safeParse(parsed)
    if (!answers.success) throw noResult('a batch', http, 'another shape')
    const byId = new Map(answers.data.map((answer) => [Number(answer.id), answer]))
    return requests.map(({ method }, index): RpcResult => {
      try {
        const answer = byId.get(first + index)
        if (answer === undefined) throw noResult(method, http, 'no answer to this call of a batch')
        return { value: resultOf(method, answer, http) }
      } catch (error) {
        if (error instanceof RpcFailure) return { failure: error }
        throw error
      }
    })
  }

  const timed = async <T>(method: string, use: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> => {
    signal.throwIfAborted()
    const done = new AbortController()
    const timeout = new AbortController()
    clock.sleep(timeoutMs, done.signal).then(
      () => timeout.abort(),
      () => {},
    )
    try {
      return await use(AbortSignal.any([signal, timeout.signal]))
    } catch (error) {
      signal.throwIfAborted()
      throw toFailure(error, timeout.signal.aborted, method, timeoutMs)
    } finally {
      // With a reason of its own, or a DOMException is made, with its stack, for every call.
      done.abort('over')
    }
  }

  const call: RpcCall = async (method, params, signal) => {
    const start = clock.monotonicMs()
    try {
      const result = await inCallSpan(options.node, method, 1, () => timed(method, (bounded) => send({ method, params }, bounded), signal))
      onCall?.(method, 'ok', clock.monotonicMs() - start)
      return result
    } catch (error) {
      if (error instanceof RpcFailure) onCall?.(method, error.kind, clock.monotonicMs() - start)
      throw error
    }
  }

  /** In order. A node that gives no answer at all isn't asked for the rest. */
  const oneByOne = async (requests: readonly RpcRequest[], signal: AbortSignal): Promise<readonly RpcResult[]> => {
    const results: RpcResult[] = []
    for (const { method, params } of requests) {
      try {
        results.push({ value: await call(method, params, signal) })
      } catch (error) {
        if (!(error instanceof RpcFailure) || error.kind === 'timeout' || error.kind === 'no-answer') throw error
        results.push({ failure: error })
      }
    }
    return results
  }

  const oneBatch = async (requests: readonly RpcRequest[], signal: AbortSignal): Promise<readonly RpcResult[]> => {
    if (requests.length <= 1 || clock.monotonicMs() < batchesFrom) return oneByOne(requests, signal)
    const start = clock.monotonicMs()
    let results: readonly RpcResult[] | undefined
    try {
      const methods = [...new Set(requests.map(({ method }) => method))].join(' ')
      results = await inCallSpan(options.node, methods, requests.length, () =>
        timed('a batch', (bounded) => sendBatch(requests, bounded), signal),
      )
    } catch (error) {
      if (error instanceof RpcFailure) for (const { method } of requests) onCall?.(method, error.kind, clock.monotonicMs() - start)
      throw error
    }
    if (results === undefined) {
      batchesFrom = clock.monotonicMs() + noBatchMs
      return oneByOne(requests, signal)
    }
    for (const [index, result] of results.entries())
      onCall?.(requests[index]?.method ?? '', 'value' in result ? 'ok' : result.failure.kind, clock.monotonicMs() - start)
    return results
  }

  return {
    call,
    batch: async (requests, signal) => {
      const results: RpcResult[] = []
      for (let from = 0; from < requests.length; from += batchSize)
        results.push(...(await oneBatch(requests.slice(from, from + batchSize), signal)))
      return results
    },
  }
}

/** A span of a call, or of a batch of so many, where it is part of some work. */
const inCallSpan = <T>(node: RpcClientOptions['node'], method: string, calls: number, use: () => Promise<T>): Promise<T> =>
  inSpan(
    method,
    () => ({
      kind: 'client',
      isPart: true,
      attributes: {
        'rpc.system': 'jsonrpc',
        'rpc.method': method,
        'rpc.calls': calls,
        'staking.network': node?.network,
        'staking.node': node?.number,
      },
    }),
    use,
  )

interface Http {
  readonly status: number
  readonly ok: boolean
  readonly retryAfterMs: number | undefined
}

/** Statuses that say that this shape of request, or one of its calls, is not taken: asked one by one, it shows which. */
const refusesBatch = (status: number): boolean => [400, 401, 402, 403, 404, 405, 406, 413, 415, 422, 501].includes(status)
/** Unauthorized, payment required, forbidden: as a status, or as the code of an error. */
const isForbidden = (code: number): boolean => code === 401 || code === 402 || code === 403
/** JSON-RPC 2.0, section 5.1: the method does not exist. */
const methodNotFound = -32601

function resultOf(method: string, { error, result }: Envelope, http: Http): unknown {
  const { retryAfterMs } = http
  // Many nodes send their errors with 4xx or 5xx: the error itself says more.
  if (error !== undefined) {
    const denied = [http.status, error.code].find(isForbidden)
    if (error.code === methodNotFound || denied !== undefined)
      throw refusalOf(method, { node: error, retryAfterMs, denied, isNotFound: http.status === 404 })
    throw new RpcFailure('node', `the node refused ${method}`, { node: error, retryAfterMs, method })
  }
  if (!http.ok || result === undefined) throw noResult(method, http, 'no result')
  return result
}

const noResult = (method: string, { status, retryAfterMs }: Http, what: string): RpcFailure =>
  isForbidden(status)
    ? refusalOf(method, { retryAfterMs, denied: status })
    : new RpcFailure('no-answer', `the node answered ${method} with status ${status} and ${what}`, {
        retryAfterMs,
        isNotFound: status === 404,
      })

/** What is said of a method that a node does not serve. */
export const refusalOf = (
  method: string,
  more: { node?: NodeError; retryAfterMs?: number | undefined; denied?: number | undefined; isNotFound?: boolean } = {},
): RpcFailure =>
  new RpcFailure('refused', `the node does not serve ${method} (not found, not allowed, or not on its plan): configure a node that does`, {
    ...more,
    method,
  })

function toFailure(error: unknown, timedOut: boolean, method: string, timeoutMs: number): RpcFailure {
  if (error instanceof RpcFailure) return error
  if (timedOut) return new RpcFailure('timeout', `the node did not answer ${method} within ${timeoutMs} ms`)
  // fetch's errors and their causes may hold the URL.
  return new RpcFailure('no-answer', `the node could not be reached for ${method}`)
}
