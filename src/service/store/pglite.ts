import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { join, resolve } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'

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

const startParams = [...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'), '-c', 'wal_sync_method=fsync']
/** `int8` as bigint always: PGlite would give a number where it fits. */
const parsers = { 20: (text: string) => BigInt(text) }

/** The embedded database belongs to one process at a time. */
export class DatabaseInUseError extends Error {
  override readonly name = 'DatabaseInUseError'
}

/** @throws DatabaseInUseError when another process has the folder open. */
export async function openPglite(dataDir: string): Promise<{ pglite: PGlite; close: () => Promise<void> }> {
  if (dataDir.startsWith('memory://')) {
    const pglite = await PGlite.create({ dataDir, parsers })
    return { pglite, close: async () => pglite.close() }
  }
  const folder = resolve(dataDir)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const unlock = await lockFolder(folder)
  try {
    const files = join(folder, 'pgdata')
    const pglite = await PGlite.create({ fs: new DurableNodeFs(files), startParams, parsers })
    syncFolder(folder)
    return {
      pglite,
      close: async () => {
        await pglite.close()
        await unlock()
      },
    }
  } catch (error) {
    await unlock()
    throw error
  }
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
async function lockFolder(folder: string): Promise<() => Promise<void>> {
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
