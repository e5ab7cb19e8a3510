import { createHmac, randomBytes } from 'node:crypto'
import type { ValidatorKeys } from '../seed.ts'

/** 32 bytes, made of the service's seed: the database holds the salt alone, and another salt is another secret. */
export const secretOf = (keys: Pick<ValidatorKeys, 'mac'>, endpointId: string, salt: string): Buffer =>
  keys.mac(`webhook secret ${endpointId} ${salt}`)

export const newSalt = (): string => randomBytes(16).toString('hex')

/** As the receiver gets it (Standard Webhooks). */
export const secretText = (secret: Buffer): string => `whsec_${secret.toString('base64')}`

/**
 * The headers of a delivery (Standard Webhooks 1.0): HMAC-SHA-256 of id, time and body, one signature for each secret that is valid.
 * @param seconds Unix time of the attempt: receivers refuse what is old.
 */
export function signedHeaders(
  { id, body, seconds }: { readonly id: string; readonly body: string; readonly seconds: number },
  secrets: readonly Buffer[],
) {
  const signatures = secrets.map((secret) => `v1,${createHmac('sha256', secret).update(`${id}.${seconds}.${body}`).digest('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signatures.join(' ') }
}
