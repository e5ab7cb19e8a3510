import type { Scope } from '../contract/routes.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { Secret } from '../lib/secret.ts'
import { asAdmin } from './admin.ts'
import type { ApiKeyInfo } from './api-keys.ts'
import { ConfigError, loadServiceConfig, type ServiceOverrides } from './config.ts'

export interface CommandOptions {
  /** Path of the service's configuration file. */
  readonly config: string
  readonly flags?: ServiceOverrides
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly clock?: Clock
}

const accountPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

/**
 * Makes an API key. Its text is in the answer and nowhere else: show it once.
 * Works beside a running service, on PostgreSQL and on the embedded database alike. @throws ConfigError
 */
export async function apiKeysCreate(
  options: CommandOptions & {
    readonly account: string
    readonly label?: string
    /** Default: read and write. */
    readonly scopes?: readonly Scope[]
    readonly expiresAt?: Date
  },
): Promise<{ readonly info: ApiKeyInfo; readonly key: Secret }> {
  const { account, label = '', scopes = ['read', 'write'], expiresAt, clock = systemClock } = options
  if (!accountPattern.test(account)) throw new ConfigError('an account is 1 to 63 letters, digits, dots, hyphens and underscores')
  if (label.length > 255) throw new ConfigError('a label has at most 255 characters')
  if (scopes.length === 0) throw new ConfigError('an API key needs at least one scope: read, write')
  if (expiresAt !== undefined && !(expiresAt > clock.now())) throw new ConfigError('the expiry must be a time to come')
  const given = { account, label, scopes: [...new Set(scopes)], ...(expiresAt === undefined ? {} : { expiresAt }) }
  return asAdmin(await databaseOf(options), clock, async (admin) => {
    const { info, key } = await admin.createApiKey(given)
    return { info: plain(info), key: new Secret(key) }
  })
}

/** All API keys, also those that expired or were revoked; never their text. */
export async function apiKeysList(options: CommandOptions): Promise<readonly ApiKeyInfo[]> {
  return asAdmin(await databaseOf(options), options.clock ?? systemClock, async (admin) => (await admin.listApiKeys({})).map(plain))
}

/** Revokes an API key by its id, for good and at once. False when there is none. */
export async function apiKeysRevoke(options: CommandOptions & { readonly keyId: string }): Promise<boolean> {
  return asAdmin(await databaseOf(options), options.clock ?? systemClock, (admin) => admin.revokeApiKey({ keyId: options.keyId }))
}

const databaseOf = async (options: CommandOptions) =>
  (await loadServiceConfig(options.config, options.flags, options.env ?? process.env)).database

/** Optional fields are absent, not undefined. */
const plain = ({
  expiresAt,
  revokedAt,
  ...info
}: { [K in keyof ApiKeyInfo]: ApiKeyInfo[K] | undefined } & Omit<ApiKeyInfo, 'expiresAt' | 'revokedAt'>): ApiKeyInfo => ({
  ...info,
  ...(expiresAt === undefined ? {} : { expiresAt }),
  ...(revokedAt === undefined ? {} : { revokedAt }),
})
