import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { type OperationId, routes, type Scope } from '../contract/routes.ts'
import type { Clock } from '../lib/clock.ts'
import { Secret } from '../lib/secret.ts'
import { type AddressCheck, addressCheck } from './addresses.ts'
import { newId } from './ids.ts'
import { insertAudit } from './store/audit-log.ts'
import type { Store } from './store/database.ts'
import type { ApiKeysTable } from './store/schema.ts'

/** What narrows an API key, beyond its scopes. Left out: nothing does. */
export interface KeyLimits {
  readonly networks?: readonly string[]
  readonly operations?: readonly OperationId[]
  /** Addresses, and blocks of them such as 10.0.0.0/8. */
  readonly addressRanges?: readonly string[]
}

/** Who asks: what a valid API key stands for. */
export interface Caller extends Pick<KeyLimits, 'networks' | 'operations'> {
  readonly keyId: string
  readonly account: string
  readonly scopes: readonly Scope[]
  /** Whether the key may be used from there. */
  readonly mayComeFrom: AddressCheck
}

export interface ApiKeyInfo extends KeyLimits {
  readonly keyId: string
  readonly account: string
  readonly scopes: readonly Scope[]
  readonly label: string
  readonly createdAt: Date
  readonly expiresAt?: Date
  readonly revokedAt?: Date
  readonly lastUsedAt?: Date
  /** The key that replaces it. */
  readonly rotatedTo?: string
}

export interface NewApiKey extends KeyLimits {
  readonly account: string
  readonly label: string
  readonly scopes: readonly Scope[]
  readonly expiresAt?: Date
}

/** The prefix lets secret scanners know a leaked key; 32 random bytes follow. */
const prefix = 'sop_'
const keyPattern = /^sop_[A-Za-z0-9_-]{43}$/
const sha256 = (text: string): string => hash('sha256', text)

const isScope = (text: string): text is Scope => text === 'read' || text === 'write'
export const isOperation = (text: string): text is OperationId => Object.hasOwn(routes, text)

export interface ApiKeys {
  /** The key's text is in the answer and nowhere else: the database has its SHA-256. */
  create(given: NewApiKey): Promise<{ info: ApiKeyInfo; key: Secret }>
  list(): Promise<readonly ApiKeyInfo[]>
  /** Returns when no instance takes the key any more. False when there is no such key; revoking again changes nothing. */
  revoke(keyId: string): Promise<boolean>
  /** False when there is no such key. */
  rename(keyId: string, label: string): Promise<boolean>
  /**
   * A key that may do the same; the old one is good for `overlapMs` more, and no longer than it was. The new one lasts as long as the old one did from its
   * making. Undefined when there is no such key, or it is not valid any more.
   */
  rotate(keyId: string, overlapMs: number): Promise<{ info: ApiKeyInfo; key: Secret } | undefined>
  /** Undefined for anything but a key that is valid now. */
  authenticate(text: string): Promise<Caller | undefined>
  /** The same without asking the database: undefined also for a key that is not remembered. */
  recall(text: string): Caller | undefined
}

/** So long a key that was valid is believed to be unchanged, while every change is heard of. */
const rememberedMs = 5_000
const maxRemembered = 10_000
const channel = 'staking_api_keys'

type Row = ApiKeysTable

interface Found {
  readonly caller: Caller
  readonly expiresAt: Date | null
}

/**
 * The API keys. Those that were just used are remembered for seconds, by the hash of their text, and forgotten at the moment that the database tells of a
 * change to any of them; while the database's notices can't be heard, nothing is remembered.
 */
