import { z } from 'zod'
import type { ProblemCode } from './problems.ts'
import { auditPage, auditQuery } from './schemas/audit-log.ts'
import { hex, id } from './schemas/common.ts'
import {
  createExitRequestBody,
  createWithdrawalRequestBody,
  exitRequest,
  exitRequestPage,
  requestsQuery,
  withdrawalCapacity,
  withdrawalRequest,
  withdrawalRequestPage,
} from './schemas/ethereum-requests.ts'
import { createEthereumStakeBody, ethereumStake, ethereumStakePage, hashSubmissionBody, stakesQuery } from './schemas/ethereum-stake.ts'
import { networks } from './schemas/networks.ts'
import {
  challenge,
  createSolanaStakeBody,
  createStakeTransactionBody,
  createWithdrawalTransactionBody,
  emptyBody,
  signatureSubmissionBody,
  solanaStake,
  solanaStakePage,
  solanaTransaction,
  transactionOptions,
} from './schemas/solana.ts'
import { createWebhookEndpointBody, rotateWebhookSecretBody, webhookEndpoint, webhookEndpoints } from './schemas/webhooks.ts'
import { waitQuery } from './wait.ts'

export type Scope = 'read' | 'write'

/** One operation. The service's routes, the client's methods and the OpenAPI document are all made from it. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** With `{name}` for each parameter; `fastifyUrl` gives Fastify's form. */
  readonly path: `/${string}`
  readonly summary: string
  /** Beyond the staking service interface: clients must do without it. */
  readonly addition?: true
  readonly params?: z.ZodType<Record<string, string>, Record<string, string>>
  readonly query?: z.ZodType<Record<string, unknown>, Record<string, unknown>>
  readonly body?: z.ZodType
  /** The header Idempotency-Key: 1 to 255 characters. */
  readonly idempotencyKey: 'required' | 'optional' | 'none'
  /** Reads one resource, and waits for its change for whoever asks so (see `waitQuery`). */
  readonly waits?: true
  /** What the API key must permit; `none` needs no API key. */
  readonly scope: Scope | 'none'
  /** The body of each success by its status. All statuses of a route have the same body. */
  readonly responses: Readonly<Record<number, z.ZodType>>
  /** Statuses that carry `Retry-After` though they are a success. */
  readonly retryAfterOn?: readonly number[]
  /** Problems beyond those that any route may answer (see `problemsOf`). */
  readonly problems: readonly ProblemCode[]
}

const byStake = z.strictObject({ stakeId: id })
const byPubkey = z.strictObject({ pubkey: hex(48) })
const byRequest = z.strictObject({ pubkey: hex(48), requestId: id })
const byTransaction = z.strictObject({ stakeId: id, txId: id })
const byEndpoint = z.strictObject({ endpointId: id })

const route = <const R extends Route>(definition: R): R => definition

