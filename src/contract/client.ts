import type { Dispatcher } from 'undici'
import { z } from 'zod'
import type { Clock } from '../lib/clock.ts'
import { createHttpAgent } from '../lib/network-defaults.ts'
import type { Secret } from '../lib/secret.ts'
import { traceHeaders } from '../lib/tracing.ts'
import { type Answer, readAnswer } from './answer.ts'
import { StakingApiError } from './client-error.ts'
import { createRetryGate } from './retry-after.ts'
import { idempotencyKeyPattern, type OperationId, type Route, type Routes, routes } from './routes.ts'
import { clockAhead } from './server-clock.ts'
import { type HttpAnswer, send } from './transport.ts'
import { appliedWaitMs } from './wait.ts'

export type { Answer } from './answer.ts'
export { StakingApiError, type StakingApiErrorKind } from './client-error.ts'

type Part<R, K extends string> =
  R extends Record<K, infer S extends z.ZodType>
    ? undefined extends z.output<S>
      ? { readonly [key in K]?: z.output<S> }
      : { readonly [key in K]: z.output<S> }
    : unknown
type Query<R> = R extends { readonly query: infer S extends z.ZodType } ? { readonly query?: z.output<S> } : unknown
type IdempotencyKey<R> = R extends { readonly idempotencyKey: 'required' }
  ? { readonly idempotencyKey: string }
  : R extends { readonly idempotencyKey: 'optional' }
    ? { readonly idempotencyKey?: string }
    : unknown

/** What an operation sends: `params`, `query`, `body`, `idempotencyKey`, as its route says. Amounts are bigints; `amountEth` is in gwei. */
export type RequestOf<R extends Route> = Part<R, 'params'> & Query<R> & Part<R, 'body'> & IdempotencyKey<R>
/** The body of an operation's success. */
export type ResponseOf<R extends Route> = z.output<R['responses'][keyof R['responses']] & z.ZodType>

/** One method for every operation of the contract. All throw {@link StakingApiError}, or the signal's reason when aborted. */
export type StakingOperations = {
  readonly [K in OperationId]: (request: RequestOf<Routes[K]>, signal: AbortSignal) => Promise<Answer<ResponseOf<Routes[K]>>>
}
/** Operations that read one resource, whose change can be waited for. */
export type WaitingOperation = { [K in OperationId]: Routes[K] extends { readonly waits: true } ? K : never }[OperationId]

export interface StakingClient extends StakingOperations {
  /**
   * Waits at the service until the resource has another state than `state` (of an answer), or `waitMs` are over. `refused`: the service doesn't wait now.
   * @throws as an operation does
   */
  untilChanged<K extends WaitingOperation>(
    operation: K,
    request: RequestOf<Routes[K]>,
    given: { readonly state: string; readonly waitMs: number },
    signal: AbortSignal,
  ): Promise<'changed' | 'unchanged' | 'refused'>
  /** What is left of the longest Retry-After that is being honoured, in ms; for metrics. */
  heldBackMs(): number
  /** By how much the service's clock was ahead of this one at its last answer, in ms; undefined before, and for one that tells no time. */
  clockAheadMs(): number | undefined
  /** Closes the connections of the client's own dispatcher. */
  close(): Promise<void>
}

export interface StakingClientOptions {
  /** http(s) URL of the service, a path prefix included; without user name or password. */
  readonly baseUrl: string
  /** Called for each request, so that a rotated key counts at once. What it throws is passed on. */
  readonly apiKey: () => Promise<Secret> | Secret
  /** Default: a pool of the client's own. */
  readonly dispatcher?: Dispatcher
  /** For one call, from first to last byte. Default 15 s. */
  readonly timeoutMs?: number
  /** Default 1 MiB. */
  readonly maxBodyBytes?: number
  readonly userAgent?: string
  readonly clock: Clock
}

/**
 * The client of the staking service. Share one for all who use the same credential: it holds back all calls while the service has asked to
 * wait. Nothing is retried here: who calls knows whether to look or to repeat, with the same Idempotency-Key.
 */
