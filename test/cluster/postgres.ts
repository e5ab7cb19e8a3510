import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { freePort } from './ports.ts'
import { findOnPath, type RunningProcess, startProcess } from './process.ts'
import { runToEnd } from './run.ts'

export interface Postgres {
  /** postgresql://postgres:<password>@127.0.0.1:<port>/postgres; the same over `kill` and `restart`. */
  readonly url: string
  /** Where pg_dump, pg_restore and psql of the same version are. */
  readonly bin: string
  pid(): number
  /** Makes an empty database; returns its URL. */
  createDatabase(name: string): Promise<string>
  /** Ends it at once (SIGKILL), as a crash of the server. What was committed is there after `restart`. */
  kill(): Promise<void>
  /** Ends it, if it runs, and starts it again on the same port. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/**
 * Starts a real PostgreSQL server on a free port of 127.0.0.1, with no Unix socket and without fsync (a crash of the process loses nothing, one of the
 * machine would). PostgreSQL refuses to run as root: it then runs as the user `postgres`, else `nobody`.
 * @throws with how to install it when it isn't there.
 */
export async function startPostgres(): Promise<Postgres> {
  const bin = findBin(process.env.PATH ?? '')
  const user = await unprivilegedUser()
  const dir = mkdtempSync(join(tmpdir(), 'staking-postgres-'))
  const data = join(dir, 'data')
  const password = randomBytes(16).toString('hex')
  const passwordFile = join(dir, 'password')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  chmodSync(dir, 0o700)
  if (user !== undefined) for (const path of [dir, passwordFile]) chownSync(path, user.uid, user.gid)

  const port = await freePort()
  const urlOf = (database: string): string => `postgresql://postgres:${password}@127.0.0.1:${port}/${database}`
  const url = urlOf('postgres')
  let server: RunningProcess | undefined
  const start = async (): Promise<RunningProcess> =>
    startProcess({
      name: 'postgres',
      command: join(bin, 'postgres'),
      args: [
        ...['-D', data, '-p', String(port)],
        ...['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off', 'full_page_writes=off'].flatMap((setting) => [
          '-c',
          setting,
        ]),
        // Segments in the data folder, not in /dev/shm: they go with it.
        ...['-c', 'dynamic_shared_memory_type=mmap', '-c', 'max_connections=100'],
      ],
      cwd: dir,
      ...(user === undefined ? {} : { user }),
      // "Fast" and "immediate" shutdown in PostgreSQL's terms; the latter also frees its shared memory.
      scratch: dir,
      stopSignal: 'SIGINT',
      deathSignal: 'SIGQUIT',
      readyWhen: async () => {
        await query(url, 'select 1')
        return true
      },
    })
  const stop = async (): Promise<void> => {
    await server?.stop(5_000)
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
  }
  try {
    const initdb = await runToEnd({
      command: join(bin, 'initdb'),
      args: ['-D', data, '-U', 'postgres', `--pwfile=${passwordFile}`, '-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-sync'],
      env: { PGDATA: undefined },
      cwd: dir,
      ...(user === undefined ? {} : { user }),
      signal: AbortSignal.timeout(60_000),
    })
    if (initdb.code !== 0) throw new Error(`initdb failed: ${initdb.stderr.trim()}`)
    server = await start()
  } catch (error) {
    await stop()
    throw error
  }
  const kill = async (): Promise<void> => {
    server?.kill('SIGKILL')
    await server?.exited
  }
  return {
    url,
    bin,
    pid: () => server?.pid ?? -1,
    createDatabase: async (name) => {
      if (!/^[a-z][a-z0-9_]{0,62}$/.test(name)) throw new Error(`"${name}" is not a plain name for a database`)
      await query(url, `create database ${name}`)
      return urlOf(name)
    },
    kill,
    restart: async () => {
      await server?.stop(5_000)
      server = await start()
    },
    stop,
  }
}

async function query(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 20_000 })
  client.on('error', () => {}) // the server ends under it: the query says so
  try {
    await client.connect()
    await client.query(text)
  } finally {
    await client.end().catch(() => {})
  }
}

/** The folder of initdb and postgres: the newest of Debian's and Homebrew's layouts, else where PATH has them. */
function findBin(path: string): string {
  const versions = ['/usr/lib/postgresql', '/usr/pgsql', '/opt/homebrew/opt', '/usr/local/opt']
    .flatMap((base) => folders(base).map((name) => ({ version: Number(/(\d+)$/.exec(name)?.[1] ?? 0), bin: join(base, name, 'bin') })))
    .filter(({ bin }) => existsSync(join(bin, 'initdb')) && existsSync(join(bin, 'postgres')))
    .toSorted((a, b) => b.version - a.version)
  const onPath = findOnPath('initdb', path)
  const bin = versions[0]?.bin ?? (onPath !== undefined && existsSync(join(dirname(onPath), 'postgres')) ? dirname(onPath) : undefined)
  if (bin === undefined) {
    throw new Error(
      'PostgreSQL (initdb and postgres) is not on this machine: install it, on Debian and Ubuntu by `apt-get install postgresql`',
    )
  }
  return bin
}

const folders = (base: string): readonly string[] => (existsSync(base) ? readdirSync(base) : [])

/** Whom to run as when we are root. */
async function unprivilegedUser(): Promise<{ readonly uid: number; readonly gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = await Promise.all(
      ['-u', '-g'].map((flag) => runToEnd({ command: 'id', args: [flag, name], signal: AbortSignal.timeout(5_000) })),
    )
    if (uid?.code === 0 && gid?.code === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  }
  throw new Error('PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody` to run it as')
}
