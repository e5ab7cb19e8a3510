import { rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { z } from 'zod'
import { auditEntry } from '../contract/schemas/audit-log.ts'
import type { Clock } from '../lib/clock.ts'
import { type ApiKeyInfo, createApiKeys, isOperation, type NewApiKey } from './api-keys.ts'
import { auditBody } from './http/audit-routes.ts'
import { listAudit } from './store/audit-log.ts'
import type { DatabaseConfig, Store } from './store/database.ts'
import { DatabaseInUseError, openStore } from './store/database.ts'
import { dismissMissing, missingStakesOf, type UnknownDeposit } from './store/missing-stakes.ts'
import { claimPlace, exportsOf, type KeyExport, noteProvisioned, stakeKeys } from './store/stakes.ts'

const scope = z.enum(['read', 'write'])
const date = z.coerce.date()
const limits = {
  networks: z.array(z.string()).optional(),
  operations: z.array(z.string().refine(isOperation)).optional(),
  addressRanges: z.array(z.string()).optional(),
}
const apiKeyInfo = z.object({
  keyId: z.string(),
  account: z.string(),
  label: z.string(),
  scopes: z.array(scope),
  ...limits,
  createdAt: date,
  expiresAt: date.optional(),
  revokedAt: date.optional(),
  lastUsedAt: date.optional(),
  rotatedTo: z.string().optional(),
})
const madeKey = z.object({ info: apiKeyInfo, key: z.string() })
const stakeKey = z.object({ stakeId: z.string(), network: z.string(), status: z.string(), pubkey: z.string(), keyIndex: z.string() })

const keyExport = z.object({
  pubkey: z.string(),
  exportedAt: date,
  place: z.string(),
  places: z.array(z.string()),
  provisionedAt: date.optional(),
})
export type KeyExported = z.output<typeof keyExport>

const missingStake = z.object({
  network: z.string(),
  pubkey: z.string(),
  withdrawalAddress: z.string(),
  amountGwei: z.string(),
  transactionHash: z.string(),
  blockNumber: z.string(),
})
export type MissingStake = z.output<typeof missingStake>

/** What an administrator does: each takes and gives JSON. */
const operations = {
  createApiKey: {
    takes: z.object({ account: z.string(), label: z.string(), scopes: z.array(scope), ...limits, expiresAt: date.optional() }),
    gives: madeKey,
  },
  renameApiKey: { takes: z.object({ keyId: z.string(), label: z.string() }), gives: z.boolean() },
  rotateApiKey: { takes: z.object({ keyId: z.string(), overlapMs: z.number() }), gives: madeKey.nullable() },
  /** A page of the audit log, the oldest first. */
  auditLog: {
    takes: z.object({
      account: z.string().optional(),
      since: date.optional(),
      until: date.optional(),
      after: z.string(),
      limit: z.int().min(1).max(1_000),
    }),
    gives: z.object({ entries: z.array(auditEntry.extend({ account: z.string() })), more: z.boolean() }),
  },
  listApiKeys: { takes: z.object({}), gives: z.array(apiKeyInfo) },
  revokeApiKey: { takes: z.object({ keyId: z.string() }), gives: z.boolean() },
  /** Which keys belong to which stakes. No secret is among them. */
  stakeKeys: {
    takes: z.object({ network: z.string().optional(), status: z.string().optional(), pubkeys: z.array(z.string()).optional() }),
    gives: z.array(stakeKey),
  },
  /** When and where the keys of these validators were exported to before. */
  exportsOf: {
    takes: z.object({ pubkeys: z.array(z.string()) }),
    gives: z.array(keyExport),
  },
  /** Writes down that keys go to a place, before they do; returns those that are elsewhere, and then writes nothing. */
  claimPlace: {
    takes: z.object({
      pubkeys: z.array(z.string()),
      at: date,
      place: z.string().max(4096),
      again: z.boolean(),
      gone: z.array(z.string()).optional(),
    }),
    gives: z.array(keyExport),
  },
  /** A consistent copy of the embedded database, into a folder that is not there yet. */
  backUp: { takes: z.object({ out: z.string() }), gives: z.object({}) },
  /** Deposits whose stakes the database lacks. */
  missingStakes: { takes: z.object({ network: z.string().optional() }), gives: z.array(missingStake) },
  /** These are no stakes of this service. */
  dismissMissing: { takes: z.object({ pubkeys: z.array(z.string()) }), gives: z.array(z.string()) },
  /** A validator client was seen to hold these keys. */
  noteProvisioned: { takes: z.object({ pubkeys: z.array(z.string()), at: date }), gives: z.object({}) },
} as const
type Operations = typeof operations
type Name = keyof Operations

export type Admin = {
  readonly [N in Name]: (given: z.output<Operations[N]['takes']>) => Promise<z.output<Operations[N]['gives']>>
}
export type StakeKey = z.output<typeof stakeKey>

export function createAdmin({ store, clock }: { store: Store; clock: Clock }): Admin {
  const apiKeys = createApiKeys({ store, clock })
  return {
    createApiKey: async (given) => {
      const { info, key } = await apiKeys.create(defined(given) as NewApiKey)
      return { info: copy(info), key: key.reveal() }
    },
    renameApiKey: ({ keyId, label }) => apiKeys.rename(keyId, label),
    rotateApiKey: async ({ keyId, overlapMs }) => {
      const made = await apiKeys.rotate(keyId, overlapMs)
      return made === undefined ? null : { info: copy(made.info), key: made.key.reveal() }
    },
    auditLog: async ({ limit, ...filter }) => {
      const rows = await listAudit(store.db, { ...filter, limit })
      const entries = rows.slice(0, limit).map((row) => ({ ...auditBody(row), account: row.account }))
      return { entries, more: rows.length > limit }
    },
    listApiKeys: async () => (await apiKeys.list()).map(copy),
    revokeApiKey: ({ keyId }) => apiKeys.revoke(keyId),
    exportsOf: async ({ pubkeys }) => (await exportsOf(store.db, pubkeys)).map(exportedOf),
    claimPlace: async (given) => (await claimPlace(store.db, given)).map(exportedOf),
    noteProvisioned: async (given) => {
      await noteProvisioned(store.db, given)
      return {}
    },
    backUp: async ({ out }) => {
      if (store.copyTo === undefined) throw new Error('only the embedded database is copied')
      await store.copyTo(out)
      return {}
    },
    missingStakes: async ({ network }) => (await missingStakesOf(store.db, network)).map(missingStakeOf),
    dismissMissing: async ({ pubkeys }) => [...(await dismissMissing(store.db, pubkeys, clock.now()))],
    stakeKeys: async (filter) => (await stakeKeys(store.db, filter)).map((row) => ({ ...row, keyIndex: row.keyIndex.toString() })),
  }
}
const copy = ({ scopes, networks, operations, addressRanges, ...info }: ApiKeyInfo): z.output<typeof apiKeyInfo> => ({
  ...info,
  scopes: [...scopes],
  ...(networks === undefined ? {} : { networks: [...networks] }),
  ...(operations === undefined ? {} : { operations: [...operations] }),
  ...(addressRanges === undefined ? {} : { addressRanges: [...addressRanges] }),
})
const exportedOf = ({ provisionedAt, places, ...row }: KeyExport): KeyExported => ({
  ...row,
  places: [...places],
  ...(provisionedAt === null ? {} : { provisionedAt }),
})
const missingStakeOf = (row: UnknownDeposit): MissingStake => ({
  network: row.network,
  pubkey: row.pubkey,
  withdrawalAddress: row.withdrawal_address,
  amountGwei: row.amount_gwei.toString(),
  transactionHash: row.hash,
  blockNumber: row.block_number.toString(),
})
/** Optional fields are absent, not undefined. */
export const defined = <T extends object>(given: T): T =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T

/** Below the database's folder, which only its owner may enter: who can reach the socket can read the database anyway. */
const socketPath = (dataDir: string): string => join(dataDir, 'admin')

/**
 * The embedded database belongs to one process. While the service has it, administration goes through the service, over a Unix socket in the
 * database's folder.
 */
export async function serveAdmin(admin: Admin, dataDir: string): Promise<() => Promise<void>> {
  const server = createServer((incoming, outgoing) => {
    const answer = (status: number, body: unknown) => outgoing.writeHead(status).end(JSON.stringify(body))
    readAll(incoming)
      .then((text) => perform(admin, incoming.url?.slice(1) ?? '', text))
      .then(
        (result) => answer(200, result),
        (error: unknown) => answer(500, { error: error instanceof Error ? error.message : 'failed' }),
      )
  })
  await rm(socketPath(dataDir), { force: true })
  await new Promise<void>((done, fail) => server.once('error', fail).listen(socketPath(dataDir), done))
  return () => new Promise((done) => server.close(() => done()))
}

async function perform(admin: Admin, name: string, text: string): Promise<unknown> {
  if (!Object.hasOwn(operations, name)) throw new Error('no such operation')
  const operation = name as Name
  const run = admin[operation] as (given: unknown) => Promise<unknown>
  return run(operations[operation].takes.parse(JSON.parse(text)))
}

export function connectAdmin(dataDir: string): Admin {
  const call =
    <N extends Name>(name: N) =>
    async (given: z.output<Operations[N]['takes']>): Promise<z.output<Operations[N]['gives']>> => {
      const text = await post(socketPath(dataDir), name, JSON.stringify(given))
      return operations[name].gives.parse(JSON.parse(text)) as z.output<Operations[N]['gives']>
    }
  return {
    createApiKey: call('createApiKey'),
    listApiKeys: call('listApiKeys'),
    revokeApiKey: call('revokeApiKey'),
    renameApiKey: call('renameApiKey'),
    rotateApiKey: call('rotateApiKey'),
    auditLog: call('auditLog'),
    stakeKeys: call('stakeKeys'),
    exportsOf: call('exportsOf'),
    backUp: call('backUp'),
    missingStakes: call('missingStakes'),
    dismissMissing: call('dismissMissing'),
    claimPlace: call('claimPlace'),
    noteProvisioned: call('noteProvisioned'),
  }
}

/** A copy of a large database takes a while. */
const answerMs = 600_000

const post = (path: string, name: string, body: string) =>
  new Promise<string>((done, fail) => {
    const outgoing = request({ socketPath: path, path: `/${name}`, method: 'POST', timeout: answerMs }, (incoming) => {
      readAll(incoming).then(
        (text) => (incoming.statusCode === 200 ? done(text) : fail(new Error(`the running service refused: ${text}`))),
        fail,
      )
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('the running service does not answer')))
    outgoing.on('error', fail)
    outgoing.end(body)
  })

async function readAll(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

/** Does something as the administrator: on the database itself, or through the service that has it open. */
export async function asAdmin<T>(database: DatabaseConfig, clock: Clock, work: (admin: Admin) => Promise<T>): Promise<T> {
  let store: Store
  try {
    store = await openStore(database)
  } catch (error) {
    if (error instanceof DatabaseInUseError && database.kind === 'embedded') return work(connectAdmin(database.dataDir))
    throw error
  }
  try {
    return await work(createAdmin({ store, clock }))
  } finally {
    await store.close()
  }
}
