import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { idempotencyKeyPattern, type OperationId, type Route, routes, type Scope } from '../../contract/routes.ts'
import type { ApiKeys, Caller } from '../api-keys.ts'
import type { Audit, AuditEntry } from '../audit.ts'
import { ProblemError } from '../errors.ts'
import type { Allowance, RateLimiter } from '../rate-limits.ts'
import type { Admission } from './admit.ts'
import type { NetworkCheck } from './network-limits.ts'

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
    /** Of the entry that says what becomes of this request. */
    auditId: string | undefined
    /** What was created. */
    resourceId: string | undefined
  }
}

export interface RateLimits {
  /** Requests per window of one API key, over all instances. */
  readonly max: number
  readonly windowMs: number
  /** Refused requests per window of one address, before the refusals themselves are refused. */
  readonly maxUnauthenticated: number
}

const challenge = { 'www-authenticate': 'Bearer realm="staking"' }
const unauthenticated = () =>
  new ProblemError('unauthenticated', 'send a valid API key: Authorization: Bearer <key>', { headers: challenge })

const elsewhere = () => new ProblemError('forbidden', 'this API key may not be used from this address')

/** By the routes themselves, which have no names of their own. */
const operationIds: ReadonlyMap<Route, OperationId> = new Map(
  Object.entries<Route>(routes).map(([name, route]) => [route, name as OperationId]),
)
export const operationOf = (route: Route): OperationId => {
  const name = operationIds.get(route)
  if (name === undefined) throw new Error(`${route.method} ${route.path} is no operation of the contract`)
  return name
}

export interface AuthDeps {
  /** The places of those who are served, of which an account has a share. */
  readonly admission: Pick<Admission, 'isFullFor' | 'assign'>
  /** Counts who is told to come again. */
  readonly onShed: () => void
  /** What is checked of the networks that a key is for. @throws ProblemError */
  readonly checkNetwork: NetworkCheck
  readonly apiKeys: ApiKeys
  readonly audit: Audit
  /** Of API keys, over all instances. */
  readonly limiter: RateLimiter
  readonly limits: RateLimits
}

/**
 * In this order: a valid API key (401), from where it may be used (403), its limit (429), what it may do (403), and a well-formed Idempotency-Key (400), all before the
 * body is read. What changes something is then written down, before it takes effect. Whoever has stolen a key that is bound to addresses can't use up its limit.
 */
export async function installAuth(app: FastifyInstance, deps: AuthDeps): Promise<void> {
  const { apiKeys, audit, limiter, limits, checkNetwork, admission, onShed } = deps
  await app.register(rateLimit, { global: false })
  const byAddress = app.createRateLimit({
    max: limits.maxUnauthenticated,
    timeWindow: limits.windowMs,
    keyGenerator: (request) => `ip ${request.ip}`,
  })
  app.decorateRequest('caller', undefined)
  app.decorateRequest('auditId', undefined)
  app.decorateRequest('permitAgain', undefined)
  app.decorateRequest('resourceId', undefined)

  app.addHook('onRequest', (request, reply, done) => {
    const route = request.routeOptions.config.contract
    if (route === undefined || route.scope === 'none') return done()
    // Most who ask are remembered, and have requests left: they wait for nobody.
    const caller = apiKeys.recall(keyOf(request))
    const allowance = caller?.mayComeFrom(request.ip) === true ? limiter.spendAtHand(caller.keyId) : undefined
    if (caller === undefined || allowance === undefined || isNoted(route))
      return void ask(request, reply, route, caller, allowance).then(done, done)
    try {
      enter(request, reply, route, caller, allowance)
    } catch (error) {
      return done(error as Error)
    }
    done()
  })

  async function ask(
    request: FastifyRequest,
    reply: FastifyReply,
    route: Route,
    recalled: Caller | undefined,
    spent: Allowance | undefined,
  ): Promise<undefined> {
    const caller = recalled ?? (await authenticate(request))
    if (caller === undefined) {
      await spendByAddress(byAddress, request, reply)
      throw unauthenticated()
    }
    if (!caller.mayComeFrom(request.ip)) {
      await spendByAddress(byAddress, request, reply)
      audit.note(entryOf(request, route, caller), { status: 403, resource_id: null })
      throw elsewhere()
    }
    enter(request, reply, route, caller, spent ?? (await limiter.spend(caller.keyId)))
    if (!isNoted(route)) return
    request.auditId = await audit.begin(entryOf(request, route, caller))
    if (request.auditId === undefined) throw unauthenticated()
  }

  /** Whether what is asked is written down before it takes effect. */
  const isNoted = ({ method }: Route): boolean => method !== 'GET' || audit.reads

  /** @throws ProblemError */
  function enter(request: FastifyRequest, reply: FastifyReply, route: Route, caller: Caller, allowance: Allowance): void {
    request.caller = caller
    audit.used(caller.keyId)
    tellLimit(allowance, reply)
    if (admission.isFullFor(caller.account)) {
      onShed()
      throw new ProblemError('service-unavailable', 'as many requests of this account are being served as may be: ask again', {
        retryAfterSeconds: 1,
      })
    }
    admission.assign(reply.raw, caller.account)
    try {
      checkPermission(request, route, caller)
    } catch (error) {
      audit.note(entryOf(request, route, caller), { status: 403, resource_id: null })
      throw error
    }
    request.permitAgain = async () => {
      request.caller = await authenticate(request)
      if (request.caller === undefined) throw unauthenticated()
      checkPermission(request, route, request.caller)
      await checkNetwork(request)
    }
    checkIdempotencyKey(request, route)
  }

  app.addHook('onResponse', ({ auditId, resourceId }, reply, done) => {
    if (auditId !== undefined) audit.settle({ id: auditId, status: reply.statusCode, resource_id: resourceId ?? null })
    done()
  })
  app.addHook('onClose', () => audit.flush())

  const authenticate = (request: FastifyRequest): Promise<Caller | undefined> => apiKeys.authenticate(keyOf(request))
}

