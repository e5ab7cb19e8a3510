import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { fastifyUrl, type Route, routes } from '../../contract/routes.ts'
import type { Caller } from '../api-keys.ts'
import { ProblemError } from '../errors.ts'
import { fingerprint } from '../fingerprint.ts'
import type { Answer, Idempotency, Idempotent } from '../idempotency.ts'
import { idempotencyKeyOf } from './auth.ts'
import { entityTag, namesTag } from './entity-tags.ts'
import type { NetworkCheck } from './network-limits.ts'
import { pathOf, sendReplay } from './problems.ts'
import { sendChanged } from './send-changed.ts'
import type { Written, WrittenAnswers } from './written-answers.ts'

type Output<T> = T extends z.ZodType ? z.output<T> : undefined
type Responses<R extends Route> = R['responses'][keyof R['responses']]

/** What a handler gets: the parts of the request as the contract gives them, decoded. */
export interface Input<R extends Route> {
  readonly caller: Caller
  readonly params: R extends { params: infer P } ? Output<P> : undefined
  readonly query: R extends { query: infer Q } ? Output<Q> : undefined
  readonly body: R extends { body: infer B } ? Output<B> : undefined
  /** Present when the client sent an Idempotency-Key. */
  readonly idempotent: Idempotent | undefined
  /** The host that the client asked for: what it believes to talk to. */
  readonly host: string
  /** Aborted when the request takes too long. */
  readonly signal: AbortSignal
}

/** The answer as an object of the contract, to be written by its schema; or as text that was written before. */
export type Handled<R extends Route> =
  | { readonly status: number; readonly body: Output<Responses<R>>; readonly retryAfterSeconds?: number }
  | (Answer & { readonly replayed: boolean })
  | Written

/** Less than the lease of an Idempotency-Key: who still works holds it. */
const requestTimeoutMs = 20_000

/** The parts of a request. The time-out begins when it is first asked for: most who only read need none. */
class RequestInput {
  readonly caller: Caller
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly idempotent: Idempotent | undefined
  readonly host: string
  #signal: AbortSignal | undefined

  constructor({ params, query, body, host }: FastifyRequest, caller: Caller, idempotent: Idempotent | undefined) {
    // Fastify has validated and decoded the parts by the route's own schemas.
    this.params = params
    this.query = query
    this.body = body
    this.host = host
    this.caller = caller
    this.idempotent = idempotent
  }

  get signal(): AbortSignal {
    this.#signal ??= AbortSignal.timeout(requestTimeoutMs)
    return this.#signal
  }
}

export interface ServeOptions {
  /** What this may change: its answers elsewhere are to show that, once who asks is told. */
  readonly changes?: {
    readonly answers: Pick<WrittenAnswers, 'forget' | 'settledMs'>
    idOf(params: Readonly<Record<string, string>>): string
  }
}

