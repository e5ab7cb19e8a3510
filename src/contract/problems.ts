import { z } from 'zod'

/**
 * Every error code of the service, with its HTTP status, its fixed title, and whether the answer carries `Retry-After`.
 * The service builds its problems (RFC 9457) from this table, and the OpenAPI document lists them from it.
 */
export const problems = {
  /** The request does not have the shape that the contract gives: `errors` names each place. */
  'invalid-request': { status: 400, title: 'The request is not valid' },
  'idempotency-key-missing': { status: 400, title: 'The header Idempotency-Key is required' },
  /** Empty, longer than 255 characters, or not printable. */
  'idempotency-key-invalid': { status: 400, title: 'The header Idempotency-Key is not valid' },
  unauthenticated: { status: 401, title: 'A valid API key is required' },
  /** The API key lacks the scope. */
  forbidden: { status: 403, title: 'The API key does not permit this' },
  'not-found': { status: 404, title: 'Not found' },
  'method-not-allowed': { status: 405, title: 'The method is not allowed here' },
  'idempotency-key-reused': { status: 409, title: 'The Idempotency-Key was used for a different request' },
  'idempotency-key-in-progress': { status: 409, title: 'A request with this Idempotency-Key is still running', retryAfter: true },
  /** `existingId` names the resource that holds the reference. */
  'reference-exists': { status: 409, title: 'The external reference is in use' },
  'invalid-state': { status: 409, title: 'The state of the resource does not allow this' },
  'already-submitted': { status: 409, title: 'Another transaction was submitted already' },
  'challenge-expired': { status: 410, title: 'The challenge has expired' },
  'payload-too-large': { status: 413, title: 'The body is too large' },
  'unsupported-media-type': { status: 415, title: 'The body must be application/json' },
  /** The request is well-formed, and a rule of the chain forbids it: `errors` names the rule. */
  'validation-failed': { status: 422, title: 'A rule of the chain forbids this' },
  /** Headers or body came too slowly. */
  'request-timeout': { status: 408, title: 'The request came too slowly' },
  'rate-limited': { status: 429, title: 'Too many requests', retryAfter: true },
  'headers-too-large': { status: 431, title: 'The headers are too large' },
  'internal-error': { status: 500, title: 'Internal error' },
  /** The database is away, too much is to be done at once, or this instance is about to end. Another instance, or the same one soon, will serve the request. */
  'service-unavailable': { status: 503, title: 'The service cannot answer now', retryAfter: true },
  'chain-unavailable': { status: 503, title: 'The chain cannot be reached now', retryAfter: true },
  'transaction-not-visible': { status: 503, title: 'The chain does not show the transaction yet', retryAfter: true },
} as const satisfies Record<string, { status: number; title: string; retryAfter?: true }>

export type ProblemCode = keyof typeof problems
export const problemCodes = Object.keys(problems) as [ProblemCode, ...ProblemCode[]]

export const problemMediaType = 'application/problem+json'

/** The `type` of a problem: a URI reference that stays the same for good, relative to the service. */
export const problemType = (code: ProblemCode): string => `/problems/${code}`

export const isProblemCode = (code: string): code is ProblemCode => Object.hasOwn(problems, code)

/** One thing that is wrong with a request. */
export const problemDetail = z.object({
  /** JSON pointer (RFC 6901) into the request, after its part: `/body/amountEth`, `/params/stakeId`, `/headers/idempotency-key`. */
  pointer: z.string().max(1024),
  /** A code of the rule that failed, in kebab case. */
  code: z.string().max(128),
  detail: z.string().max(1024),
})
export type ProblemDetail = z.output<typeof problemDetail>

const shape = {
  type: z.string().max(1024),
  title: z.string().max(1024),
  status: z.int().min(400).max(599),
  detail: z.string().max(4096).optional(),
  /** The path of the request. */
  instance: z.string().max(2048).optional(),
  requestId: z.string().max(128).optional(),
  errors: z.array(problemDetail).max(256).optional(),
  /** With `reference-exists`: the `stakeId` or `requestId` that holds the reference. */
  existingId: z.string().max(128).optional(),
}

/** A problem as the service writes it. */
export const problem = z.object({ ...shape, code: z.enum(problemCodes) }).meta({ id: 'Problem' })
export type Problem = z.output<typeof problem>

/** A problem as the client reads it: a code that it doesn't know is no reason to lose the status. */
export const receivedProblem = z.object({
  ...shape,
  type: shape.type.optional(),
  title: shape.title.optional(),
  status: z.int().optional(),
  code: z.string().max(128),
})

/** The body of a problem. Nothing of `given` may hold a secret or a stack trace: clients see it. */
export const makeProblem = (
  code: ProblemCode,
  given: { detail?: string; instance?: string; requestId?: string; errors?: readonly ProblemDetail[]; existingId?: string } = {},
): Problem =>
  ({
    type: problemType(code),
    title: problems[code].title,
    status: problems[code].status,
    code,
    ...given,
    ...(given.errors === undefined ? {} : { errors: [...given.errors] }),
  }) as Problem
