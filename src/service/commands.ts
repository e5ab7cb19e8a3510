import type { Scope } from '../contract/routes.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { Secret } from '../lib/secret.ts'
import { isBlock } from './addresses.ts'
import { asAdmin, defined } from './admin.ts'
import { type ApiKeyInfo, isOperation } from './api-keys.ts'
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
    /** Names of the configuration's networks. Default: all. */
    readonly networks?: readonly string[]
    /** Operations of the contract, by their ids. Default: all that the scopes permit. */
    readonly operations?: readonly string[]
    /** IP addresses, and blocks of them. Default: from anywhere. */
    readonly addressRanges?: readonly string[]
    readonly expiresAt?: Date
  },
): Promise<{ readonly info: ApiKeyInfo; readonly key: Secret }> {
  const { account, label = '', scopes = ['read', 'write'], expiresAt, clock = systemClock } = options
  const { networks, operations, addressRanges } = options
  if (!accountPattern.test(account)) throw new ConfigError('an account is 1 to 63 letters, digits, dots, hyphens and underscores')
  checkLabel(label)
  if (scopes.length === 0) throw new ConfigError('an API key needs at least one scope: read, write')
  if (expiresAt !== undefined && !(expiresAt > clock.now())) throw new ConfigError('the expiry must be a time to come')
  const config = await configOf(options)
  const known = config.networks.map(({ name }) => name)
  checkEach(networks, 'network', (name) => known.includes(name), `is no network of the configuration (${known.join(', ')})`)
  checkEach(operations, 'operation', isOperation, 'is no operation of the staking API: see operationId in its document')
  checkEach(addressRanges, 'address', isBlock, 'is no IP address and no block of them such as 10.0.0.0/8')
  const given = defined({
    ...{ account, label, scopes: [...new Set(scopes)], expiresAt },
    ...{ networks: listOf(networks), operations: operations?.filter(isOperation), addressRanges: listOf(addressRanges) },
  })
  return asAdmin(config.database, clock, async (admin) => {
    const { info, key } = await admin.createApiKey(given)
    return { info: plain(info), key: new Secret(key) }
  })
}

const listOf = (list: readonly string[] | undefined) => (list === undefined ? undefined : [...new Set(list)])

/** @throws ConfigError */
function checkLabel(label: string): void {
  if (label.length > 255) throw new ConfigError('a label has at most 255 characters')
  if (label.includes('\0') || !label.isWellFormed())
    throw new ConfigError('a label is text: without U+0000 and without halves of surrogate pairs')
}

/** @throws ConfigError for a list that is empty, and for what it may not hold. */
function checkEach(list: readonly string[] | undefined, what: string, isRight: (text: string) => boolean, otherwise: string): void {
  if (list === undefined) return
  if (list.length === 0) throw new ConfigError(`name at least one ${what}, or leave it out`)
  const wrong = list.find((text) => !isRight(text))
  if (wrong !== undefined) throw new ConfigError(`"${wrong.slice(0, 64)}" ${otherwise}`)
}

/** All API keys, also those that expired or were revoked; never their text. */
export async function apiKeysList(options: CommandOptions): Promise<readonly ApiKeyInfo[]> {
  return asAdmin(await databaseOf(options), options.clock ?? systemClock, async (admin) => (await admin.listApiKeys({})).map(plain))
}

/** Revokes an API key by its id, for good and at once. False when there is none. */
export async function apiKeysRevoke(options: CommandOptions & { readonly keyId: string }): Promise<boolean> {
  return asAdmin(await databaseOf(options), options.clock ?? systemClock, (admin) => admin.revokeApiKey({ keyId: options.keyId }))
}

/** Gives an API key another label. False when there is none. @throws ConfigError */
export async function apiKeysRename(options: CommandOptions & { readonly keyId: string; readonly label: string }): Promise<boolean> {
  const { keyId, label } = options
  checkLabel(label)
  return asAdmin(await databaseOf(options), options.clock ?? systemClock, (admin) => admin.renameApiKey({ keyId, label }))
}

const maxOverlapMs = 366 * 86_400_000

/** Makes an API key in the place of another, which is good for `overlapMs` more. Undefined when that is not valid (any more). @throws ConfigError */
export async function apiKeysRotate(
  options: CommandOptions & { readonly keyId: string; readonly overlapMs: number },
): Promise<{ readonly info: ApiKeyInfo; readonly key: Secret } | undefined> {
  const { keyId, overlapMs } = options
  if (!(overlapMs >= 0 && overlapMs <= maxOverlapMs)) throw new ConfigError('the overlap must be from 0 to 366 days')
  return asAdmin(await databaseOf(options), options.clock ?? systemClock, async (admin) => {
    const made = await admin.rotateApiKey({ keyId, overlapMs })
    return made === null ? undefined : { info: plain(made.info), key: new Secret(made.key) }
  })
}

const pageSize = 500

/** Hands on the audit log, the oldest first, entry by entry: who asked what, and when. */
export async function auditLogExport(
  options: CommandOptions & {
    readonly account?: string
    readonly since?: Date
    readonly until?: Date
    readonly onEntry: (entry: object) => void
  },
): Promise<void> {
  const { account, since, until, onEntry } = options
  await asAdmin(await databaseOf(options), options.clock ?? systemClock, async (admin) => {
    let after = ''
    for (let more = true; more; ) {
      const page = await admin.auditLog(defined({ account, since, until, after, limit: pageSize }))
      for (const entry of page.entries) onEntry(entry)
      after = page.entries.at(-1)?.entryId ?? after
      more = page.more
    }
  })
}

const configOf = (options: CommandOptions) => loadServiceConfig(options.config, options.flags, options.env ?? process.env)
const databaseOf = async (options: CommandOptions) => (await configOf(options)).database

const plain = (info: { [K in keyof ApiKeyInfo]: ApiKeyInfo[K] | undefined }): ApiKeyInfo => defined(info) as ApiKeyInfo
