import type { ProblemCode } from './problems.ts'

/** What a problem means, and what whoever gets it does. */
export interface ProblemHelp {
  readonly means: string
  readonly todo: string
}

/** For the page of each problem, to which its `type` leads, and for the reference. Plain text; `code` in backticks. */
export const problemHelp: Readonly<Record<ProblemCode, ProblemHelp>> = {
  'invalid-request': {
    means: 'The request does not have the shape that the API describes. Nothing was done.',
    todo: 'Look at `errors`: each entry names the place (`pointer`) and what is wrong there. Mend the request and send it again; the same Idempotency-Key may be used.',
  },
  'idempotency-key-missing': {
    means: 'This operation creates something, and the header Idempotency-Key is missing. Nothing was done.',
    todo: 'Make one key for each thing that you want to create, keep it, and send the same key whenever you repeat the request.',
  },
  'idempotency-key-invalid': {
    means: 'The header Idempotency-Key is empty, longer than 255 characters, not printable ASCII, or sent more than once.',
    todo: 'Send one key of 1 to 255 printable ASCII characters.',
  },
  unauthenticated: {
    means: 'The request has no API key, or one that is unknown, revoked or expired.',
    todo: 'Send `Authorization: Bearer KEY`. Ask the operator of the service for a key if yours is no longer good.',
  },
  forbidden: {
    means:
      'The API key is good, but may not do this: it lacks the scope or the operation, is for other networks, or is not to be used from this address.',
    todo: 'Use another key, or ask the operator of the service to permit it.',
  },
  'not-found': {
    means: 'There is no such resource, or it belongs to another account.',
    todo: 'Check the id, and that the API key belongs to the account that created the resource.',
  },
  'method-not-allowed': {
    means: 'The path exists, and does not take this method.',
    todo: 'The header `Allow` names the methods that it takes.',
  },
  'idempotency-key-reused': {
    means: 'The Idempotency-Key belongs to an earlier request with another method, path or body. Nothing was done.',
    todo: 'Repeat the earlier request as it was, or use a new key for what is new.',
  },
  'idempotency-key-in-progress': {
    means: 'A request with this Idempotency-Key is still being worked on.',
    todo: 'Send the same request with the same key again after `Retry-After`: you get the answer of the first one.',
  },
  'reference-exists': {
    means: 'Another resource of the account has this external reference. Nothing was created.',
    todo: '`existingId` names the resource that has it: read that one. A reference is free again when its resource is cancelled or has failed.',
  },
  'invalid-state': {
    means: 'The resource, or what belongs to it, is in a state that does not allow this. Nothing was done.',
    todo: 'Read the resource; `detail` says what stands in the way.',
  },
  'already-submitted': {
    means: 'Another transaction was reported before, and it may still land.',
    todo: 'Report a transaction with the same sender and nonce (a replacement of the fee), or wait until the earlier one is final. Do not pay twice.',
  },
  'challenge-expired': {
    means: 'The challenge is older than five minutes, or was replaced by a newer one.',
    todo: 'Get a new challenge, and sign that.',
  },
  'payload-too-large': {
    means: 'The body is larger than the service takes.',
    todo: 'Send no more than the operation describes.',
  },
  'unsupported-media-type': {
    means: 'The body is not sent as JSON in UTF-8.',
    todo: 'Send `Content-Type: application/json`, and the body in UTF-8.',
  },
  'validation-failed': {
    means: 'The request is well-formed, and a rule of the chain forbids it. Nothing was done.',
    todo: 'Look at `errors`: each entry names the rule that does not hold, and its numbers. The same request may be right later.',
  },
  'request-timeout': {
    means: 'The headers or the body did not arrive in time.',
    todo: 'Send the request again, with the same Idempotency-Key.',
  },
  'rate-limited': {
    means: 'The API key has used up its requests of this window, or an address had too many refused.',
    todo: 'Go on after `Retry-After`. The headers `RateLimit-*` tell where you stand; a long poll (`?wait=30s`) or webhooks need fewer requests.',
  },
  'headers-too-large': {
    means: 'The headers are larger than the service takes.',
    todo: 'Send fewer or shorter headers.',
  },
  'internal-error': {
    means: 'The service met something that it did not expect. What became of the request is not known.',
    todo: 'Send the same request with the same Idempotency-Key again: it takes effect once. If it goes on, tell the operator of the service the `requestId`.',
  },
  'service-unavailable': {
    means: 'The database is away, too much is to be done at once, or this instance is about to end.',
    todo: 'Send the same request with the same Idempotency-Key again after `Retry-After`.',
  },
  'chain-unavailable': {
    means: "The service's nodes of the network do not answer as they should. Nothing was created.",
    todo: 'Send the same request with the same Idempotency-Key again after `Retry-After`.',
  },
  'transaction-not-visible': {
    means: 'The nodes do not show the reported transaction yet.',
    todo: 'Report it again after `Retry-After`. That it is not visible does not prove that it will not land.',
  },
}
