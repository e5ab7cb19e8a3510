import type { PostgresPool, PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { preparedName } from './prepared.ts'

/** The database can't be asked now. What was asked may have been done all the same, when the last thing asked was a commit. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError'
  /** `busy`: it answers, and too much waits for it already. */
  readonly kind: 'away' | 'busy'
  constructor(kind: 'away' | 'busy', message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
  }
}

export interface PoolLimits {
  /** For one statement, from sending it to its whole answer. */
  readonly statementMs: number
  /** So many may wait for a connection; further ones are refused at once. */
  readonly maxWaiting: number
}

/**
 * A client that is never without a listener for its errors. The pool takes its own away when it hands a client on, and whoever gets it adds one a turn later: a server that
 * is killed just then says so in between (with the words that let the client in, it may be one piece), and an error that nobody hears ends the process.
 */
export class HeardClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    // What it can't do any more, its next query says.
    this.on('error', () => undefined)
  }
}

/** A stalled event loop fires the timer before it reads the answer that has come meanwhile: so long it may still be read. */
const graceMs = 100

/**
 * The pool as Kysely takes it, with an end to every wait: for a connection (the pool's own `connectionTimeoutMillis`, and a bound on how many wait), and for
 * an answer. A server that is frozen keeps its connections open and says nothing; a connection on which an answer is overdue is thrown away.
 */
export function guardedPool(pool: pg.Pool, { statementMs, maxWaiting }: PoolLimits): PostgresPool {
  const guards = new WeakMap<pg.PoolClient, PostgresPoolClient>()
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      if (pool.waitingCount >= maxWaiting) {
        throw new DatabaseUnavailableError('busy', `${maxWaiting} wait for a connection of the database already`)
      }
      const client = await pool.connect().catch((error: unknown) => {
        const busy = pool.idleCount === 0 && pool.totalCount >= (pool.options.max ?? 1) && isTimeout(error)
        throw isOutage(error) || isTimeout(error)
          ? new DatabaseUnavailableError(busy ? 'busy' : 'away', 'no connection of the database could be had in time', error)
          : error
      })
      const guard = guards.get(client) ?? guardClient(client, statementMs)
      guards.set(client, guard)
      return guard
    },
  }
}

function guardClient(client: pg.PoolClient, statementMs: number): PostgresPoolClient {
  let broken: Error | undefined
  // Lost between two statements, nobody waits for an answer that could fail: without a listener, this would end the process.
  client.on('error', (error: Error) => {
    broken ??= error
  })
  const query = async (text: string, parameters: readonly unknown[]) => {
    if (broken !== undefined) throw new DatabaseUnavailableError('away', 'the connection of the database was given up', broken)
    const name = preparedName(text)
    const answer = client.query({ text, values: [...parameters], ...(name === undefined ? {} : { name }) })
    try {
      return await inTime(answer, statementMs)
    } catch (error) {
      if (isOutage(error)) {
        broken = error as Error
        answer.catch(() => undefined)
        throw error instanceof DatabaseUnavailableError
          ? error
          : new DatabaseUnavailableError('away', 'the connection of the database was lost', error)
      }
      throw error
    }
  }
  const guarded = {
    get processID() {
      return (client as unknown as { readonly processID?: number }).processID
    },
    query,
    release: () => client.release(broken),
  }
  return guarded as unknown as PostgresPoolClient
}

/** @throws DatabaseUnavailableError when there is none */
export async function inTime<T>(answer: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>()
  let timer = setTimeout(() => {
    timer = setTimeout(() => late.reject(new DatabaseUnavailableError('away', `the database gave no answer in ${ms} ms`)), graceMs)
  }, ms)
  try {
    return await Promise.race([answer, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && /timeout exceeded when trying to connect|timeout expired/i.test(error.message)

/** Codes of the system: nobody is there, or nobody is any more. */
const systemCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
])
/** SQLSTATE: connection exceptions (08), out of resources (53), shut down, crashed or starting (57P01 to 57P05), read-only after a failover (25006), cancelled by its time-out (57014), lock not had (55P03), given up for another that it waited for (40001, 40P01). */
const outageStates = /^(08...|53...|57P0[1-5]|25006|57014|55P03|40001|40P01)$/

/** Whether an error of the driver says that the database can't serve now, and not that the statement is wrong. */
export function isOutage(error: unknown): boolean {
  if (error instanceof DatabaseUnavailableError) return true
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  if (code !== undefined && (systemCodes.has(code) || outageStates.test(code))) return true
  return (
    code === undefined &&
    /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout)/.test(error.message)
  )
}
