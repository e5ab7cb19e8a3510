import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { idempotencyKeyPattern, type Route } from '../../contract/routes.ts'
import type { ApiKeys, Caller } from '../api-keys.ts'
import { ProblemError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The operation of the contract that this route serves. */
    contract?: Route
  }
  interface FastifyRequest {
    /** Who asks; set for every route that needs an API key. */
    caller: Caller | undefined
    /** The body as it was sent, before defaults. */
    givenBody: unknown
  }
}

export interface RateLimits {
  /** Requests per window of one API key. */
  readonly max: number
  readonly windowMs: number
  /** Refused requests per window of one address, before the refusals themselves are refused. */
  readonly maxUnauthenticated: number
}

const challenge = { 'www-authenticate': 'Bearer realm="staking"' }

/**
 * In this order: a valid API key (401), its limit (429), its scope (403), and a well-formed Idempotency-Key (400), all before the body is read.
 * Limits are counted per instance.
 */
export async function installAuth(app: FastifyInstance, { apiKeys, limits }: { apiKeys: ApiKeys; limits: RateLimits }): Promise<void> {
  await app.register(rateLimit, { global: false })
  const byKey = app.createRateLimit({
    max: limits.max,
    timeWindow: limits.windowMs,
    keyGenerator: (request) => `key ${request.caller?.keyId}`,
  })
  const byAddress = app.createRateLimit({
    max: limits.maxUnauthenticated,
    timeWindow: limits.windowMs,
    keyGenerator: (request) => `ip ${request.ip}`,
  })
  app.decorateRequest('caller', undefined)

  app.addHook('onRequest', async (request, reply) => {
    const route = request.routeOptions.config.contract
    if (route === undefined || route.scope === 'none') return
    const caller = await authenticate(request)
    if (caller === undefined) {
      await spend(byAddress, request, reply)
      throw new ProblemError('unauthenticated', 'send a valid API key: Authorization: Bearer <key>', { headers: challenge })
    }
    request.caller = caller
    await spend(byKey, request, reply)
    if (!caller.scopes.includes(route.scope)) {
      throw new ProblemError('forbidden', `this needs an API key with the scope ${route.scope}`, {
        headers: { 'www-authenticate': `${challenge['www-authenticate']}, error="insufficient_scope", scope="${route.scope}"` },
      })
    }
    checkIdempotencyKey(request, route)
  })

  async function authenticate(request: FastifyRequest): Promise<Caller | undefined> {
    const text = /^Bearer +([^ ]+) *$/i.exec(request.headers.authorization ?? '')?.[1]
    return text === undefined ? undefined : apiKeys.authenticate(text)
  }
}

/** Counts a request and tells the client where it stands. @throws ProblemError `rate-limited` */
async function spend(limiter: ReturnType<FastifyInstance['createRateLimit']>, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const result = await limiter(request)
  if (result.isAllowed) return
  const reset = Math.max(1, result.ttlInSeconds)
  reply.headers({
    'ratelimit-limit': String(result.max),
    'ratelimit-remaining': String(result.remaining),
    'ratelimit-reset': String(reset),
  })
  if (result.isExceeded)
    throw new ProblemError('rate-limited', `more than ${result.max} requests: go on in ${reset} s`, { retryAfterSeconds: reset })
}

/** The key's text, checked by {@link installAuth}. Node joins several headers of one name: their number is checked there too. */
export const idempotencyKeyOf = (request: FastifyRequest): string | undefined => {
  const value = request.headers['idempotency-key']
  return Array.isArray(value) ? value.join(', ') : value
}

function idempotencyKeyInvalid(detail: string, code: string): ProblemError {
  return new ProblemError('idempotency-key-invalid', detail, { errors: [{ pointer: '/headers/idempotency-key', code, detail }] })
}

function checkIdempotencyKey(request: FastifyRequest, route: Route): void {
  if (route.idempotencyKey === 'none') return
  const key = idempotencyKeyOf(request)
  if (key === undefined) {
    if (route.idempotencyKey === 'optional') return
    throw new ProblemError('idempotency-key-missing', 'send an Idempotency-Key of your own making, and the same one when you try again')
  }
  if ((request.raw.headersDistinct['idempotency-key']?.length ?? 0) > 1) {
    throw idempotencyKeyInvalid('a request has one Idempotency-Key: this one has several', 'several')
  }
  if (!idempotencyKeyPattern.test(key)) {
    throw idempotencyKeyInvalid('the Idempotency-Key must be 1 to 255 printable ASCII characters', key === '' ? 'empty' : 'invalid')
  }
}
