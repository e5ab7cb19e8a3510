import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod'
import { BeaconError } from '../../chains/ethereum/beacon.ts'
import { ChainError } from '../../chains/ethereum/chain.ts'
import { JsonError } from '../../contract/json.ts'
import { makeProblem, type ProblemDetail, problemMediaType, problems } from '../../contract/problems.ts'
import { beaconUnavailable, chainUnavailable, ProblemError } from '../errors.ts'
import type { Answer } from '../idempotency.ts'
import { DatabaseUnavailableError, isOutage } from '../store/database.ts'
import { sqlStateOf, wordsOf } from '../store/no-room.ts'

/** Makes every error, whoever threw it, a problem of the contract (RFC 9457). Only what the service didn't expect is logged as an error. */
export function installProblems(
  app: FastifyInstance,
  {
    allowedMethods,
    replayOf,
  }: {
    readonly allowedMethods: (path: string) => readonly string[]
    /** What is stored for a request that was refused before it came to its handler. @throws ProblemError */
    readonly replayOf: (request: FastifyRequest) => Promise<Answer | undefined>
  },
): void {
  app.setErrorHandler(async (error, request, reply) => {
    // Of a request that no route takes, nothing else counts: neither its method's rules nor its body.
    if (request.is404) return sendProblem(nothingHere(request), request, reply)
    if (!isOfBody(error)) return sendProblem(error, request, reply)
    try {
      const replay = await replayOf(request)
      return replay === undefined ? sendProblem(error, request, reply) : sendReplay(reply, replay)
    } catch (other) {
      return sendProblem(other, request, reply)
    }
  })
  app.setNotFoundHandler((request, reply) => sendProblem(nothingHere(request), request, reply))

  function nothingHere(request: FastifyRequest): ProblemError {
    const allowed = allowedMethods(pathOf(request))
    if (allowed.length === 0) return new ProblemError('not-found', 'there is nothing at this path')
    const detail = `this path takes ${allowed.join(', ')}`
    return new ProblemError('method-not-allowed', detail, { headers: { allow: allowed.join(', ') } })
  }
}

/** An answer as it was stored. */
export const sendReplay = (reply: FastifyReply, { status, body }: Answer): FastifyReply =>
  reply.status(status).header('idempotency-replayed', 'true').type('application/json; charset=utf-8').send(body)

/** What is wrong is the request's content, which was read after all that concerns who sends it and under which key. */
const isOfBody = (error: unknown): boolean =>
  error instanceof JsonError ||
  (error instanceof ProblemError && error.code === 'unsupported-media-type') ||
  hasZodFastifySchemaValidationErrors(error) ||
  (error as FastifyError).code?.startsWith('FST_ERR_CTP') === true

export const pathOf = (request: FastifyRequest): string => request.url.split('?', 1)[0] ?? '/'

export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = asProblem(error)
  if (known === undefined) request.log.error({ err: error, requestId: request.id }, 'a request failed for a reason that was not expected')
  if (isOutage(error))
    request.log.warn(
      { requestId: request.id, reason: known?.message, sqlState: sqlStateOf(error) },
      'the database could not serve a request',
    )
  const { code, message, errors, existingId, retryAfterSeconds, headers } =
    known ?? new ProblemError('internal-error', 'the request could not be served')
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds))
  reply.headers(headers)
  const problem = makeProblem(code, {
    detail: message.slice(0, 4096),
    instance: pathOf(request).slice(0, 2048),
    requestId: request.id,
    ...(errors === undefined ? {} : { errors }),
    ...(existingId === undefined ? {} : { existingId }),
  })
  // As text: the serialisers of the route are for its successes.
  return reply.status(problems[code].status).type(problemMediaType).send(JSON.stringify(problem))
}

function asProblem(error: unknown): ProblemError | undefined {
  if (error instanceof ProblemError) return error
  if (isOutage(error)) return databaseUnavailable(error)
  if (error instanceof ChainError) return chainUnavailable('the network', error)
  if (error instanceof BeaconError) return beaconUnavailable('the network', error)
  // The request's own time-out: whatever it waited for was a chain.
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return new ProblemError('chain-unavailable', "the service's node did not answer in time", { retryAfterSeconds: 5 })
  }
  if (error instanceof JsonError) {
    return new ProblemError('invalid-request', 'the body is not valid JSON', {
      errors: [{ pointer: '/body', code: 'invalid-json', detail: 'the body is not valid JSON' }],
    })
  }
  if (hasZodFastifySchemaValidationErrors(error)) return invalidRequest(error)
  if (!(error instanceof Error)) return undefined
  const { code, statusCode } = error as FastifyError
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ProblemError('payload-too-large', 'the body is larger than this service takes')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ProblemError('unsupported-media-type', 'send the body as application/json')
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new ProblemError('not-found', 'there is nothing at this path')
  }
  // Of Fastify's own making (lengths that don't match, encodings): its texts quote nothing.
  return code?.startsWith('FST_') && statusCode !== undefined && statusCode < 500
    ? new ProblemError('invalid-request', error.message)
    : undefined
}

function databaseUnavailable(error: unknown): ProblemError {
  if (error instanceof DatabaseUnavailableError && error.kind === 'busy')
    return new ProblemError('service-unavailable', 'too many requests wait for the database', { retryAfterSeconds: 1 })
  return new ProblemError('service-unavailable', wordsOf(error) ?? "the service's database does not answer", { retryAfterSeconds: 5 })
}

interface ValidationProblem {
  readonly keyword: string
  readonly instancePath: string
  readonly message?: string
}

function invalidRequest(error: { validation: readonly ValidationProblem[]; validationContext?: string | undefined }): ProblemError {
  const part = error.validationContext === 'querystring' ? 'query' : (error.validationContext ?? 'body')
  // An identifier of the wrong form names nothing. A public key is none of ours: what is wrong with it is worth saying.
  if (part === 'params' && !error.validation.some(({ instancePath }) => instancePath === '/pubkey'))
    return new ProblemError('not-found', 'there is no such resource')
  const errors: ProblemDetail[] = error.validation.slice(0, 32).map(({ keyword, instancePath, message }) => ({
    pointer: `/${part}${instancePath === '/' ? '' : instancePath}`.slice(0, 1024),
    code: keyword === 'custom' ? 'invalid-value' : keyword.replaceAll('_', '-'),
    detail: (message ?? 'is not valid').slice(0, 1024),
  }))
  return new ProblemError('invalid-request', errors.map(({ pointer, detail }) => `${pointer}: ${detail}`).join('; '), { errors })
}