export const routes = {
  createEthereumStake: route({
    method: 'POST',
    path: '/v1/ethereum/stakes',
    summary: 'Create a single-validator stake and get its deposit data',
    body: createEthereumStakeBody,
    idempotencyKey: 'required',
    scope: 'write',
    responses: { 201: ethereumStake },
    problems: ['reference-exists', 'validation-failed', 'chain-unavailable'],
  }),
  listEthereumStakes: route({
    method: 'GET',
    path: '/v1/ethereum/stakes',
    summary: 'List the stakes of the account, the newest first',
    query: stakesQuery,
    addition: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: ethereumStakePage },
    problems: [],
  }),
  getEthereumStake: route({
    method: 'GET',
    path: '/v1/ethereum/stakes/{stakeId}',
    summary: 'Read a stake',
    params: byStake,
    query: waitQuery,
    waits: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: ethereumStake },
    problems: ['not-found'],
  }),
  submitEthereumStake: route({
    method: 'PUT',
    path: '/v1/ethereum/stakes/{stakeId}/submission',
    summary: 'Report the hash of the deposit transaction, before or after it is sent',
    params: byStake,
    body: hashSubmissionBody,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: ethereumStake },
    problems: [
      'not-found',
      'invalid-state',
      'reference-exists',
      'already-submitted',
      'validation-failed',
      'chain-unavailable',
      'transaction-not-visible',
    ],
  }),
  cancelEthereumStake: route({
    method: 'DELETE',
    path: '/v1/ethereum/stakes/{stakeId}',
    summary: 'Cancel a stake that was never paid, so that its external reference is free again',
    params: byStake,
    addition: true,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: ethereumStake },
    problems: ['not-found', 'invalid-state', 'chain-unavailable'],
  }),
  createExitRequest: route({
    method: 'POST',
    path: '/v1/ethereum/validators/{pubkey}/exit-requests',
    summary: 'Request the exit of a validator',
    params: byPubkey,
    body: createExitRequestBody,
    idempotencyKey: 'required',
    scope: 'write',
    responses: { 201: exitRequest },
    problems: ['not-found', 'reference-exists', 'validation-failed', 'chain-unavailable'],
  }),
  listExitRequests: route({
    method: 'GET',
    path: '/v1/ethereum/validators/{pubkey}/exit-requests',
    summary: 'List the exit requests of a validator, the newest first',
    params: byPubkey,
    query: requestsQuery,
    addition: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: exitRequestPage },
    problems: ['not-found'],
  }),
  getExitRequest: route({
    method: 'GET',
    path: '/v1/ethereum/validators/{pubkey}/exit-requests/{requestId}',
    summary: 'Read an exit request',
    params: byRequest,
    query: waitQuery,
    waits: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: exitRequest },
    problems: ['not-found'],
  }),
  submitExitRequest: route({
    method: 'PUT',
    path: '/v1/ethereum/validators/{pubkey}/exit-requests/{requestId}/submission',
    summary: 'Report the hash of the exit transaction, before or after it is sent',
    params: byRequest,
    body: hashSubmissionBody,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: exitRequest },
    problems: [
      'not-found',
      'reference-exists',
      'already-submitted',
      'invalid-state',
      'validation-failed',
      'chain-unavailable',
      'transaction-not-visible',
    ],
  }),
  cancelExitRequest: route({
    method: 'DELETE',
    path: '/v1/ethereum/validators/{pubkey}/exit-requests/{requestId}',
    summary: 'Cancel an exit request that is not submitted',
    params: byRequest,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: exitRequest },
    problems: ['not-found', 'invalid-state', 'chain-unavailable'],
  }),
  createWithdrawalRequest: route({
    method: 'POST',
    path: '/v1/ethereum/validators/{pubkey}/withdrawal-requests',
    summary: 'Request a partial withdrawal from a validator',
    params: byPubkey,
    body: createWithdrawalRequestBody,
    idempotencyKey: 'required',
    scope: 'write',
    responses: { 201: withdrawalRequest },
    problems: ['not-found', 'reference-exists', 'validation-failed', 'chain-unavailable'],
  }),
  listWithdrawalRequests: route({
    method: 'GET',
    path: '/v1/ethereum/validators/{pubkey}/withdrawal-requests',
    summary: 'List the withdrawal requests of a validator, the newest first',
    params: byPubkey,
    query: requestsQuery,
    addition: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: withdrawalRequestPage },
    problems: ['not-found'],
  }),
  getWithdrawalRequest: route({
    method: 'GET',
    path: '/v1/ethereum/validators/{pubkey}/withdrawal-requests/{requestId}',
    summary: 'Read a withdrawal request',
    params: byRequest,
    query: waitQuery,
    waits: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: withdrawalRequest },
    problems: ['not-found'],
  }),
  submitWithdrawalRequest: route({
    method: 'PUT',
    path: '/v1/ethereum/validators/{pubkey}/withdrawal-requests/{requestId}/submission',
    summary:
      'Report the hash of the withdrawal transaction, before or after it is sent; 202, and recorded, while the chain does not show it yet',
    params: byRequest,
    body: hashSubmissionBody,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: withdrawalRequest, 202: withdrawalRequest },
    retryAfterOn: [202],
    problems: [
      'not-found',
      'reference-exists',
      'already-submitted',
      'invalid-state',
      'validation-failed',
      'chain-unavailable',
      'transaction-not-visible',
    ],
  }),
  cancelWithdrawalRequest: route({
    method: 'DELETE',
    path: '/v1/ethereum/validators/{pubkey}/withdrawal-requests/{requestId}',
    summary:
      'Cancel a withdrawal request that is not submitted, so that its amount is available again; nothing must be sent for it afterwards',
    addition: true,
    params: byRequest,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: withdrawalRequest },
    problems: ['not-found', 'invalid-state', 'chain-unavailable'],
  }),
  getWithdrawalCapacity: route({
    method: 'GET',
    path: '/v1/ethereum/validators/{pubkey}/withdrawal-capacity',
    summary: 'Read the current eligibility and the available amount of a validator, for display',
    params: byPubkey,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: withdrawalCapacity },
    problems: ['not-found', 'chain-unavailable'],
  }),
  createSolanaStake: route({
    method: 'POST',
    path: '/v1/solana/stakes',
    summary: 'Create a stake and get the challenge for its withdraw authority',
    body: createSolanaStakeBody,
    idempotencyKey: 'required',
    scope: 'write',
    responses: { 201: solanaStake },
    problems: ['reference-exists', 'validation-failed', 'chain-unavailable'],
  }),
  listSolanaStakes: route({
    method: 'GET',
    path: '/v1/solana/stakes',
    summary: 'List the stakes of the account, the newest first',
    query: stakesQuery,
    addition: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: solanaStakePage },
    problems: ['chain-unavailable'],
  }),
  getSolanaStake: route({
    method: 'GET',
    path: '/v1/solana/stakes/{stakeId}',
    summary: 'Read a stake; its protocol status is computed from the chain',
    params: byStake,
    query: waitQuery,
    waits: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: solanaStake },
    problems: ['not-found', 'chain-unavailable'],
  }),
  cancelSolanaStake: route({
    method: 'DELETE',
    path: '/v1/solana/stakes/{stakeId}',
    summary:
      'Cancel a stake that was never paid, so that its external reference is free again; 409 with Retry-After while a transaction that was handed out may land',
    params: byStake,
    addition: true,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: solanaStake },
    problems: ['not-found', 'invalid-state', 'chain-unavailable'],
  }),
  renewSolanaChallenge: route({
    method: 'PUT',
    path: '/v1/solana/stakes/{stakeId}/stake-transaction-challenge',
    summary: 'Get a new challenge; the older one is void',
    params: byStake,
    body: emptyBody,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: challenge },
    problems: ['not-found', 'invalid-state'],
  }),
  createStakeTransaction: route({
    method: 'POST',
    path: '/v1/solana/stakes/{stakeId}/stake-transactions',
    summary: 'Get the unsigned stake transaction for a signed challenge',
    params: byStake,
    body: createStakeTransactionBody,
    idempotencyKey: 'required',
    scope: 'write',
    responses: { 201: solanaTransaction },
    problems: ['not-found', 'invalid-state', 'challenge-expired', 'validation-failed', 'chain-unavailable'],
  }),
  createDeactivationTransaction: route({
    method: 'POST',
    path: '/v1/solana/stakes/{stakeId}/deactivation-transactions',
    summary: 'Get the unsigned deactivation transaction',
    params: byStake,
    body: transactionOptions,
    idempotencyKey: 'required',
    scope: 'write',
    responses: { 201: solanaTransaction },
    problems: ['not-found', 'invalid-state', 'validation-failed', 'chain-unavailable'],
  }),
  createWithdrawalTransaction: route({
    method: 'POST',
    path: '/v1/solana/stakes/{stakeId}/withdrawal-transactions',
    summary: 'Get the unsigned withdrawal transaction of an inactive stake',
    params: byStake,
    body: createWithdrawalTransactionBody,
    idempotencyKey: 'required',
    scope: 'write',
    responses: { 201: solanaTransaction },
    problems: ['not-found', 'invalid-state', 'validation-failed', 'chain-unavailable'],
  }),
  refreshSolanaTransaction: route({
    method: 'POST',
    path: '/v1/solana/stakes/{stakeId}/transactions/{txId}/refresh',
    summary: 'Give an expired unsigned transaction a new blockhash',
    params: byTransaction,
    body: transactionOptions,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: solanaTransaction },
    problems: ['not-found', 'invalid-state', 'validation-failed', 'chain-unavailable'],
  }),
  submitSolanaTransaction: route({
    method: 'PUT',
    path: '/v1/solana/stakes/{stakeId}/transactions/{txId}/submission',
    summary: 'Report the signature of the broadcast transaction; 503 while the cluster does not show it yet',
    params: byTransaction,
    body: signatureSubmissionBody,
    idempotencyKey: 'optional',
    scope: 'write',
    responses: { 200: solanaTransaction },
    problems: ['not-found', 'already-submitted', 'invalid-state', 'validation-failed', 'chain-unavailable', 'transaction-not-visible'],
  }),
  listNetworks: route({
    method: 'GET',
    path: '/v1/networks',
    summary: 'List the networks that the service serves',
    addition: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: networks },
    problems: [],
  }),
  listAuditLog: route({
    method: 'GET',
    path: '/v1/audit-log',
    summary: 'List who asked what of the account, and what was done to its API keys, the newest first',
    query: auditQuery,
    addition: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: auditPage },
    problems: [],
  }),
  createWebhookEndpoint: route({
    method: 'POST',
    path: '/v1/webhook-endpoints',
    summary: "Have changes of the account's resources delivered to a URL; the first answer alone holds the secret",
    body: createWebhookEndpointBody,
    addition: true,
    idempotencyKey: 'required',
    scope: 'write',
    responses: { 201: webhookEndpoint },
    problems: ['invalid-state'],
  }),
  listWebhookEndpoints: route({
    method: 'GET',
    path: '/v1/webhook-endpoints',
    summary: 'List the webhook endpoints of the account',
    addition: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: webhookEndpoints },
    problems: [],
  }),
  getWebhookEndpoint: route({
    method: 'GET',
    path: '/v1/webhook-endpoints/{endpointId}',
    summary: 'Read a webhook endpoint: whether deliveries come through, and why not',
    params: byEndpoint,
    addition: true,
    idempotencyKey: 'none',
    scope: 'read',
    responses: { 200: webhookEndpoint },
    problems: ['not-found'],
  }),
  deleteWebhookEndpoint: route({
    method: 'DELETE',
    path: '/v1/webhook-endpoints/{endpointId}',
    summary: 'Delete a webhook endpoint, with what is not delivered yet',
    params: byEndpoint,
    addition: true,
    idempotencyKey: 'none',
    scope: 'write',
    responses: { 200: webhookEndpoint },
    problems: ['not-found'],
  }),
  enableWebhookEndpoint: route({
    method: 'POST',
    path: '/v1/webhook-endpoints/{endpointId}/enable',
    summary: 'Enable a webhook endpoint that was disabled; what changed meanwhile is not delivered',
    params: byEndpoint,
    body: emptyBody,
    addition: true,
    idempotencyKey: 'none',
    scope: 'write',
    responses: { 200: webhookEndpoint },
    problems: ['not-found'],
  }),
  rotateWebhookSecret: route({
    method: 'POST',
    path: '/v1/webhook-endpoints/{endpointId}/secret-rotations',
    summary: 'Get a new secret; deliveries are signed with the former one too until the overlap ends',
    params: byEndpoint,
    body: rotateWebhookSecretBody,
    addition: true,
    idempotencyKey: 'none',
    scope: 'write',
    responses: { 200: webhookEndpoint },
    problems: ['not-found', 'invalid-state'],
  }),
} as const satisfies Record<string, Route>

