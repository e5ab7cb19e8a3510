import { randomUUID } from 'node:crypto'
import { type RequestListener, type ServerOptions, STATUS_CODES } from 'node:http'
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify'
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod'
import { makeProblem, type ProblemCode, problemMediaType } from '../../contract/problems.ts'
import type { Logger } from '../../lib/log.ts'
import { isTracing } from '../../lib/tracing.ts'
import { ProblemError } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import { type Admission, admit } from './admit.ts'
import type { Certificate } from './certificate.ts'
import { sendProblem } from './problems.ts'
import { requestIdOf } from './request-id.ts'
import { createTlsServer } from './tls-server.ts'
import { traceRequests } from './traces.ts'
import { framingFault, givenTwice, isDecodable, jsonOf } from './well-formed.ts'

const bodyLimitBytes = 64 * 1024
const maxHeaderBytes = 16 * 1024
const keepAliveMs = 65_000

export interface HttpLimits {
  /** From the first byte of a request to its last, in ms: headers and body. So long, too, a client may take to read the answer. */
  readonly requestTimeoutMs: number
  /** Open connections; further ones are closed at once. */
  readonly maxConnections: number
  /** Requests that are served at the same time; further ones are told to come again. */
  readonly maxInFlight: number
  /** The same of one account: half of them, so that none keeps the others out. */
  readonly maxInFlightPerAccount: number
  /** Requests that wait for a change at the same time, in all (half of the connections at most) and of one API key; further ones are answered at once. */
  readonly maxWaiting: number
  readonly maxWaitingPerKey: number
}

export const defaultHttpLimits: HttpLimits = {
  ...{ requestTimeoutMs: 15_000, maxConnections: 1_000, maxInFlight: 256, maxInFlightPerAccount: 128 },
  ...{ maxWaiting: 500, maxWaitingPerKey: 100 },
}

