import type { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import type { Secret } from '../../lib/secret.ts'

/** Notices of the database, as PostgreSQL's LISTEN gives them. */
export interface Notices {
  /** Whether every notice from now on is heard. */
  hears(): boolean
  close(): Promise<void>
}

export interface NoticeHandlers {
  readonly onNotice: (payload: string) => void
  /** Notices may have been missed. */
  readonly onGap: () => void
  /** `false` where nobody waits until they were heard (`Store.heard`): each then costs nothing but itself. */
  readonly isAcknowledged?: false
}

/** "stakingkeys" in a word: of all that lock by number in this database, nobody else takes this one. */
export const hearersLock = 8_392_761_053n
const connectMs = 2_000
const againMs = 1_000

/**
 * Listens on a connection of its own, and again whenever that is lost. Never throws: while it hears nothing, it says so. While it hears, it shares a lock, and
 * lets go of it after each notice: who takes the lock alone knows that all have heard (see `Store.heard`).
 */
export function listenPostgres(url: Secret, channel: string, { onNotice, onGap, isAcknowledged }: NoticeHandlers): Notices {
  let current: pg.Client | undefined
  let hearing = false
  let closed = false
  let timer: NodeJS.Timeout | undefined

  const lost = (client: pg.Client) => {
    if (current !== client) return
    current = undefined
    hearing = false
    onGap()
    client.end().catch(() => undefined)
    if (!closed) timer = setTimeout(() => void connect(), againMs).unref()
  }

  /** One after another: each lets go of the lock once. */
  let acknowledged: Promise<unknown> = Promise.resolve()
  const acknowledge = (client: pg.Client) => {
    hearing = false
    acknowledged = acknowledged
      .then(async () => {
        await client.query(`select pg_advisory_unlock_shared(${hearersLock})`)
        await client.query(`select pg_advisory_lock_shared(${hearersLock})`)
        hearing = current === client
      })
      .catch(() => lost(client))
  }

  async function connect(): Promise<void> {
    const client = new pg.Client({
      connectionString: url.reveal(),
      connectionTimeoutMillis: connectMs,
      keepAlive: true,
      application_name: 'staking-operator notices',
    })
    current = client
    client.on('error', () => lost(client))
    client.on('end', () => lost(client))
    client.on('notification', ({ payload }) => {
      onNotice(payload ?? '')
      if (isAcknowledged !== false) acknowledge(client)
    })
    try {
      await client.connect()
      await client.query(`listen ${channel}`)
      if (isAcknowledged !== false) await client.query(`select pg_advisory_lock_shared(${hearersLock})`)
      // What was told before this, nobody has heard.
      onGap()
      if (current === client) hearing = true
    } catch {
      lost(client)
    }
  }
  void connect()

  return {
    hears: () => hearing,
    close: async () => {
      closed = true
      hearing = false
      clearTimeout(timer)
      const client = current
      current = undefined
      // A server that is frozen answers nothing.
      await Promise.race([client?.end().catch(() => undefined), new Promise((done) => setTimeout(done, 500).unref())])
    },
  }
}

/** The same of the database in this process: it loses nothing. */
export function listenPglite(pglite: PGlite, channel: string, { onNotice, onGap }: NoticeHandlers): Notices {
  let hearing = false
  const listening = pglite
    .listen(channel, onNotice)
    .then((stop) => {
      onGap()
      hearing = true
      return stop
    })
    .catch(() => undefined)
  return {
    hears: () => hearing,
    close: async () => {
      hearing = false
      await (await listening)?.().catch(() => undefined)
    },
  }
}
