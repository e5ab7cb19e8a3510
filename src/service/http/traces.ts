import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type OpenSpan, serveSpan } from '../../lib/tracing.ts'

/**
 * A span for each request of the contract, in the trace that its `traceparent` names. To be added before all other hooks; only while somebody traces.
 */
export function traceRequests(app: FastifyInstance): void {
  const spans = new WeakMap<FastifyRequest, OpenSpan>()
  const within = (request: FastifyRequest, work: () => void): void => {
    const span = spans.get(request)
    if (span === undefined) work()
    else span.within(work)
  }
  app.addHook('onRequest', (request, reply, done) => {
    const { url, config } = request.routeOptions
    if (config.contract === undefined) return done()
    const attributes = { 'http.request.method': request.method, 'http.route': url }
    const span = serveSpan(`${request.method} ${url ?? ''}`, () => ({ kind: 'server', attributes }), request.headers)
    if (span === undefined) return done()
    spans.set(request, span)
    // Whose connection ends before its answer has one too.
    reply.raw.once('close', () => span.end())
    within(request, done)
  })
  // The body comes by events of the socket, which know nothing of the span.
  app.addHook('preValidation', (request, _reply, done) => within(request, done))
  app.addHook('onResponse', (request, reply, done) => {
    const span = spans.get(request)
    span?.set({ 'http.response.status_code': reply.statusCode })
    span?.end(reply.statusCode >= 500)
    within(request, done)
  })
}
