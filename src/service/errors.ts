import type { BeaconError, BeaconErrorCode } from '../chains/ethereum/beacon.ts'
import type { ChainError } from '../chains/ethereum/chain.ts'
import { NotSwitchedOnError } from '../chains/ethereum/requests.ts'
import type { ProblemCode, ProblemDetail } from '../contract/problems.ts'

/** An answer that is a problem of the contract. Its texts are for the client: no secret, no address of a node, no inner workings. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly code: ProblemCode
  readonly errors: readonly ProblemDetail[] | undefined
  readonly existingId: string | undefined
  readonly retryAfterSeconds: number | undefined
  readonly headers: Readonly<Record<string, string>>
  constructor(
    code: ProblemCode,
    detail: string,
    more: {
      errors?: readonly ProblemDetail[]
      existingId?: string
      retryAfterSeconds?: number
      headers?: Readonly<Record<string, string>>
    } = {},
  ) {
    super(detail)
    this.code = code
    this.errors = more.errors
    this.existingId = more.existingId
    this.retryAfterSeconds = more.retryAfterSeconds
    this.headers = more.headers ?? {}
  }
}

/** A rule of the chain that the request breaks: 422 with each rule. */
export const validationFailed = (errors: readonly ProblemDetail[]): ProblemError =>
  new ProblemError('validation-failed', errors.map((error) => error.detail).join('; '), { errors })

const defaultRetrySeconds = 5

/** Whatever keeps the chain from answering is the same to a client: nothing was done, ask again later. */
export const chainUnavailable = (network: string, error: ChainError): ProblemError =>
  new ProblemError(
    'chain-unavailable',
    error.code === 'history-syncing'
      ? `the deposit history of ${network} is still being read`
      : error instanceof NotSwitchedOnError
        ? `${network}: ${error.message}`
        : `the service's node for ${network} does not answer as it should (${error.code})`,
    { retryAfterSeconds: error.retryAfterMs === undefined ? defaultRetrySeconds : Math.max(1, Math.ceil(error.retryAfterMs / 1000)) },
  )

const beaconTexts: Readonly<Record<BeaconErrorCode, string>> = {
  unavailable: 'does not answer as it should',
  'access-denied': 'does not let the service in',
  behind: 'is behind the head of the chain',
  'wrong-network': 'serves another network',
  'state-not-kept': 'does not have the state that is needed',
  disagreement: 'and another one have different states',
}

/** The same for the beacon chain: nothing was done, ask again later. */
export const beaconUnavailable = (network: string, error: BeaconError): ProblemError =>
  new ProblemError('chain-unavailable', `the service's beacon node for ${network} ${beaconTexts[error.code]} (${error.code})`, {
    retryAfterSeconds: error.retryAfterMs === undefined ? defaultRetrySeconds : Math.max(1, Math.ceil(error.retryAfterMs / 1000)),
  })
