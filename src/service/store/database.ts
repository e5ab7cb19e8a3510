import { Kysely, PGliteDialect, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Secret } from '../../lib/secret.ts'
import { guardedPool } from './guarded-pool.ts'
import { migrate } from './migrations.ts'
import { openPglite } from './pglite.ts'
import type { Database } from './schema.ts'

export { DatabaseUnavailableError, isOutage } from './guarded-pool.ts'
export { DatabaseInUseError } from './pglite.ts'
export type { Database } from './schema.ts'

/** Where the data is: a PostgreSQL server, or a folder of this machine (`memory://` for tests: gone with the process). */
export type DatabaseConfig =
  | { readonly kind: 'postgres'; readonly url: Secret; readonly poolSize: number }
  | { readonly kind: 'embedded'; readonly dataDir: string }

export interface Store {
  readonly db: Kysely<Database>
  /** Of a server's connections; the embedded database has none. */
  readonly connections?: () => { readonly busy: number; readonly idle: number; readonly waiting: number }
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
  const { pglite, close } = await openPglite(dataDir)
  return { db: new Kysely<Database>({ dialect: new PGliteDialect({ pglite }) }), close }
}

function openPostgres(
  url: Secret,
  { poolSize, statementMs }: { poolSize: number; statementMs: number },
  onIdleError: (error: Error) => void,
): Store {
  const pool = new pg.Pool({
    connectionString: url.reveal(),
    max: poolSize,
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
  const db = new Kysely<Database>({
    dialect: new PostgresDialect({ pool: guardedPool(pool, { statementMs, maxWaiting: poolSize * waitingPerConnection }) }),
  })
  const connections = () => ({ busy: pool.totalCount - pool.idleCount, idle: pool.idleCount, waiting: pool.waitingCount })
  return { db, connections, close: () => db.destroy() }
}

/** SQLSTATE 23505: another row holds this key. */
export const isUniqueViolation = (error: unknown, ...constraints: readonly string[]): boolean =>
  error instanceof Error &&
  'code' in error &&
  error.code === '23505' &&
  (constraints.length === 0 || ('constraint' in error && constraints.includes(String(error.constraint))))
