import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { fastifyUrl, type Route, type Scope } from '../../contract/routes.ts'
import type { Logger } from '../../lib/log.ts'
import { isTracing } from '../../lib/tracing.ts'
import { anywhere } from '../addresses.ts'
import type { ApiKeys, Caller } from '../api-keys.ts'
import type { Audit } from '../audit.ts'
import type { Metrics } from '../metrics.ts'
import type { RateLimiter } from '../rate-limits.ts'
import type { Admission } from './admit.ts'
import { keyOf, operationOf } from './auth.ts'
import { namesTag } from './entity-tags.ts'
import { requestIdOf } from './request-id.ts'
import { givenTwice } from './well-formed.ts'
import type { WrittenAnswers } from './written-answers.ts'

/** A kind of resource whose answers may be at hand. */
export interface AnswersAtHand {
  /** A GET, whose path ends with the id. */
  readonly route: Route
  readonly find: WrittenAnswers['atHand']
}

export interface AtHandDeps {
  readonly apiKeys: Pick<ApiKeys, 'recall'>
  readonly limiter: Pick<RateLimiter, 'spendAtHand'>
  readonly audit: Pick<Audit, 'used' | 'reads'>
  readonly admission: Admission
  readonly metrics: Pick<Metrics, 'requestDuration'>
  readonly log: Logger
  /** About to end: connections are closed with their answers. */
  readonly stopping: AbortSignal
  /** Who asks is then told by headers. */
  readonly hasProxies: boolean
}

const idLength = 32
/** Of these, a request asks for more than the answer as it is, or comes otherwise than a GET does. */
const unusual = ['prefer', 'content-length', 'transfer-encoding', 'upgrade', 'expect'] as const

/**
 * Sends answers that are at hand before anything of Fastify is asked, whose hooks cost more than they do. It takes the plain case alone: a GET of one resource by a key
 * that is remembered, has requests left, and may do this, from there. All else goes the whole way, which decides, and says why: nothing is refused here.
 */
export function answerAtHand(app: FastifyInstance, kinds: readonly AnswersAtHand[], deps: AtHandDeps): void {
  // Spans are the whole way's, and so is the log of reads.
  if (isTracing() || deps.audit.reads) return
  const lanes = kinds.map((kind) => ({
    ...kind,
    operation: operationOf(kind.route),
    prefix: kind.route.path.replace(/\{[^}]+\}$/, ''),
    url: fastifyUrl(kind.route.path),
  }))
  const [wholeWay] = app.server.listeners('request')
  if (wholeWay === undefined) throw new Error('the server serves nothing')
  app.server.removeAllListeners('request')
  app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    for (const lane of lanes) if (answer(lane, request, response)) return
    wholeWay.call(app.server, request, response)
  })

  /** @returns false: it goes the whole way; nothing was done. */
  function answer(lane: (typeof lanes)[number], request: IncomingMessage, response: ServerResponse): boolean {
    const { route, find, operation, prefix } = lane
    const { url = '', headers } = request
    if (request.method !== 'GET' || url.length !== prefix.length + idLength || !url.startsWith(prefix)) return false
    if (deps.stopping.aborted || unusual.some((name) => headers[name] !== undefined)) return false
    if (headers.host === undefined || givenTwice(request.rawHeaders) !== undefined) return false
    const caller = deps.apiKeys.recall(keyOf(request))
    if (caller === undefined || !mayAsk(caller, request)) return false
    if (!caller.scopes.includes(route.scope as Scope) || caller.operations?.includes(operation) === false) return false
    const found = find(caller.account, url.slice(prefix.length))
    if (found === undefined || caller.networks?.includes(found.network) === false) return false
    if (deps.admission.isFull() || deps.admission.isFullFor(caller.account)) return false
    const allowance = deps.limiter.spendAtHand(caller.keyId)
    if (allowance?.allowed !== true) return false

    deps.admission.enter(response)
    deps.admission.assign(response, caller.account)
    deps.audit.used(caller.keyId)
    const requestId = requestIdOf(request)
    const { tag, body } = found.written
    const isKnown = namesTag(headers['if-none-match'], tag)
    // In one list, which Node writes as it is.
    const fields = [
      ...['x-request-id', requestId, 'cache-control', 'no-store', 'etag', tag],
      ...['ratelimit-limit', String(allowance.limit), 'ratelimit-remaining', String(allowance.remaining)],
      ...['ratelimit-reset', String(Math.max(1, Math.ceil(allowance.resetMs / 1000)))],
    ]
    const begun = performance.now()
    response.once('close', () =>
      tell(lane.url, { requestId, path: url, status: response.statusCode, ms: performance.now() - begun }, caller),
    )
    if (isKnown) response.writeHead(304, fields).end()
    else {
      fields.push('content-type', 'application/json; charset=utf-8', 'content-length', String(Buffer.byteLength(body)))
      response.writeHead(found.written.status, fields).end(body)
    }
    return true
  }

  const mayAsk = ({ mayComeFrom }: Caller, { socket }: IncomingMessage): boolean =>
    mayComeFrom === anywhere || (!deps.hasProxies && mayComeFrom(socket.remoteAddress ?? ''))

  function tell(of: string, { ms, ...request }: Served, { account, keyId }: Caller): void {
    deps.metrics.requestDuration('GET', of, request.status, ms / 1000)
    if (!deps.log.isLevelEnabled('info')) return
    deps.log.info({ ...request, method: 'GET', durationMs: Math.round(ms * 10) / 10, account, keyId }, 'request')
  }
}

interface Served {
  readonly requestId: string
  readonly path: string
  readonly status: number
  readonly ms: number
}
