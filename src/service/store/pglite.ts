import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { extname, join, resolve } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'
import { copyFolder } from './copy-folder.ts'
import { noRoom } from './no-room.ts'

/**
 * PostgreSQL in this process, its files in a folder. PGlite by itself runs with fsync off, and its file system has no fsync to call: a commit
 * survives the end of the process but not of the machine. Here fsync is on and reaches the disk, so that "committed" means what it says.
 */
class DurableNodeFs extends NodeFS {
  override async init(...args: Parameters<NodeFS['init']>): ReturnType<NodeFS['init']> {
    const { emscriptenOpts } = await super.init(...args)
    return { emscriptenOpts: { ...emscriptenOpts, preRun: [...(emscriptenOpts.preRun ?? []), addFsync] } }
  }
}

/** The part of emscripten's NODEFS that is used here; PGlite doesn't type it. */
interface WithNodeFs {
  NODEFS: { stream_ops: { fsync?: (stream: { nfd?: number; node?: { mount?: unknown } }) => number } }
}
function addFsync(module: object): void {
  ;(module as WithNodeFs).NODEFS.stream_ops.fsync = (stream) => {
    if (stream.nfd !== undefined) fsyncSync(stream.nfd)
    return 0
  }
}

/** 128 MB of shared buffers is PostgreSQL's default, all of it this process's memory; the data of this service is small. */
const startParams = [
  ...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'),
  ...['-c', 'wal_sync_method=fsync', '-c', 'shared_buffers=16MB'],
]
/** `int8` as bigint always: PGlite would give a number where it fits. */
const parsers = { 20: (text: string) => BigInt(text) }

/** Where the database is in its folder, and in a copy's. */
export const databaseFiles = (folder: string): string => join(folder, 'pgdata')

/** The embedded database belongs to one process at a time. */
export class DatabaseInUseError extends Error {
  override readonly name = 'DatabaseInUseError'
}

/** It did not start, and there is no room on its disk. */
export class DatabaseFullError extends Error {
  override readonly name = 'DatabaseFullError'
}

/**
 * @param dataDir A folder, or `memory://`, for tests: with the path of a PGlite dump behind it, it begins as that.
 * @throws DatabaseInUseError when another process has the folder open, DatabaseFullError when it can't be opened and its disk is full.
 */
export async function openPglite(
  dataDir: string,
): Promise<{ pglite: PGlite; copyTo?: (target: string) => Promise<void>; close: () => Promise<void> }> {
  if (dataDir.startsWith('memory://')) {
    const dump = dataDir.slice('memory://'.length)
    const begins = dump === '' ? {} : { loadDataDir: new Blob([await readFile(dump)]) }
    const pglite = await PGlite.create({ dataDir: 'memory://', parsers, ...begins })
    return { pglite, close: async () => pglite.close() }
  }
  const folder = resolve(dataDir)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const unlock = await lockFolder(folder)
  try {
    const files = databaseFiles(folder)
    await makeFiles(files)
    const pglite = await PGlite.create({ fs: new DurableNodeFs(files), startParams, parsers })
    syncFolder(folder)
    return {
      pglite,
      // Between two statements, and none runs meanwhile: the files are those of a database that was cut off at this moment, which it recovers from.
      copyTo: (target) => pglite.runExclusive(() => copyFolder(files, databaseFiles(target))),
      close: async () => {
        await pglite.close()
        await unlock()
      },
    }
  } catch (error) {
    await unlock()
    // PostgreSQL says of it no more than that it did not start.
    const full = noRoom(folder)
    throw full === undefined ? error : new DatabaseFullError(full, { cause: error })
  }
}

/**
 * Makes the files of a new database, in a process of its own (see `init-pglite.ts`), and under another name first: one that was killed half way leaves nothing
 * that looks like a database.
 */
async function makeFiles(files: string): Promise<void> {
  if (existsSync(join(files, 'PG_VERSION'))) return
  const making = `${files}.new`
  rmSync(making, { recursive: true, force: true })
  const script = join(import.meta.dirname, `init-pglite${extname(import.meta.filename)}`)
  const child = spawn(process.execPath, ['--liftoff-only', '--no-warnings', script, making], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said = `${said}${chunk}`.slice(-2_000)
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  if (code !== 0) {
    rmSync(making, { recursive: true, force: true })
    const how = signal === 'SIGKILL' ? 'was killed: it needs 896 MiB of memory' : `failed (${code ?? signal}): ${said.trim()}`
    throw new Error(`making the files of the embedded database ${how}`)
  }
  rmSync(files, { recursive: true, force: true })
  renameSync(making, files)
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Two processes on the same files destroy them, and PGlite doesn't look. A listening Unix socket in the folder is the lock: it ends with its
 * process, whatever ended it, and works between containers that share a volume, where process ids mean nothing.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = join(folder, 'lock')
  if (Buffer.byteLength(path) > 100) throw new Error(`the path of the database folder is too long for its lock: ${folder}`)
  const inUse = () =>
    new DatabaseInUseError(`the database folder ${folder} is in use by another process: run one instance per folder, or use PostgreSQL`)
  if ((await askHolder(path)) !== undefined) throw inUse()
  rmSync(path, { force: true })
  const token = randomUUID()
  const server = createServer((socket) => socket.end(token).on('error', () => undefined))
  server.unref()
  await listen(server, path).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EADDRINUSE' ? inUse() : error
  })
  // Whoever started at the same moment may have removed our socket for a stale one: ask who answers now.
  if ((await askHolder(path)) !== token) {
    server.close()
    throw inUse()
  }
  return () => new Promise((done) => server.close(() => done()))
}

const listen = (server: Server, path: string) =>
  new Promise<void>((done, fail) => {
    server.once('error', fail)
    server.listen(path, () => done())
  })

/** What the holder of the lock says of itself; undefined when nobody answers. */
const askHolder = (path: string) =>
  new Promise<string | undefined>((done) => {
    let answer = ''
    const socket = connect(path)
    socket.setTimeout(2_000, () => socket.destroy())
    socket.on('data', (chunk) => {
      answer += chunk.toString()
    })
    socket.on('error', (error: NodeJS.ErrnoException) =>
      done(error.code === 'ENOENT' || error.code === 'ECONNREFUSED' ? undefined : 'unknown'),
    )
    socket.on('close', () => done(answer === '' ? 'unknown' : answer))
  })
