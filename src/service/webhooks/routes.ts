import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { routes } from '../../contract/routes.ts'
import { type WebhookEndpointBody, webhookEndpoint } from '../../contract/schemas/webhooks.ts'
import type { Clock } from '../../lib/clock.ts'
import { ProblemError } from '../errors.ts'
import { answer, serve } from '../http/contract-route.ts'
import type { Idempotency } from '../idempotency.ts'
import { newId } from '../ids.ts'
import type { ValidatorKeys } from '../seed.ts'
import type { Store } from '../store/database.ts'
import {
  deleteEndpoint,
  type EndpointState,
  enableEndpoint,
  endpointsOf,
  findEndpoint,
  insertEndpoint,
  lockEndpoints,
  replaceSecret,
  secretsOf,
} from '../store/webhooks.ts'
import { newSalt, secretOf, secretText } from './sign.ts'
import { refusalOf, type WebhookPolicy } from './target.ts'

export interface WebhookRoutesDeps {
  readonly store: Store
  readonly idempotency: Idempotency
  readonly keys: Pick<ValidatorKeys, 'mac'>
  readonly clock: Clock
  readonly policy: WebhookPolicy
  /** Endpoints of one account. */
  readonly maxEndpoints: number
}

const defaultOverlapSeconds = 86_400
const maxSecrets = 5

/** Where an account's changes are delivered to. */
export function webhookRoutes(app: FastifyInstance, deps: WebhookRoutesDeps): void {
  const { store, idempotency, keys, clock, policy, maxEndpoints } = deps
  const { db } = store
  const notFound = (id: string) => new ProblemError('not-found', `there is no webhook endpoint ${id}`)
  const found = async (account: string, id: string) => {
    const endpoint = await findEndpoint(db, account, id)
    if (endpoint === undefined) throw notFound(id)
    return endpoint
  }
  const withSecret = (endpointId: string, salt: string) => secretText(secretOf(keys, endpointId, salt))

  serve(app, routes.createWebhookEndpoint, async ({ caller: { account }, body, idempotent }) => {
    const refusal = refusalOf(body.url, policy)
    if (refusal !== undefined) {
      const errors = [{ pointer: '/body/url', code: 'url-not-permitted', detail: refusal }]
      throw new ProblemError('invalid-request', `/body/url: ${refusal}`, { errors })
    }
    const salt = newSalt()
    const answered = await idempotency.run(idempotent, (commit) =>
      commit(async (transaction) => {
        await lockEndpoints(transaction, account)
        const existing = await endpointsOf(transaction, account)
        const same = existing.find(({ url }) => url === body.url)
        if (same !== undefined)
          throw new ProblemError('invalid-state', `webhook endpoint ${same.id} has this URL already`, { existingId: same.id })
        if (existing.length >= maxEndpoints)
          throw new ProblemError('invalid-state', `an account has at most ${maxEndpoints} webhook endpoints: delete one first`)
        const created_at = clock.now()
        const id = newId(created_at)
        await insertEndpoint(transaction, { id, account, url: body.url, description: body.description ?? null, created_at }, salt)
        const made = await findEndpoint(transaction, account, id)
        if (made === undefined) throw notFound(id)
        return answer(routes.createWebhookEndpoint, 201, endpointBody(made))
      }),
    )
    if (answered.replayed) return answered
    // The secret is told once: what is stored for repetitions doesn't hold it.
    const { endpointId, ...rest } = webhookEndpoint.parse(JSON.parse(answered.body))
    const whole = { endpointId, ...rest, secret: withSecret(endpointId, salt) }
    return { ...answered, body: JSON.stringify(z.encode(webhookEndpoint, whole)) }
  })

  serve(app, routes.listWebhookEndpoints, async ({ caller: { account } }) => ({
    status: 200,
    body: { items: (await endpointsOf(db, account)).map(endpointBody) },
  }))

  serve(app, routes.getWebhookEndpoint, async ({ caller: { account }, params: { endpointId } }) => ({
    status: 200,
    body: endpointBody(await found(account, endpointId)),
  }))

  serve(app, routes.deleteWebhookEndpoint, async ({ caller: { account }, params: { endpointId } }) => {
    const endpoint = await found(account, endpointId)
    if (!(await deleteEndpoint(db, account, endpointId))) throw notFound(endpointId)
    return { status: 200, body: endpointBody(endpoint) }
  })

  serve(app, routes.enableWebhookEndpoint, async ({ caller: { account }, params: { endpointId } }) => {
    await enableEndpoint(db, account, endpointId)
    return { status: 200, body: endpointBody(await found(account, endpointId)) }
  })

  serve(app, routes.rotateWebhookSecret, async ({ caller: { account }, params: { endpointId }, body }) => {
    const salt = newSalt()
    const rotated = await db.transaction().execute(async (transaction) => {
      await lockEndpoints(transaction, account)
      if ((await findEndpoint(transaction, account, endpointId)) === undefined) throw notFound(endpointId)
      const now = clock.now()
      // Someone who repeats a rotation whose answer was lost keeps the secret that the receiver knows: each former one signs until its own end.
      if ((await secretsOf(transaction, endpointId, now)).length >= maxSecrets)
        throw new ProblemError('invalid-state', `${maxSecrets} secrets of this endpoint are valid: wait until the former ones have ended`)
      const until = new Date(now.getTime() + (body?.overlapSeconds ?? defaultOverlapSeconds) * 1000)
      await replaceSecret(transaction, endpointId, { salt, now, until })
      return findEndpoint(transaction, account, endpointId)
    })
    if (rotated === undefined) throw notFound(endpointId)
    return { status: 200, body: { ...endpointBody(rotated), secret: withSecret(endpointId, salt) } }
  })
}

const endpointBody = (row: EndpointState): WebhookEndpointBody => ({
  endpointId: row.id,
  url: row.url,
  ...(row.description === null ? {} : { description: row.description }),
  status: row.disabled_at === null ? 'enabled' : 'disabled',
  ...(row.disabled_reason === null ? {} : { disabledReason: row.disabled_reason.slice(0, 255) }),
  ...(row.disabled_at === null ? {} : { disabledAt: row.disabled_at.toISOString() }),
  pending: Number(row.pending),
  ...(row.dropped_at === null ? {} : { dropped: Number(row.dropped), droppedAt: row.dropped_at.toISOString() }),
  ...(row.last_delivered_at === null ? {} : { lastDeliveredAt: row.last_delivered_at.toISOString() }),
  ...(row.failing_since === null ? {} : { failingSince: row.failing_since.toISOString() }),
  ...(row.last_error === null ? {} : { lastError: row.last_error.slice(0, 255) }),
  ...(row.former_until === null ? {} : { formerSecretsUntil: row.former_until.toISOString() }),
  createdAt: row.created_at.toISOString(),
})
