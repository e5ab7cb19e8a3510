import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { Anvil } from '../../chains/anvil.ts'
import { freePort } from '../../cluster/ports.ts'
import { type RunningProcess, startProcess } from '../../cluster/process.ts'
import { COMPILE_CACHE } from '../../stack/compile-cache.ts'
import { programFile } from '../../stack/programs.ts'
import { networkConfig } from './harness.ts'

export interface ServiceFiles {
  readonly folder: string
  readonly config: string
  readonly seedHex: string
  /** Of the embedded database. */
  readonly dataDir: string
  remove(): void
}

/** A folder with a configuration and a seed, where the embedded database will be. */
export function serviceFiles(anvil: Anvil, more: object = {}): ServiceFiles {
  const folder = mkdtempSync(join(tmpdir(), 'staking-service-'))
  const dataDir = join(folder, 'data')
  const seedHex = randomBytes(32).toString('hex')
  writeFileSync(join(folder, 'seed'), `${seedHex}\n`)
  const config = join(folder, 'service.yaml')
  writeFileSync(
    config,
    stringify({
      listen: { host: '127.0.0.1', port: 0 },
      database: { dataDir },
      seedFile: join(folder, 'seed'),
      networks: [{ ...networkConfig('devnet', { rpcUrls: [anvil.url] }) }],
      trackerIntervalMs: 100,
      drainMs: 300,
      ...more,
    }),
  )
  return { folder, config, seedHex, dataDir, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** The service as a process of its own. */
export async function spawnService(
  config: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ process: RunningProcess; url: string }> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const process_ = await startProcess({
    name: 'staking service',
    command: process.execPath,
    args: [programFile('test/integration/service/child.ts'), config],
    env: { ...COMPILE_CACHE, ...env, STAKING_SERVICE_PORT: String(port), NODE_NO_WARNINGS: '1' },
    readyTimeoutMs: 120_000,
    readyWhen: async () => (await fetch(`${url}/readyz`)).ok,
  })
  return { process: process_, url }
}
