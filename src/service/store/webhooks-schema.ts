import type { ColumnType, Generated } from 'kysely'

export interface WebhookEndpointsTable {
  id: string
  account: string
  url: string
  description: string | null
  created_at: Date
  disabled_at: Date | null
  disabled_reason: string | null
  /** Since then nothing could be delivered. */
  failing_since: Date | null
  /** Attempts that failed since the last that didn't. */
  failures: Generated<number>
  last_error: string | null
  last_delivered_at: Date | null
  /** Deliveries that were never made, and never will be. */
  dropped: Generated<bigint>
  dropped_at: Generated<Date | null>
  /** Nothing is sent before. */
  rest_until: ColumnType<Date, Date | undefined, Date>
  /** One instance delivers at a time; one that died is superseded after this. */
  busy_until: ColumnType<Date, Date | undefined, Date>
  owner: string | null
  /** Who has waited longest comes first. */
  served_at: ColumnType<Date, Date | undefined, Date>
}

/** The secrets themselves are made of the service's seed, the endpoint and the salt: the database holds none. */
export interface WebhookSecretsTable {
  endpoint_id: string
  salt: string
  created_at: Date
  /** Null: of the newest. */
  expires_at: Date | null
}

/** What is to be delivered; gone once it is. */
export interface WebhookDeliveriesTable {
  /** The same at every attempt: by it the receiver knows what it has had. */
  id: Generated<string>
  place: Generated<bigint>
  endpoint_id: string
  type: string
  resource_id: string
  stake_id: string | null
  pubkey: string | null
  network: string
  status: string
  at: Generated<Date>
  attempts: Generated<number>
  next_at: Generated<Date>
}