export type Routes = typeof routes
export type OperationId = keyof Routes

/** All problem codes that a route may answer: its own, and what authentication, idempotency, limits and parsing bring. */
export function problemsOf(route: Route): readonly ProblemCode[] {
  const codes = new Set<ProblemCode>(['invalid-request'])
  if (route.scope !== 'none') for (const code of ['unauthenticated', 'forbidden', 'rate-limited'] as const) codes.add(code)
  if (route.body !== undefined) for (const code of ['payload-too-large', 'unsupported-media-type'] as const) codes.add(code)
  if (route.idempotencyKey === 'required') codes.add('idempotency-key-missing')
  if (route.idempotencyKey !== 'none') {
    for (const code of ['idempotency-key-invalid', 'idempotency-key-reused', 'idempotency-key-in-progress'] as const) codes.add(code)
  }
  for (const code of route.problems) codes.add(code)
  codes.add('internal-error')
  codes.add('service-unavailable')
  return [...codes]
}

/** The path in Fastify's form: `/v1/ethereum/stakes/:stakeId`. */
export const fastifyUrl = (path: Route['path']): string => path.replace(/\{([a-zA-Z]+)\}/g, ':$1')

/** The header's rule: 1 to 255 characters of printable ASCII (RFC 9110 field values), without surrounding space. */
export const idempotencyKeyPattern = /^(?=.{1,255}$)[!-~]([ -~]*[!-~])?$/
