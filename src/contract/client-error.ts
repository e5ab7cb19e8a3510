import type { ProblemCode } from './problems.ts'

export type StakingApiErrorKind =
  /** The service refused, by a problem (RFC 9457) or a plain status. Also: nothing was sent, since Retry-After or a check forbade it. */
  | 'problem'
  /** No whole answer came in time. */
  | 'timeout'
  /** No answer came: refused, reset, DNS, TLS. */
  | 'network'
  /** An answer that is not what the contract says: HTML, no JSON, another shape, too large, a redirect. */
  | 'invalid-response'

export interface StakingApiErrorFields {
  readonly kind: StakingApiErrorKind
  /** The problem's code, when it is one of the contract's. */
  readonly code?: ProblemCode | undefined
  readonly status?: number | undefined
  /** When the service asked to wait: so long. */
  readonly retryAfterMs?: number | undefined
  readonly requestId?: string | undefined
  /** With `reference-exists`: the stake or request that holds the reference. */
  readonly existingId?: string | undefined
  /** The codes of the rules that failed (kebab case), with `validation-failed` and `invalid-request`. */
  readonly rules?: readonly string[] | undefined
  /** True when the service may have done what was asked: look before acting again, or repeat with the same Idempotency-Key. */
  readonly outcomeUnknown: boolean
}

/** What went wrong with a call. The message never holds text of the answer, a URL or the API key. */
export class StakingApiError extends Error implements StakingApiErrorFields {
  override readonly name = 'StakingApiError'
  readonly kind: StakingApiErrorKind
  readonly code: ProblemCode | undefined
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  readonly requestId: string | undefined
  readonly existingId: string | undefined
  readonly rules: readonly string[] | undefined
  readonly outcomeUnknown: boolean

  constructor(message: string, fields: StakingApiErrorFields) {
    super(message)
    this.kind = fields.kind
    this.code = fields.code
    this.status = fields.status
    this.retryAfterMs = fields.retryAfterMs
    this.requestId = fields.requestId
    this.existingId = fields.existingId
    this.rules = fields.rules
    this.outcomeUnknown = fields.outcomeUnknown
  }
}

/** Whether the staking API has nothing of what it was asked for (404). */
export const isGone = (error: unknown): boolean => error instanceof StakingApiError && error.status === 404

/** For a `catch`: the staking API has nothing under an id, which is gone (404), or no id at all (400, or not even sent), as of a typing mistake. @throws any other error */
export function noneOf(error: unknown): undefined {
  const isNoId = error instanceof StakingApiError && (error.status === 400 || error.code === 'invalid-request')
  if (!isGone(error) && !isNoId) throw error
}
