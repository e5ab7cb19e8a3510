import { accessSync, chmodSync, constants, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { withLock } from '../cluster/assets-lock.ts'
import { cacheDir } from '../cluster/cache-dir.ts'
import { buildClient } from './assets-build.ts'
import { CLIENTS, type DevnetClient, type DevnetProgram, programsOf } from './clients.ts'

/** Paths of the programs. */
export type DevnetAssets = Readonly<Record<DevnetProgram, string>>

export interface DevnetAssetsOptions {
  /** XDG_CACHE_HOME, PATH and what Go reads (GOPROXY, GOMAXPROCS, …). */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Takes a line for people, now and then: the first time takes minutes. */
  readonly log: (line: string) => void
  readonly signal: AbortSignal
  /** How often the log hears of a long step, ms; default 15,000. */
  readonly progressMs?: number
}

/**
 * Finds geth, Prysm's beacon node, validator client and prysmctl in this user's cache (`~/.cache/staking-operator/devnet/<client>-<version>-<os>-<arch>`),
 * or builds them with Go, once: about ten minutes on two cores. Each program appears whole or not at all; a lock keeps two processes from building twice.
 * @throws with what to do.
 */
export async function findDevnetAssets(options: DevnetAssetsOptions): Promise<DevnetAssets> {
  const found: Partial<Record<DevnetProgram, string>> = {}
  // One after the other: each build takes all cores.
  for (const client of CLIENTS) {
    const folder = await fill(client, options)
    for (const program of programsOf(client)) found[program] = join(folder, program)
  }
  const path = (program: DevnetProgram): string => found[program] ?? ''
  return { geth: path('geth'), 'beacon-chain': path('beacon-chain'), validator: path('validator'), prysmctl: path('prysmctl') }
}

/** As Go names them. */
const os = process.platform
const arch = process.arch === 'x64' ? 'amd64' : process.arch

/** Where a client's programs are kept. */
export const clientCache = (client: DevnetClient, env: DevnetAssetsOptions['env']): string =>
  join(cacheDir(env), 'devnet', `${client.name}-${client.version}-${os}-${arch}`)

async function fill(client: DevnetClient, options: DevnetAssetsOptions): Promise<string> {
  const { env, log, signal, progressMs = 15_000 } = options
  const cache = clientCache(client, env)
  const missing = (): boolean => programsOf(client).some((program) => !isProgram(join(cache, program)))
  if (!missing()) return cache
  const began = performance.now()
  let current = `${client.name}: waiting for the lock`
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - began) / 1000)
    log(`devnet: ${current} (${Math.floor(seconds / 60)} min ${seconds % 60} s)`)
  }, progressMs)
  const step = (what: string): void => {
    current = what
  }
  try {
    return await withLock(
      { file: `${cache}.lock`, signal, onWait: (pid) => step(`${client.name}: waiting for process ${pid}, which builds it too`) },
      async () => {
        if (missing()) await build(client, cache, options, step)
        return cache
      },
    )
  } finally {
    clearInterval(timer)
  }
}

async function build(client: DevnetClient, cache: string, options: DevnetAssetsOptions, step: (what: string) => void): Promise<void> {
  mkdirSync(cache, { recursive: true })
  // What an attempt that was killed left: we hold the lock, so nobody is at it now.
  for (const name of readdirSync(dirname(cache))) {
    if (name.startsWith(`${basename(cache)}.making-`)) rmSync(join(dirname(cache), name), { recursive: true, force: true })
  }
  const into = mkdtempSync(`${cache}.making-`)
  options.log(`devnet: building ${client.name} ${client.version} with Go into ${cache}; this takes about five minutes, once`)
  try {
    const bin = await buildClient({ client, into, env: options.env, step, signal: options.signal })
    for (const program of programsOf(client)) {
      chmodSync(join(bin, program), 0o755)
      renameSync(join(bin, program), join(cache, program))
    }
  } finally {
    rmSync(into, { recursive: true, force: true })
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