export function createStakingClient(options: StakingClientOptions): StakingClient {
  const { clock, timeoutMs = 15_000, maxBodyBytes = 1_048_576, userAgent = 'staking-operator' } = options
  const base = parseBaseUrl(options.baseUrl)
  const own = createHttpAgent({ connections: 32, keepAliveTimeout: 10_000, connect: { timeout: timeoutMs } })
  const dispatcher = options.dispatcher ?? own
  const gate = createRetryGate({ clock })
  let lastKey: Secret | undefined
  let ahead: number | undefined

  const exchange = async (
    operation: OperationId,
    route: Route,
    request: AnyRequest,
    signal: AbortSignal,
    waiting: { readonly headers: Record<string, string>; readonly waitMs: number },
  ): Promise<HttpAnswer> => {
    const target = encodeRequest(operation, route, request)
    const key = await options.apiKey()
    if (lastKey !== undefined && lastKey.reveal() !== key.reveal()) gate.reset()
    lastKey = key
    const held = gate.heldBy(route.path)
    if (held !== undefined) {
      // Of two who wait for one chain, both are told of the chain.
      const code = held.scope === '' ? 'rate-limited' : 'chain-unavailable'
      const fields = { kind: 'problem', code, retryAfterMs: held.ms, outcomeUnknown: false } as const
      throw new StakingApiError(`${operation}: not sent, since the service asked to wait`, fields)
    }
    return send(
      {
        method: route.method,
        origin: base.origin,
        path: `${base.prefix}${target.path}`,
        headers: {
          accept: 'application/json, application/problem+json',
          authorization: bearer(operation, key),
          'user-agent': userAgent,
          ...traceHeaders(),
          ...(target.body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(target.idempotencyKey === undefined ? {} : { 'idempotency-key': target.idempotencyKey }),
          ...waiting.headers,
        },
        body: target.body,
      },
      { dispatcher, clock, timeoutMs: timeoutMs + waiting.waitMs, maxBodyBytes, what: operation },
      signal,
    )
  }
  const read = (operation: OperationId, route: Route, answer: HttpAnswer) =>
    readAnswer(operation, route, answer, { gate, now: clock.now() })

  const call = async (operation: OperationId, route: Route, request: AnyRequest, signal: AbortSignal): Promise<Answer<unknown>> => {
    // Whoever knows this preference (RFC 7240) answers that it does; to all others it is nothing.
    const headers: Record<string, string> = route.waits === true ? { prefer: 'wait=0' } : {}
    const asked = clock.now()
    const answer = await exchange(operation, route, request, signal, { headers, waitMs: 0 })
    // Not of an answer that was held back: its time says little of the moment that it was asked at.
    ahead = clockAhead(answer, asked, clock.now())
    return read(operation, route, answer)
  }

  const operations = Object.fromEntries(
    Object.entries<Route>(routes).map(([operation, route]) => [
      operation,
      (request: AnyRequest, signal: AbortSignal) => call(operation as OperationId, route, request, signal),
    ]),
  ) as unknown as StakingOperations
  return {
    ...operations,
    async untilChanged(operation, request, { state, waitMs }, signal) {
      const route: Route = routes[operation]
      const headers = { prefer: `wait=${Math.ceil(waitMs / 1000)}`, 'if-none-match': state }
      const answer = await exchange(operation, route, request, signal, { headers, waitMs })
      if (answer.status === 304) return appliedWaitMs(answer.headers['preference-applied']) === undefined ? 'refused' : 'unchanged'
      read(operation, route, answer)
      return 'changed'
    },
    heldBackMs: () => Math.max(...Object.values<Route>(routes).map(({ path }) => gate.remainingMs(path))),
    clockAheadMs: () => ahead,
    close: () => own.close(),
  }
}

interface AnyRequest {
  readonly params?: Record<string, string>
  readonly query?: Record<string, unknown>
  readonly body?: unknown
  readonly idempotencyKey?: string
}

function parseBaseUrl(text: string): { origin: string; prefix: string } {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) throw new TypeError('the base URL of the staking service must be an http(s) URL')
  if (url.username !== '' || url.password !== '')
    throw new TypeError('the base URL of the staking service must not hold a user name or password')
  if (url.search !== '' || url.hash !== '') throw new TypeError('the base URL of the staking service must not hold a query or fragment')
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') }
}

/** Writes the parts of a request by the route's schemas. A part that doesn't fit is an error of ours: nothing is sent. */
function encodeRequest(
  operation: OperationId,
  route: Route,
  request: AnyRequest,
): { path: string; body: string | undefined; idempotencyKey: string | undefined } {
  const encode = <T>(part: string, schema: z.ZodType, value: unknown): T => {
    const result = z.safeEncode(schema, value)
    if (result.success) return result.data as T
    const places = result.error.issues.map((issue) => `/${[part, ...issue.path].join('/')}`).join(', ')
    throw new StakingApiError(`${operation}: not sent, since the request is not valid at ${places}`, {
      kind: 'problem',
      code: 'invalid-request',
      outcomeUnknown: false,
    })
  }
  const params = route.params === undefined ? {} : encode<Record<string, string>>('params', route.params, request.params)
  const query = route.query === undefined ? {} : encode<Record<string, string | undefined>>('query', route.query, request.query ?? {})
  const body = route.body === undefined ? undefined : JSON.stringify(encode('body', route.body, request.body) ?? {})
  const key = request.idempotencyKey
  if (key === undefined ? route.idempotencyKey === 'required' : route.idempotencyKey === 'none' || !idempotencyKeyPattern.test(key)) {
    const code = key === undefined ? 'idempotency-key-missing' : 'idempotency-key-invalid'
    throw new StakingApiError(`${operation}: not sent, since its Idempotency-Key is not valid`, {
      kind: 'problem',
      code,
      outcomeUnknown: false,
    })
  }
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]])),
  )
  return { path: search.size === 0 ? path : `${path}?${search}`, body, idempotencyKey: key }
}

function bearer(operation: OperationId, key: Secret): string {
  const text = key.reveal().trim()
  if (/^[!-~]{1,4096}$/.test(text)) return `Bearer ${text}`
  throw new StakingApiError(`${operation}: not sent, since the API key is empty or holds characters that no header may hold`, {
    kind: 'problem',
    code: 'unauthenticated',
    outcomeUnknown: false,
  })
}
