import { StakingApiError, type StakingApiErrorFields } from './client-error.ts'
import { parseJson } from './json.ts'
import { isProblemCode, type ProblemCode, problems, receivedProblem } from './problems.ts'
import { parseRetryAfter, type RetryGate } from './retry-after.ts'
import type { OperationId, Route } from './routes.ts'
import type { HttpAnswer } from './transport.ts'
import { appliedWaitMs } from './wait.ts'

/** A success. */
export interface Answer<T> {
  readonly body: T
  readonly status: number
  /** The wait that the service asked for (202), in ms. */
  readonly retryAfterMs: number | undefined
  /** True when this is the stored answer to an earlier request with the same Idempotency-Key. */
  readonly replayed: boolean
  readonly requestId: string | undefined
  /** Names this state of the resource, where the service lets one wait for another (`StakingClient.untilChanged`). */
  readonly state: string | undefined
}

/**
 * Reads an answer by the route: its success, or a {@link StakingApiError}. Closes the gate when the service asks all to wait.
 * Of the body nothing reaches an error but codes of the contract and ids.
 */
export function readAnswer(
  operation: OperationId,
  route: Route,
  answer: HttpAnswer,
  { gate, now }: { gate: RetryGate; now: Date },
): Answer<unknown> {
  const { status } = answer
  const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], now)
  const requestId = idLike(answer.headers['x-request-id'])
  const changes = route.method !== 'GET'
  const fail = (message: string, fields: Omit<StakingApiErrorFields, 'status' | 'retryAfterMs' | 'requestId'>): never => {
    throw new StakingApiError(`${operation}: ${message}`, { status, retryAfterMs, requestId, ...fields })
  }

  const schema = route.responses[status] ?? (status >= 200 && status < 300 ? successOf(route) : undefined)
  if (schema !== undefined) {
    const json = jsonOf(answer, 'application/json')
    if (json === undefined) return fail(`the answer (${status}) is not JSON`, { kind: 'invalid-response', outcomeUnknown: changes })
    const result = schema.safeParse(json.value)
    if (result.success)
      return {
        ...{ body: result.data, status, retryAfterMs, requestId, state: stateOf(route, answer) },
        replayed: answer.headers['idempotency-replayed'] === 'true',
      }
    const places = [...new Set(result.error.issues.map((issue) => `/${issue.path.join('/')}`))].slice(0, 20).join(', ')
    return fail(`the answer (${status}) is not what the contract says at ${places}`, { kind: 'invalid-response', outcomeUnknown: changes })
  }
  if (status < 400) return fail(`the answer has the unexpected status ${status}`, { kind: 'invalid-response', outcomeUnknown: changes })

  const problem = problemOf(answer)
  if (retryAfterMs !== undefined && (status === 429 || status === 503)) {
    const scope = gateScope(route, problem?.code)
    if (scope !== undefined) gate.close(scope, retryAfterMs)
  }
  if (problem === undefined) {
    // A proxy's page instead of the service's answer; a refusal (4xx) is one all the same.
    const refused = status === 401 || status === 403
    const kind = refused || status === 429 || status === 503 ? 'problem' : 'invalid-response'
    return fail(refused ? `refused with ${status}` : `the answer (${status}) is no problem of the contract`, {
      kind,
      ...(refused ? { code: status === 401 ? 'unauthenticated' : 'forbidden' } : {}),
      outcomeUnknown: changes && (status >= 500 || status === 408),
    })
  }
  const { code, existingId, rules } = problem
  return fail(`refused with ${status}${code === undefined ? '' : ` ${code}`}`, {
    kind: 'problem',
    code,
    existingId,
    ...(rules.length === 0 ? {} : { rules }),
    outcomeUnknown: changes && maybeDone(status, code),
  })
}

/** A service that knows of waits says so to who asks for one of no time. */
function stateOf(route: Route, { headers }: HttpAnswer): string | undefined {
  const { etag } = headers
  if (route.waits !== true || appliedWaitMs(headers['preference-applied']) === undefined) return undefined
  return typeof etag === 'string' && /^(W\/)?"[!#-~]{1,256}"$/.test(etag) ? etag : undefined
}

/** All successes of a route have one body: a service that creates with 200 in place of 201 says the same. */
const successOf = (route: Route) => Object.values(route.responses)[0]

/**
 * What a wait is about: nothing but one transaction (no gate), one chain's stakes or validators, or all of this credential. Those two wait apart: a
 * beacon chain that is away must not keep deposits from being reported.
 * A 503 without a code of ours comes from an overloaded service or the proxy before it.
 */
function gateScope(route: Route, code: ProblemCode | undefined): string | undefined {
  if (code === 'transaction-not-visible') return undefined
  if (code === 'chain-unavailable') return route.path.split('/').slice(0, 4).join('/')
  return ''
}

/** The service answers these before any effect; `idempotency-key-in-progress` means that an earlier call is still at it. */
function maybeDone(status: number, code: ProblemCode | undefined): boolean {
  if (code === 'idempotency-key-in-progress') return true
  if (code === 'chain-unavailable' || code === 'transaction-not-visible' || code === 'request-timeout') return false
  return status >= 500 || status === 408
}

function problemOf(
  answer: HttpAnswer,
): { code: ProblemCode | undefined; existingId: string | undefined; rules: readonly string[] } | undefined {
  const json = jsonOf(answer, 'application/problem+json') ?? jsonOf(answer, 'application/json')
  if (json === undefined) return undefined
  const { data } = receivedProblem.safeParse(json.value)
  if (data === undefined) return undefined
  return {
    // A code that contradicts the status is not believed.
    code: isProblemCode(data.code) && problems[data.code].status === answer.status ? data.code : undefined,
    existingId: data.existingId !== undefined && /^[0-9a-f]{32}$/.test(data.existingId) ? data.existingId : undefined,
    rules: (data.errors ?? [])
      .map(({ code }) => code)
      .filter((code) => /^[a-z][a-z0-9-]{0,63}$/.test(code))
      .slice(0, 8),
  }
}

function jsonOf({ headers, text }: HttpAnswer, mediaType: string): { value: unknown } | undefined {
  const contentType = headers['content-type']
  if (typeof contentType !== 'string' || contentType.split(';')[0]?.trim().toLowerCase() !== mediaType) return undefined
  try {
    return { value: parseJson(text) }
  } catch {
    return undefined
  }
}

const idLike = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(header) ? header : undefined
