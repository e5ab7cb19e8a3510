import { Kysely, PGliteDialect, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import type { Secret } from '../../lib/secret.ts'
import { guardedPool, HeardClient } from './guarded-pool.ts'
import { hearersLock, listenPglite, listenPostgres, type NoticeHandlers, type Notices } from './listen.ts'
import { migrate } from './migrations.ts'
import { noRoom, rememberRefusals } from './no-room.ts'
import { openPglite } from './pglite.ts'
import type { Database } from './schema.ts'
import { traced } from './traced-dialect.ts'

export { DatabaseUnavailableError, isOutage } from './guarded-pool.ts'
export { DatabaseFullError, DatabaseInUseError } from './pglite.ts'
export type { Database } from './schema.ts'

/** Where the data is: a PostgreSQL server, or a folder of this machine (`memory://` for tests: gone with the process). */
export type DatabaseConfig =
  | { readonly kind: 'postgres'; readonly url: Secret; readonly poolSize: number }
  | { readonly kind: 'embedded'; readonly dataDir: string }

export interface Store {
  readonly db: Kysely<Database>
  /** Whether other processes may have it open. */
  readonly isShared: boolean
  /** For looks that many wait for together: they don't wait behind all that waits for `db`. */
  readonly looks: Kysely<Database>
  /** Of a server's connections; the embedded database has none. */
  readonly connections?: () => { readonly busy: number; readonly idle: number; readonly waiting: number }
  /** Why it answers, and takes no writes; undefined where it does, or nobody has tried. */
  readOnly(): string | undefined
  /** Hears what the database tells on a channel. It ends with the store. */
  listen(channel: string, handlers: NoticeHandlers): Notices
  /** Resolves when all who listen on the channel have heard what was told before, or after `withinMs`. Never throws. */
  heard(channel: string, withinMs: number): Promise<void>
  /** Copies the embedded database, as it is at one moment, into a folder that is not there yet. A server's is copied by its own tools. */
  copyTo?(folder: string): Promise<void>
  close(): Promise<void>
}

const int8 = 20

/** Opens the database and brings its tables up to date. @throws Error when it can't be reached, is in use, or belongs to a newer version. */
export async function openStore(config: DatabaseConfig, onIdleError: (error: Error) => void = () => undefined): Promise<Store> {
  if (config.kind === 'embedded') return migrated(await openEmbedded(config.dataDir))
  // Instances that start together wait for one another's migration: those statements have longer than any later one.
  await (await migrated(openPostgres(config.url, { poolSize: 2, statementMs: migrationMs }, onIdleError))).close()
  return openPostgres(config.url, { poolSize: config.poolSize, statementMs }, onIdleError)
}

async function migrated(store: Store): Promise<Store> {
  try {
    await migrate(store.db)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Of a request's five seconds: time for one wait for a connection, and for one answer that doesn't come. */
const connectMs = 1_800
const statementMs = 2_500
const migrationMs = 60_000
/** For each connection of the pool: a few statements' time. */
const waitingPerConnection = 40

async function openEmbedded(dataDir: string): Promise<Store> {
  const { pglite, copyTo, close } = await openPglite(dataDir)
  const notices = createListeners((channel, handlers) => listenPglite(pglite, channel, handlers))
  const refusals = rememberRefusals()
  const db = new Kysely<Database>({ dialect: traced(new PGliteDialect({ pglite })), log: refusals.heard })
  return {
    db,
    isShared: false,
    readOnly: () => (dataDir.startsWith('memory://') ? undefined : noRoom(dataDir)) ?? refusals.lately(),
    // Those who use `db` wait for one another before they come here: of both, the next turn is never far.
    looks: new Kysely<Database>({ dialect: traced(new PGliteDialect({ pglite })) }),
    listen: notices.listen,
    // They are told with the answer of the statement.
    heard: () => new Promise((done) => setImmediate(done)),
    ...(copyTo === undefined
      ? {}
      : {
          // On the one connection: nobody is in a transaction.
          copyTo: (folder) =>
            db.connection().execute(async (connection) => {
              await sql`checkpoint`.execute(connection)
              await copyTo(folder)
            }),
        }),
    close: async () => {
      await notices.close()
      await close()
    },
  }
}

function openPostgres(
  url: Secret,
  { poolSize, statementMs }: { poolSize: number; statementMs: number },
  onIdleError: (error: Error) => void,
): Store {
  const refusals = rememberRefusals()
  const connect = (max: number) => {
    const pool = new pg.Pool({
      Client: HeardClient,
      connectionString: url.reveal(),
      max,
      connectionTimeoutMillis: connectMs,
      // Whatever this side has given up, the server gives up too: its locks are free when the request comes again.
      statement_timeout: statementMs,
      idle_in_transaction_session_timeout: 10_000,
      keepAlive: true,
      application_name: 'staking-operator',
      types: {
        getTypeParser: (oid: number, format?: 'text' | 'binary') =>
          oid === int8
            ? (text: string) => BigInt(text)
            : format === 'binary'
              ? pg.types.getTypeParser(oid, 'binary')
              : pg.types.getTypeParser(oid, 'text'),
      },
    })
    // Without a listener a dropped idle connection would end the process; the pool makes a new one by itself.
    pool.on('error', onIdleError)
    const guarded = guardedPool(pool, { statementMs, maxWaiting: max * waitingPerConnection })
    return { pool, db: new Kysely<Database>({ dialect: traced(new PostgresDialect({ pool: guarded })), log: refusals.heard }) }
  }
  const { pool, db } = connect(poolSize)
  // One is enough: it is asked one question at a time.
  const looks = connect(1).db
  const connections = () => ({ busy: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount })
  const notices = createListeners((channel, handlers) => listenPostgres(url, channel, handlers))
  return {
    db,
    isShared: true,
    looks,
    readOnly: refusals.lately,
    connections,
    listen: notices.listen,
    heard: (channel, withinMs) => untilHeard(db, channel, withinMs),
    close: async () => {
      await notices.close()
      await Promise.all([db.destroy(), looks.destroy()])
    },
  }
}

const tellAgainMs = 50

/**
 * Asks for the lock that the listeners share: it is had when each has let go of it once. They do so at a notice, and one that came before this waited in the
 * queue would not be enough: the channel is told again until it is had.
 */
async function untilHeard(db: Kysely<Database>, channel: string, withinMs: number): Promise<void> {
  const end = performance.now() + withinMs
  while (performance.now() < end) {
    let had: boolean | undefined
    const lock = sql`select pg_advisory_xact_lock(${sql.lit(Number(hearersLock))})`.execute(db).then(
      () => {
        had = true
      },
      // The statement's time-out, or the database is away.
      () => {
        had = false
      },
    )
    while (had === undefined) {
      await Promise.race([lock, new Promise((done) => setTimeout(done, tellAgainMs))])
      if (had === undefined) await sql`select pg_notify(${channel}, '')`.execute(db).catch(() => undefined)
    }
    if (had) return
    await new Promise((done) => setTimeout(done, tellAgainMs))
  }
}

function createListeners(start: Store['listen']) {
  const all: Notices[] = []
  const listen: Store['listen'] = (channel, handlers) => {
    const notices = start(channel, handlers)
    all.push(notices)
    return notices
  }
  return { listen, close: () => Promise.all(all.splice(0).map((one) => one.close())) }
}

/** SQLSTATE 23505: another row holds this key. */
export const isUniqueViolation = (error: unknown, ...constraints: readonly string[]): boolean =>
  error instanceof Error &&
  'code' in error &&
  error.code === '23505' &&
  (constraints.length === 0 || ('constraint' in error && constraints.includes(String(error.constraint))))
