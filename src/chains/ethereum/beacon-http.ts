import type { z } from 'zod'
import type { Clock } from '../../lib/clock.ts'
import { readText, retryAfter, splitCredentials } from '../../lib/http-answer.ts'
import { RpcFailure } from '../../lib/rpc-failure.ts'
import { inSpan } from '../../lib/tracing.ts'
import { BeaconError } from './beacon.ts'

/** Told of every call: the endpoint without ids, and `ok` or the HTTP status or what failed. */
export type OnBeaconCall = (endpoint: string, outcome: string, ms: number) => void

export interface BeaconRequest<T> {
  /** For messages and metrics: the endpoint without ids, such as `validators`. */
  readonly endpoint: string
  /** Begins with `/eth/`. */
  readonly path: string
  readonly query?: readonly (readonly [string, string])[]
  readonly schema: z.ZodType<{ readonly data: T }>
  /** What a 404 means where it has a meaning. */
  readonly notFound?: BeaconError
  /** Whether a 400 means the same. */
  readonly isBadNotFound?: boolean
}
export type BeaconGet = <T>(request: BeaconRequest<T>, signal: AbortSignal) => Promise<T>

/**
 * The Beacon API over one http(s) URL, which may have a path and a query of its own: GET only, bounded in time and size, no retries, no redirects.
 * Throws `BeaconError` without the URL and the answer's text, or the signal's reason when that aborts.
 */
export function createBeaconGet(options: {
  readonly url: string
  readonly clock: Clock
  /** From the first to the last byte. */
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly fetch?: typeof globalThis.fetch
  readonly onCall?: OnBeaconCall | undefined
}): BeaconGet {
  const { clock, timeoutMs, maxBytes, onCall } = options
  const { url: base, authorization } = splitCredentials(options.url)
  const headers = { accept: 'application/json', ...(authorization === undefined ? {} : { authorization }) }

  const get = async <T>(
    { endpoint, path, query = [], schema, notFound, isBadNotFound }: BeaconRequest<T>,
    signal: AbortSignal,
  ): Promise<T> => {
    const url = new URL(base)
    url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`
    for (const [name, value] of query) url.searchParams.append(name, value)
    const response = await (options.fetch ?? globalThis.fetch)(url, { headers, redirect: 'error', signal })
    const text = await readText(response, maxBytes)
    if (notFound !== undefined && (response.status === 404 || (response.status === 400 && isBadNotFound === true))) throw notFound
    if (!response.ok) {
      throw new Failed(
        String(response.status),
        `the beacon node answered ${endpoint} with status ${response.status}`,
        retryAfter(response.headers.get('retry-after')),
      )
    }
    let body: unknown
    try {
      body = JSON.parse(text)
    } catch {
      throw new Failed('no-json', `the beacon node's answer to ${endpoint} is not JSON`)
    }
    // What its execution client has not verified may be of a chain that no honest node follows.
    if (typeof body === 'object' && body !== null && 'execution_optimistic' in body && body.execution_optimistic === true) {
      throw new BeaconError('behind', `the beacon node's answer to ${endpoint} is optimistic: its execution client has not verified it`)
    }
    const result = schema.safeParse(body)
    if (result.success) return result.data.data
    const where = result.error.issues[0]?.path.join('.') ?? ''
    throw new Failed('shape', `the beacon node's answer to ${endpoint} has another shape than the Beacon API's (at ${where.slice(0, 80)})`)
  }

  return async (request, signal) => {
    signal.throwIfAborted()
    const start = clock.monotonicMs()
    const done = new AbortController()
    const timeout = new AbortController()
    clock.sleep(timeoutMs, done.signal).then(
      () => timeout.abort(),
      () => {},
    )
    const report = (outcome: string): void => onCall?.(request.endpoint, outcome, clock.monotonicMs() - start)
    try {
      const result = await inSpan(
        `beacon ${request.endpoint}`,
        () => ({ kind: 'client', isPart: true, attributes: { 'staking.endpoint': request.endpoint } }),
        () => get(request, AbortSignal.any([signal, timeout.signal])),
      )
      report('ok')
      return result
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof BeaconError) {
        report(error.code === 'behind' ? 'optimistic' : '404')
        throw error
      }
      const failure = toFailed(error, timeout.signal.aborted, request.endpoint, timeoutMs)
      report(failure.outcome)
      const isRefused = refusals.includes(failure.outcome)
      const denied = denials.includes(failure.outcome) ? Number(failure.outcome) : undefined
      throw new BeaconError('unavailable', failure.message, failure.retryAfterMs, isRefused ? request.endpoint : undefined, {
        denied,
        isNotFound: failure.outcome === '404',
      })
    } finally {
      done.abort()
    }
  }
}

/** Statuses of an endpoint that the node does not serve, or not to us. */
const denials = ['401', '402', '403']
const refusals = [...denials, '404', '405', '501']

class Failed extends Error {
  readonly outcome: string
  readonly retryAfterMs: number | undefined
  constructor(outcome: string, message: string, retryAfterMs?: number) {
    super(message)
    this.outcome = outcome
    this.retryAfterMs = retryAfterMs
  }
}

function toFailed(error: unknown, timedOut: boolean, endpoint: string, timeoutMs: number): Failed {
  if (error instanceof Failed) return error
  if (timedOut) return new Failed('timeout', `the beacon node did not answer ${endpoint} within ${timeoutMs} ms`)
  if (error instanceof RpcFailure) return new Failed(error.kind, `the beacon node's answer to ${endpoint} is too large`)
  // fetch's errors and their causes may hold the URL.
  return new Failed('no-answer', `the beacon node could not be reached for ${endpoint}`)
}
