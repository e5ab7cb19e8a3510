/** The body of a refusal (meta/v1 Status). */
export interface KubeStatus {
  readonly kind?: string
  readonly message?: string
  readonly reason?: string
  readonly code?: number
  readonly details?: {
    readonly retryAfterSeconds?: number
    readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[]
  }
}

/** The API server answered, with a refusal. */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  /** The HTTP status. */
  readonly status: number
  /** The Status' machine-readable reason (`Conflict`, `AlreadyExists`, `Expired`, `Invalid` …); '' when the answer had none. */
  readonly reason: string
  /** When the server asks to wait, in ms. */
  readonly retryAfterMs: number | undefined

  constructor(status: number, reason: string, message: string, retryAfterMs?: number) {
    super(message)
    this.status = status
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}

/** Refused, unreachable, reset, or no answer in time. What the request did, if it was sent, is unknown. */
export class KubeTransportError extends Error {
  override readonly name = 'KubeTransportError'
  /** Such as ECONNREFUSED, ECONNRESET, UND_ERR_SOCKET, TIMEOUT. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Makes the error of an answer with a status of 400 or more. A body that is no Status (a proxy's page) is not quoted. */
export function kubeError(httpStatus: number, body: unknown, request: string, retryAfter?: string): KubeError {
  const status: KubeStatus = typeof body === 'object' && body !== null && (body as KubeStatus).kind === 'Status' ? body : {}
  const seconds = status.details?.retryAfterSeconds ?? (retryAfter === undefined ? Number.NaN : Number(retryAfter))
  return new KubeError(
    status.code ?? httpStatus,
    status.reason ?? '',
    `${request}: ${status.message ?? `the API server answered ${httpStatus}`}`,
    Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined,
  )
}

/** The server answers with more than is taken. The answer was 200, and what was asked for is done. */
export const answerTooLarge = (maxBytes: number): KubeError =>
  new KubeError(200, 'AnswerTooLarge', `the API server's answer is longer than the ${maxBytes} bytes that are taken`)

export const isAnswerTooLarge = (error: unknown): error is KubeError => error instanceof KubeError && error.reason === 'AnswerTooLarge'

const hasStatus =
  (status: number) =>
  (error: unknown): error is KubeError =>
    error instanceof KubeError && error.status === status

export const isUnauthorized = hasStatus(401)
export const isForbidden = hasStatus(403)
export const isNotFound = hasStatus(404)
/** 410: the resource version or continue token is older than what the server keeps. */
export const isGone = hasStatus(410)
export const isInvalid = hasStatus(422)
export const isTooManyRequests = hasStatus(429)
/** Somebody wrote first: re-read and decide again. */
export const isConflict = (error: unknown): error is KubeError =>
  error instanceof KubeError && error.status === 409 && error.reason !== 'AlreadyExists'
export const isAlreadyExists = (error: unknown): error is KubeError =>
  error instanceof KubeError && error.status === 409 && error.reason === 'AlreadyExists'
export const isTransportError = (error: unknown): error is KubeTransportError => error instanceof KubeTransportError
/** No answer in time: of the client's patience, or of the server's own (504). */
export const isTimeout = (error: unknown): boolean =>
  (isTransportError(error) && error.code === 'TIMEOUT') || (error instanceof KubeError && error.status === 504)
