import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Scope } from '../contract/routes.ts'
import type { Clock } from '../lib/clock.ts'
import { Secret } from '../lib/secret.ts'
import type { Store } from './store/database.ts'

/** Who asks: what a valid API key stands for. */
export interface Caller {
  readonly keyId: string
  readonly account: string
  readonly scopes: readonly Scope[]
}

export interface ApiKeyInfo extends Caller {
  readonly label: string
  readonly createdAt: Date
  readonly expiresAt?: Date
  readonly revokedAt?: Date
}

/** The prefix lets secret scanners know a leaked key; 32 random bytes follow. */
const prefix = 'sop_'
const keyPattern = /^sop_[A-Za-z0-9_-]{43}$/
const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

const isScope = (text: string): text is Scope => text === 'read' || text === 'write'

export interface ApiKeys {
  /** The key's text is in the answer and nowhere else: the database has its SHA-256. */
  create(given: { account: string; label: string; scopes: readonly Scope[]; expiresAt?: Date }): Promise<{ info: ApiKeyInfo; key: Secret }>
  list(): Promise<readonly ApiKeyInfo[]>
  /** False when there is no such key; revoking again changes nothing. */
  revoke(keyId: string): Promise<boolean>
  /** Undefined for anything but a key that is valid now. */
  authenticate(text: string): Promise<Caller | undefined>
}

export function createApiKeys({ store, clock }: { store: Store; clock: Clock }): ApiKeys {
  const { db } = store
  return {
    async create({ account, label, scopes, expiresAt }) {
      const key = new Secret(prefix + randomBytes(32).toString('base64url'))
      const row = {
        id: `key_${randomBytes(8).toString('hex')}`,
        account,
        label,
        key_hash: sha256(key.reveal()).toString('hex'),
        scopes: [...scopes],
        created_at: clock.now(),
        expires_at: expiresAt ?? null,
        revoked_at: null,
      }
      await db.insertInto('api_keys').values(row).execute()
      return { info: infoOf(row), key }
    },
    async list() {
      return (await db.selectFrom('api_keys').selectAll().orderBy('created_at').execute()).map(infoOf)
    },
    async revoke(keyId) {
      const result = await db
        .updateTable('api_keys')
        .set((set) => ({ revoked_at: set.fn.coalesce('revoked_at', set.val(clock.now())) }))
        .where('id', '=', keyId)
        .executeTakeFirst()
      return result.numUpdatedRows > 0n
    },
    async authenticate(text) {
      if (!keyPattern.test(text)) return undefined
      const hash = sha256(text)
      const row = await db.selectFrom('api_keys').selectAll().where('key_hash', '=', hash.toString('hex')).executeTakeFirst()
      if (row === undefined || !timingSafeEqual(Buffer.from(row.key_hash, 'hex'), hash)) return undefined
      const now = clock.now()
      if (row.revoked_at !== null || (row.expires_at !== null && row.expires_at <= now)) return undefined
      return { keyId: row.id, account: row.account, scopes: row.scopes.filter(isScope) }
    },
  }
}

function infoOf(row: {
  id: string
  account: string
  label: string
  scopes: string[]
  created_at: Date
  expires_at: Date | null
  revoked_at: Date | null
}): ApiKeyInfo {
  return {
    keyId: row.id,
    account: row.account,
    label: row.label,
    scopes: row.scopes.filter(isScope),
    createdAt: row.created_at,
    ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
    ...(row.revoked_at === null ? {} : { revokedAt: row.revoked_at }),
  }
}