/** An answer to what is no whole request, and so has no route: written to the socket as it is. */
function bareAnswer(code: ProblemCode, detail: string): string {
  const requestId = randomUUID()
  const { status, ...problem } = makeProblem(code, { detail, requestId })
  const body = JSON.stringify({ ...problem, status })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `content-type: ${problemMediaType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'cache-control: no-store',
    'connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

/** What Node answers by itself, or not at all, in a form that no client of this service knows. */
function answerToOddities({ server }: FastifyInstance): void {
  server.on('checkExpectation', ({ socket }) => socket.end(bareAnswer('invalid-request', 'of expectations, 100-continue alone is met')))
  server.on('connect', (_request, socket) => socket.end(bareAnswer('invalid-request', 'this is no proxy')))
}

/** By the error codes of Node's HTTP server. */
function answerToError(code: string | undefined, { requestTimeoutMs }: HttpLimits): string {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return bareAnswer('request-timeout', `the request was not whole within ${requestTimeoutMs / 1000} s`)
    case 'HPE_HEADER_OVERFLOW':
      return bareAnswer('headers-too-large', `the headers are larger than ${maxHeaderBytes} bytes`)
    default:
      return bareAnswer('invalid-request', 'this is not an HTTP request')
  }
}

/** Fastify with what all routes share: request ids, JSON without loss, the contract's schemas as validators and writers, durations. */
export function createApp({
  log,
  metrics,
  stopping,
  stopped,
  limits,
  trustProxy,
  certificate,
}: {
  log: Logger
  metrics: Metrics
  /** About to end: requests are served, and their connections closed. */
  stopping: AbortSignal
  /** No further request is served. */
  stopped: AbortSignal
  limits: HttpLimits
  /** Addresses of the proxies whose X-Forwarded-* headers count. */
  trustProxy: readonly string[]
  /** With one it is served over TLS alone. */
  certificate?: Certificate | undefined
}): { readonly app: FastifyInstance; readonly admission: Admission } {
  const http = serverOptions(limits)
  const app: FastifyInstance = fastify({
    ...(certificate === undefined ? { http } : overTls(certificate, limits, http)),
    loggerInstance: log as FastifyBaseLogger,
    // One line per request is written below, with what matters; two of Fastify's own would drown the rest.
    logController: new LogController({ disableRequestLogging: true }),
    // Lines about a request name it by themselves; a logger for each would cost more than to find its answer.
    childLoggerFactory: (logger) => logger,
    bodyLimit: bodyLimitBytes,
    ...(trustProxy.length === 0 ? {} : { trustProxy: [...trustProxy] }),
    // A public key in a path is 98 characters.
    routerOptions: { maxParamLength: 128 },
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: keepAliveMs,
    forceCloseConnections: 'idle',
    // A request that came before the end is served; the listener is closed, so no further ones come.
    return503OnClosing: false,
    requestIdHeader: false,
    genReqId: requestIdOf,
    // What isn't HTTP has no request to answer to.
    clientErrorHandler: (error, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
      // Ended, not destroyed: what was not read yet would have the answer thrown away.
      socket.end(answerToError(error.code, limits))
      socket.setTimeout(1_000, () => socket.destroy())
      socket.resume()
    },
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      void sendProblem(error, request, reply)
    },
  })
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  app.decorateRequest('givenBody', undefined)
  app.decorateRequest('stepAside', undefined)
  app.decorateRequest('waitedMs', 0)
  app.decorateRequest('entityTag', undefined)
  if (isTracing()) traceRequests(app)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, given, done) => {
    try {
      const body = jsonOf(request.headers, Buffer.from(given))
      request.givenBody = body
      done(null, body)
    } catch (error) {
      done(error as Error)
    }
  })
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    reply.header('cache-control', 'no-store')
    if (stopping.aborted) reply.header('connection', 'close')
    const fault = framingFault(request.raw)
    if (fault !== undefined) {
      reply.header('connection', 'close')
      return done(new ProblemError('invalid-request', fault))
    }
    const twice = givenTwice(request.raw.rawHeaders)
    if (twice === undefined) return done()
    const detail = `a request has one ${twice}: this one has several`
    done(new ProblemError('invalid-request', detail, { errors: [{ pointer: `/headers/${twice}`, code: 'several', detail }] }))
  })
  app.addHook('preValidation', (request, _reply, done) => {
    if (isDecodable(request.url)) return done()
    const detail = 'the query is not UTF-8 in percent-encoding'
    done(new ProblemError('invalid-request', detail, { errors: [{ pointer: '/query', code: 'invalid-encoding', detail }] }))
  })
  app.server.maxConnections = limits.maxConnections
  answerToOddities(app)
  const admission = admit(app, limits, metrics, stopped)
  app.addHook('onResponse', (request, reply, done) => {
    const { method, waitedMs } = request
    const route = request.routeOptions.url ?? 'unknown'
    // What a client has asked to wait is no time that its answer took.
    const durationMs = Math.max(0, reply.elapsedTime - waitedMs)
    metrics.requestDuration(method, route, reply.statusCode, durationMs / 1000)
    if (request.routeOptions.config.contract === undefined || !log.isLevelEnabled('info')) return done()
    const line = {
      requestId: request.id,
      method,
      path: request.url.split('?', 1)[0],
      status: reply.statusCode,
      durationMs: Math.round(durationMs * 10) / 10,
      ...(waitedMs > 0 ? { waitedMs: Math.round(waitedMs) } : {}),
      account: request.caller?.account,
      keyId: request.caller?.keyId,
    }
    log.info(line, 'request')
    done()
  })
  return { app, admission }
}

/** Whoever watches the service is a handful. */
const maxOperationsConnections = 100

/** For what the platform asks, on a port of its own. */
export function createOperationsApp(log: Logger, limits: HttpLimits): FastifyInstance {
  const app = fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: limits.requestTimeoutMs,
    http: serverOptions(limits),
    forceCloseConnections: true,
  })
  app.server.maxConnections = maxOperationsConnections
  return app
}

const serverOptions = ({ requestTimeoutMs }: HttpLimits): ServerOptions => ({
  headersTimeout: requestTimeoutMs,
  // The answer to a request without one is a problem, as all are.
  requireHostHeader: false,
  // Node looks every 30 s otherwise, whatever the time-outs are.
  connectionsCheckingInterval: Math.min(1_000, Math.ceil(requestTimeoutMs / 4)),
  maxHeaderSize: maxHeaderBytes,
})

/** The same server with TLS before it; Fastify sets the time-outs of those alone that it makes itself. */
function overTls(certificate: Certificate, { requestTimeoutMs }: HttpLimits, http: ServerOptions) {
  const options = { ...http, requestTimeout: requestTimeoutMs, keepAliveTimeout: keepAliveMs, handshakeTimeoutMs: requestTimeoutMs }
  // `https` is for the addresses that Fastify tells.
  return { https: {}, serverFactory: (listener: RequestListener) => createTlsServer(certificate, options, listener) }
}
