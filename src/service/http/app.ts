import { randomUUID } from 'node:crypto'
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify'
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod'
import { parseJson } from '../../contract/json.ts'
import { makeProblem, problemMediaType } from '../../contract/problems.ts'
import type { Logger } from '../../lib/log.ts'
import type { Metrics } from '../metrics.ts'
import { sendProblem } from './problems.ts'

const bodyLimitBytes = 64 * 1024
const requestIdPattern = /^[A-Za-z0-9._:-]{1,128}$/

const badRequestBody = JSON.stringify(makeProblem('invalid-request', { detail: 'this is not an HTTP request' }))
const badRequest = `HTTP/1.1 400 Bad Request\r\ncontent-type: ${problemMediaType}\r\ncontent-length: ${badRequestBody.length}\r\nconnection: close\r\n\r\n${badRequestBody}`

/** Fastify with what all routes share: request ids, JSON without loss, the contract's schemas as validators and writers, durations. */
export function createApp({ log, metrics, stopping }: { log: Logger; metrics: Metrics; stopping: AbortSignal }): FastifyInstance {
  const app: FastifyInstance = fastify({
    loggerInstance: log as FastifyBaseLogger,
    // One line per request is written below, with what matters; two of Fastify's own would drown the rest.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: bodyLimitBytes,
    // A public key in a path is 98 characters.
    routerOptions: { maxParamLength: 128 },
    requestTimeout: 30_000,
    keepAliveTimeout: 65_000,
    forceCloseConnections: 'idle',
    // A request that came before the end is served; the listener is closed, so no further ones come.
    return503OnClosing: false,
    requestIdHeader: false,
    genReqId: (request) => {
      const given = request.headers['x-request-id']
      return typeof given === 'string' && requestIdPattern.test(given) ? given : randomUUID()
    },
    // What isn't HTTP has no request to answer to.
    clientErrorHandler: (_error, socket) => {
      if (socket.writable) socket.write(badRequest)
      socket.destroy()
    },
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      void sendProblem(error, request, reply)
    },
  })
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  app.decorateRequest('givenBody', undefined)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    try {
      const body = text === '' ? undefined : parseJson(text.toString())
      request.givenBody = body
      done(null, body)
    } catch (error) {
      done(error as Error)
    }
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    reply.header('cache-control', 'no-store')
    if (stopping.aborted) reply.header('connection', 'close')
  })
  app.addHook('onResponse', async (request, reply) => {
    const { method } = request
    const route = request.routeOptions.url ?? 'unknown'
    metrics.requestDuration({ method, route, status: reply.statusCode }, reply.elapsedTime / 1000)
    if (request.routeOptions.config.contract === undefined) return
    const line = {
      requestId: request.id,
      method,
      path: request.url.split('?', 1)[0],
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime * 10) / 10,
      account: request.caller?.account,
      keyId: request.caller?.keyId,
    }
    request.log.info(line, 'request')
  })
  return app
}
