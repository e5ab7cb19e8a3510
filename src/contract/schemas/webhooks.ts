import { z } from 'zod'
import { id, network, text, time } from './common.ts'

export const webhookUrl = text(2048).meta({
  format: 'uri',
  description: 'https, a public host, no user name, no fragment.',
})

/** What is delivered of: the kind of resource, and which part of its state has changed. */
export const webhookTypes = [
  'ethereum-stake.transaction',
  'ethereum-stake.consensus',
  'ethereum-stake.keys',
  'exit-request.transaction',
  'exit-request.consensus',
  'withdrawal-request.transaction',
  'withdrawal-request.consensus',
  'withdrawal-request.payment',
  'solana-transaction.transaction',
  'solana-stake.cancellation',
  'webhook-endpoint.dropped',
] as const

/** An address of the account to which changes of its resources are delivered. */
export const webhookEndpoint = z
  .object({
    endpointId: id,
    url: z.string().max(2048),
    description: z.string().max(255).optional(),
    status: z.enum(['enabled', 'disabled']),
    /** With `disabled`. */
    disabledReason: z.string().max(255).optional(),
    disabledAt: time.optional(),
    /** Deliveries that are not made yet. */
    pending: z.int().min(0),
    /** Deliveries that were never made and never will be: too many waited, or for too long. Who has any reads again what it follows. */
    dropped: z.int().min(0).optional(),
    /** When the last of them was dropped. */
    droppedAt: time.optional(),
    lastDeliveredAt: time.optional(),
    /** Since then nothing could be delivered. */
    failingSince: time.optional(),
    /** What the last attempt failed of. */
    lastError: z.string().max(255).optional(),
    /** When the secrets before the newest end, the latest of them. */
    formerSecretsUntil: time.optional(),
    /** Only in the first answer to what made it: `whsec_…` of Standard Webhooks. */
    secret: z.string().max(128).optional(),
    createdAt: time,
  })
  .meta({ id: 'WebhookEndpoint' })
export type WebhookEndpointBody = z.output<typeof webhookEndpoint>

export const webhookEndpoints = z.object({ items: z.array(webhookEndpoint).max(100) }).meta({ id: 'WebhookEndpoints' })

export const createWebhookEndpointBody = z
  .strictObject({ url: webhookUrl, description: text(255).optional() })
  .meta({ id: 'CreateWebhookEndpoint' })

const overlapMax = 7 * 86_400

export const rotateWebhookSecretBody = z
  .strictObject({
    overlapSeconds: z
      .int()
      .min(0)
      .max(overlapMax)
      .meta({ description: 'So long deliveries are signed with the former secrets too; default a day.' })
      .optional(),
  })
  .optional()

/** What is delivered: what has changed, and where to read the rest. */
export const webhookEvent = z
  .object({
    type: z.enum(webhookTypes),
    /** When it changed. */
    timestamp: time,
    data: z.object({
      /** Of the stake or request, and of a transaction of a Solana stake; of the endpoint where that has missed deliveries. */
      id,
      /** Of the stake that a Solana transaction is of. */
      stakeId: id.optional(),
      /** Of the validator that a request is of. */
      pubkey: z.string().max(98).optional(),
      /** Left out where an endpoint has missed deliveries, which may be of any. */
      network: network.optional(),
      status: z.string().max(64),
    }),
  })
  .meta({ id: 'WebhookEvent' })
export type WebhookEvent = z.output<typeof webhookEvent>