export function createApiKeys({ store, clock, remember = false }: { store: Store; clock: Clock; remember?: boolean }): ApiKeys {
  const { db } = store
  const known = new Map<string, Found & { readonly until: number }>()
  let changes = 0
  const forget = () => {
    changes++
    known.clear()
  }
  const notices = remember ? store.listen(channel, { onNotice: forget, onGap: forget }) : undefined

  const validNow = (found: Found | undefined): Caller | undefined =>
    found === undefined || (found.expiresAt !== null && found.expiresAt <= clock.now()) ? undefined : found.caller

  const newKey = () => {
    const key = new Secret(prefix + randomBytes(32).toString('base64url'))
    return { key, id: `key_${randomBytes(8).toString('hex')}`, key_hash: sha256(key.reveal()) }
  }

  function remembered(keyHash: string): Found | undefined {
    const found = known.get(keyHash)
    return found !== undefined && found.until > clock.monotonicMs() && notices?.hears() === true ? found : undefined
  }

  async function find(keyHash: string): Promise<Found | undefined> {
    const before = changes
    const row = await db.selectFrom('api_keys').selectAll().where('key_hash', '=', keyHash).executeTakeFirst()
    if (row === undefined || !timingSafeEqual(Buffer.from(row.key_hash, 'hex'), Buffer.from(keyHash, 'hex'))) return undefined
    if (row.revoked_at !== null) return undefined
    const found = { caller: callerOf(row), expiresAt: row.expires_at }
    // A change that was told while the row was on its way may not be in it.
    if (notices?.hears() === true && changes === before) {
      if (known.size >= maxRemembered) known.clear()
      known.set(keyHash, { ...found, until: clock.monotonicMs() + rememberedMs })
    }
    return found
  }

  return {
    async create({ account, label, scopes, expiresAt, networks, operations, addressRanges }) {
      const { key, ...made } = newKey()
      const row: Row = {
        ...{ ...made, account, label, scopes: [...scopes], created_at: clock.now(), expires_at: expiresAt ?? null },
        ...{ networks: copyOf(networks), operations: copyOf(operations), address_ranges: copyOf(addressRanges) },
        ...{ revoked_at: null, last_used_at: null, rotated_to: null },
      }
      await db.transaction().execute(async (transaction) => {
        await transaction.insertInto('api_keys').values(row).execute()
        await insertAudit(transaction, [administered(clock, 'api-keys create', row)])
      })
      return { info: infoOf(row), key }
    },
    async list() {
      return (await db.selectFrom('api_keys').selectAll().orderBy('created_at').execute()).map(infoOf)
    },
    async revoke(keyId) {
      const revoked = await db.transaction().execute(async (transaction) => {
        const row = await transaction
          .updateTable('api_keys')
          .set((set) => ({ revoked_at: set.fn.coalesce('revoked_at', set.val(clock.now())) }))
          .where('id', '=', keyId)
          .returningAll()
          .executeTakeFirst()
        if (row !== undefined) await insertAudit(transaction, [administered(clock, 'api-keys revoke', row)])
        return row !== undefined
      })
      if (revoked) await store.heard(channel, rememberedMs)
      return revoked
    },
    rename: (keyId, label) =>
      db.transaction().execute(async (transaction) => {
        const row = await transaction.updateTable('api_keys').set({ label }).where('id', '=', keyId).returningAll().executeTakeFirst()
        if (row !== undefined) await insertAudit(transaction, [administered(clock, 'api-keys rename', row)])
        return row !== undefined
      }),
    async rotate(keyId, overlapMs) {
      const rotated = await db.transaction().execute(async (transaction) => {
        const old = await transaction.selectFrom('api_keys').selectAll().where('id', '=', keyId).forUpdate().executeTakeFirst()
        const now = clock.now()
        if (old === undefined || old.revoked_at !== null || (old.expires_at !== null && old.expires_at <= now)) return undefined
        const { key, ...made } = newKey()
        // One that was rotated before ends with its overlap: how long it was made for, its first successor tells.
        const first = transaction
          .selectFrom('api_keys')
          .selectAll()
          .where('id', '=', old.rotated_to ?? '')
        const model = (await first.executeTakeFirst()) ?? old
        const lifetimeMs = model.expires_at === null ? undefined : model.expires_at.getTime() - model.created_at.getTime()
        const expires_at = lifetimeMs === undefined ? null : new Date(now.getTime() + lifetimeMs)
        const row: Row = { ...old, ...made, created_at: now, expires_at, last_used_at: null, rotated_to: null }
        await transaction.insertInto('api_keys').values(row).execute()
        const end = new Date(now.getTime() + overlapMs)
        await transaction
          .updateTable('api_keys')
          .set({ rotated_to: row.id, expires_at: old.expires_at !== null && old.expires_at < end ? old.expires_at : end })
          .where('id', '=', keyId)
          .execute()
        await insertAudit(transaction, [administered(clock, 'api-keys rotate', old), administered(clock, 'api-keys create', row)])
        return { info: infoOf(row), key }
      })
      if (rotated !== undefined) await store.heard(channel, rememberedMs)
      return rotated
    },
    async authenticate(text) {
      if (!keyPattern.test(text)) return undefined
      const keyHash = sha256(text)
      return validNow(remembered(keyHash) ?? (await find(keyHash)))
    },
    recall: (text) => (keyPattern.test(text) ? validNow(remembered(sha256(text))) : undefined),
  }
}

const copyOf = (list: readonly string[] | undefined): string[] | null => (list === undefined ? null : [...list])

/** What an administrator did to a key, for the log of its account. */
function administered(clock: Clock, operation: string, { account, id }: Pick<Row, 'account' | 'id'>) {
  const at = clock.now()
  return {
    ...{ id: newId(at), at, account, operation, resource_id: id, key_id: null, method: null, path: null },
    ...{ idempotency_key: null, request_id: null, address: null, status: null },
  }
}

/** A list that names nothing known permits nothing. */
const limitsOf = (row: Pick<Row, 'networks' | 'operations'>): Pick<KeyLimits, 'networks' | 'operations'> => ({
  ...(row.networks === null ? {} : { networks: row.networks }),
  ...(row.operations === null ? {} : { operations: row.operations.filter(isOperation) }),
})

const callerOf = (row: Row): Caller => ({
  keyId: row.id,
  account: row.account,
  scopes: row.scopes.filter(isScope),
  ...limitsOf(row),
  mayComeFrom: addressCheck(row.address_ranges ?? undefined),
})

const infoOf = (row: Row): ApiKeyInfo => ({
  keyId: row.id,
  account: row.account,
  label: row.label,
  scopes: row.scopes.filter(isScope),
  createdAt: row.created_at,
  ...limitsOf(row),
  ...(row.address_ranges === null ? {} : { addressRanges: row.address_ranges }),
  ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
  ...(row.revoked_at === null ? {} : { revokedAt: row.revoked_at }),
  ...(row.last_used_at === null ? {} : { lastUsedAt: row.last_used_at }),
  ...(row.rotated_to === null ? {} : { rotatedTo: row.rotated_to }),
})