/** Serves one operation of the contract. */
export function serve<R extends Route>(
  app: FastifyInstance,
  route: R,
  handle: (input: Input<R>) => Promise<Handled<R>>,
  { changes }: ServeOptions = {},
): void {
  app.route({
    method: route.method,
    url: fastifyUrl(route.path),
    config: { contract: route },
    schema: {
      ...(route.params === undefined ? {} : { params: route.params }),
      ...(route.query === undefined ? {} : { querystring: route.query }),
      ...(route.body === undefined ? {} : { body: route.body }),
      response: route.responses,
    },
    handler: async (request, reply) => {
      const { caller } = request
      if (caller === undefined) throw new ProblemError('unauthenticated', 'send a valid API key')
      const idempotent = idempotentOf(request, route, caller)
      const look = () => handle(new RequestInput(request, caller, idempotent) as Input<R>)
      if (route.waits === true) return sendChanged(request, reply, look)
      const handled = await look()
      reply.status(handled.status)
      if ('replayed' in handled) {
        if (handled.replayed) return sendReplay(reply, handled)
        return reply.type('application/json; charset=utf-8').send(handled.body)
      }
      if ('retryAfterSeconds' in handled && handled.retryAfterSeconds !== undefined)
        reply.header('retry-after', String(handled.retryAfterSeconds))
      return reply.send(handled.body)
    },
    onSend: (request, reply, payload, done) => {
      if (typeof payload !== 'string') return done(null, payload)
      const isWanted = reply.statusCode === 201 || (reply.statusCode < 300 && request.auditId !== undefined)
      if (isWanted) request.resourceId = /^\{"(?:stakeId|requestId|txId)":"([0-9a-f]{32})"/.exec(payload)?.[1]
      if (reply.statusCode === 201) locate(request, reply, route)
      const sent = route.method === 'GET' && reply.statusCode === 200 ? tagged(request, reply, payload) : payload
      if (changes === undefined) return done(null, sent)
      // Whatever the answer is: a refusal too may tell of a change, and a replay does.
      changes.answers.forget(changes.idOf(request.params as Record<string, string>))
      if (changes.answers.settledMs === 0) done(null, sent)
      else setTimeout(() => done(null, sent), changes.answers.settledMs)
    },
  })
}

/** Where what was created can be read, if it can be read by itself. */
function locate(request: FastifyRequest, reply: FastifyReply, { path }: Route): void {
  if (!readable.has(path)) return
  if (request.resourceId !== undefined) reply.header('location', `${pathOf(request)}/${request.resourceId}`)
}
const readable: ReadonlySet<string> = new Set(
  [routes.createEthereumStake, routes.createExitRequest, routes.createWithdrawalRequest, routes.createSolanaStake].map(({ path }) => path),
)

/** The answer under a tag of its content, or 304 for who has it already (RFC 9110, 13.1.2): it saves the way, not the work. */
function tagged(request: FastifyRequest, reply: FastifyReply, payload: string): string {
  const tag = request.entityTag ?? entityTag(payload)
  reply.header('etag', tag)
  if (!namesTag(request.headers['if-none-match'], tag)) return payload
  reply.status(304).removeHeader('content-type')
  return ''
}

function idempotentOf(request: FastifyRequest, route: Route, caller: Caller): Idempotent | undefined {
  const key = idempotencyKeyOf(request)
  if (key === undefined || route.idempotencyKey === 'none') return undefined
  return { account: caller.account, key, fingerprint: fingerprint(route.method, pathOf(request), request.givenBody) }
}

/** Whether a request has its answer already. @throws ProblemError as `Idempotency.stored` does */
export async function isAnswered(idempotency: Pick<Idempotency, 'stored'>, request: FastifyRequest): Promise<boolean> {
  const route = request.routeOptions.config.contract
  const { caller } = request
  const idempotent = route === undefined || caller === undefined ? undefined : idempotentOf(request, route, caller)
  return idempotent !== undefined && (await idempotency.stored(idempotent)) !== undefined
}

/**
 * What is stored under the Idempotency-Key of a request that is not valid: the key decides first. The same request replays though it isn't taken any more;
 * another one under the same key is a conflict, however malformed it is.
 */
export function createReplays(
  idempotency: Idempotency,
  checkNetwork: NetworkCheck,
): (request: FastifyRequest) => Promise<Answer | undefined> {
  return async (request) => {
    const route = request.routeOptions.config.contract
    const { caller, givenBody } = request
    const idempotent = route === undefined || caller === undefined ? undefined : idempotentOf(request, route, caller)
    if (idempotent === undefined) return undefined
    await checkNetwork(request)
    // Without a body that could be read there is nothing to compare, and no request like that was ever served.
    return idempotency.stored(givenBody === undefined ? { ...idempotent, fingerprint: undefined } : idempotent)
  }
}

/** Writes an answer as the contract gives it, to be stored and sent. */
export const answer = <R extends Route, S extends keyof R['responses'] & number>(
  route: R,
  status: S,
  body: Output<R['responses'][S]>,
): Answer => ({ status, body: JSON.stringify(encoded(route, status, body)) })

/** What an answer's JSON says. */
export function encoded<R extends Route, S extends keyof R['responses'] & number>(
  route: R,
  status: S,
  body: Output<R['responses'][S]>,
): Encoded<R['responses'][S]> {
  const schema = (route.responses as Readonly<Record<number, z.ZodType>>)[status]
  if (schema === undefined) throw new Error(`${route.method} ${route.path} has no answer ${status}`)
  return z.encode(schema, body as z.output<typeof schema>) as Encoded<R['responses'][S]>
}
type Encoded<T> = T extends z.ZodType ? z.input<T> : undefined
