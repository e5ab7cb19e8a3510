import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './ports.ts'
import { type RunningProcess, startProcess } from './process.ts'

export interface Etcd {
  readonly url: string
  readonly process: RunningProcess
  /** Compacts the key space at its present revision and returns that. */
  compact(): Promise<bigint>
  /** Stops, keeps a copy of the data, starts again: what `restore` goes back to. */
  backUp(): Promise<void>
  /** Stops, puts the copy in place of the data, starts again on the same port. All that was written since is gone, and revisions are given out anew. */
  restore(): Promise<void>
}

/** Starts etcd on free loopback ports, without fsync: fast, and safe as long as the machine itself doesn't fail. */
export async function startEtcd({ command, dir }: { readonly command: string; readonly dir: string }): Promise<Etcd> {
  const data = join(dir, 'etcd')
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const [clientPort, peerPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${clientPort}`
  const peerUrl = `http://127.0.0.1:${peerPort}`
  const run = (): Promise<RunningProcess> =>
    startProcess({
      name: 'etcd',
      command,
      args: [
        '--name=test',
        `--data-dir=${data}`,
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=test=${peerUrl}`,
        '--unsafe-no-fsync',
        '--log-level=warn',
      ],
      logFile: join(dir, 'etcd.log'),
      scratch: dir,
      readyWhen: async ({ signal }) => (await fetch(`${url}/health`, { signal })).ok,
      readyTimeoutMs: 30_000,
    })
  let process = await run()
  const whileStopped = async (work: () => void): Promise<void> => {
    await process.stop(5_000)
    work()
    process = await run()
  }
  const copy = join(dir, 'etcd-backup')
  const replace = (from: string, to: string): void => {
    rmSync(to, { recursive: true, force: true })
    cpSync(from, to, { recursive: true })
  }
  /** etcd's JSON gateway: bytes are base64, 64-bit integers are strings. */
  const call = async (path: string, body: unknown): Promise<unknown> => {
    const response = await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(10_000) })
    if (!response.ok) throw new Error(`etcd answered ${response.status} to ${path}: ${(await response.text()).slice(0, 200)}`)
    return response.json()
  }
  return {
    url,
    get process() {
      return process
    },
    backUp: () => whileStopped(() => replace(data, copy)),
    restore: () => whileStopped(() => replace(copy, data)),
    compact: async () => {
      const { header } = (await call('/v3/kv/range', { key: Buffer.from('/').toString('base64'), limit: '1' })) as {
        header: { revision: string }
      }
      await call('/v3/kv/compaction', { revision: header.revision, physical: true })
      return BigInt(header.revision)
    },
  }
}