/** The API key's text; empty where there is none. */
export const keyOf = ({ headers }: Pick<FastifyRequest, 'headers'>): string =>
  /^Bearer +([^ ]+) *$/i.exec(headers.authorization ?? '')?.[1] ?? ''

const entryOf = (request: FastifyRequest, route: Route, { account, keyId }: Caller): AuditEntry => ({
  ...{ account, keyId, operation: operationOf(route), method: route.method, path: request.url.split('?', 1)[0] ?? '/' },
  // Only one that is well-formed: what isn't, is no key.
  idempotencyKey: idempotencyKeyPattern.test(idempotencyKeyOf(request) ?? '') ? idempotencyKeyOf(request) : undefined,
  requestId: request.id,
  address: addressOf(request),
})

/** Of a connection that is gone, Node tells none. */
const addressOf = ({ ip }: { readonly ip: string | undefined }): string | undefined => ip

/** @throws ProblemError `forbidden` */
function checkPermission(request: FastifyRequest, route: Route, caller: Caller): void {
  if (!caller.mayComeFrom(request.ip)) throw elsewhere()
  if (!caller.scopes.includes(route.scope as Scope)) {
    throw new ProblemError('forbidden', `this needs an API key with the scope ${route.scope}`, {
      headers: { 'www-authenticate': `${challenge['www-authenticate']}, error="insufficient_scope", scope="${route.scope}"` },
    })
  }
  const operation = operationOf(route)
  if (caller.operations?.includes(operation) === false) throw new ProblemError('forbidden', `this API key may not do ${operation}`)
}

/** Tells the client where it stands. @throws ProblemError `rate-limited` */
function tellLimit({ allowed, limit, remaining, resetMs }: Allowance, reply: FastifyReply): void {
  const reset = Math.max(1, Math.ceil(resetMs / 1000))
  reply.headers({ 'ratelimit-limit': String(limit), 'ratelimit-remaining': String(remaining), 'ratelimit-reset': String(reset) })
  if (!allowed) throw rateLimited(limit, reset)
}

const rateLimited = (limit: number, reset: number) =>
  new ProblemError('rate-limited', `more than ${limit} requests: go on in ${reset} s`, { retryAfterSeconds: reset })

/** @throws ProblemError `rate-limited` */
async function spendByAddress(limiter: ReturnType<FastifyInstance['createRateLimit']>, request: FastifyRequest, reply: FastifyReply) {
  const result = await limiter(request)
  if (result.isAllowed) return
  const [limit, remaining, resetMs] = [result.max, result.remaining, result.ttlInSeconds * 1000]
  tellLimit({ allowed: !result.isExceeded, limit, remaining, resetMs }, reply)
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
