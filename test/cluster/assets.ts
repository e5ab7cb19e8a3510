import { accessSync, chmodSync, constants, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fetchArchive } from './assets-archive.ts'
import { buildWithGo, PROGRAMS, type Program } from './assets-build.ts'
import { withLock } from './assets-lock.ts'
import { cacheDir } from './cache-dir.ts'
import { KUBERNETES_VERSION } from './versions.ts'

/** Paths of the programs. */
export interface ControlPlaneAssets {
  readonly kubeApiserver: string
  readonly etcd: string
  readonly kubeControllerManager: string
  readonly kubectl: string
}

export interface AssetsOptions {
  /** KUBEBUILDER_ASSETS, XDG_CACHE_HOME, STAKING_ENVTEST_URL, PATH and what Go reads. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Takes a line for people, now and then: the first time takes minutes. */
  readonly log: (line: string) => void
  readonly signal: AbortSignal
  /** How often the log hears of a long step, ms; default 15,000. */
  readonly progressMs?: number
}

/**
 * Finds a real kube-apiserver, etcd, kube-controller-manager and kubectl, or makes them, in this order:
 * 1. the folder that KUBEBUILDER_ASSETS names (the convention of envtest; the controller-manager, which such folders lack, comes from below),
 * 2. this user's cache, `~/.cache/staking-operator/controlplane/<version>-<os>-<arch>`,
 * 3. the published envtest archive, where the network allows; STAKING_ENVTEST_URL names another index, or `none`,
 * 4. a build with Go, about ten minutes, once.
 * What 3 and 4 make goes to the cache, each file whole or not at all; a lock keeps two processes from making it twice.
 * @throws with what to do.
 */
export async function findAssets(options: AssetsOptions): Promise<ControlPlaneAssets> {
  const { env } = options
  const given = env.KUBEBUILDER_ASSETS
  if (given === undefined || given === '') {
    const cache = await fillCache(PROGRAMS, options)
    return assets((program) => join(cache, program))
  }
  const missing = (['kube-apiserver', 'etcd', 'kubectl'] as const).filter((program) => !isProgram(join(given, program)))
  if (missing.length > 0) {
    throw new Error(
      `KUBEBUILDER_ASSETS is ${given}, which lacks ${missing.join(', ')}: unset it, or point it to a folder that holds kube-apiserver, etcd and kubectl ` +
        '(setup-envtest use -p path makes one)',
    )
  }
  const rest = PROGRAMS.filter((program) => !isProgram(join(given, program)))
  const cache = rest.length === 0 ? given : await fillCache(rest, options)
  return assets((program) => join(rest.includes(program) ? cache : given, program))
}

const assets = (path: (program: Program) => string): ControlPlaneAssets => ({
  kubeApiserver: path('kube-apiserver'),
  etcd: path('etcd'),
  kubeControllerManager: path('kube-controller-manager'),
  kubectl: path('kubectl'),
})

/** As Go names them. */
const os = process.platform
const arch = process.arch === 'x64' ? 'amd64' : process.arch

/** Where the programs are kept. */
export const assetsCache = (env: AssetsOptions['env']): string => join(cacheDir(env), 'controlplane', `${KUBERNETES_VERSION}-${os}-${arch}`)

async function fillCache(programs: readonly Program[], options: AssetsOptions): Promise<string> {
  const cache = assetsCache(options.env)
  const missing = () => programs.filter((program) => !isProgram(join(cache, program)))
  if (missing().length === 0) return cache
  const progress = startProgress(options)
  try {
    progress.step('waiting for the lock')
    return await withLock(
      { file: `${cache}.lock`, signal: options.signal, onWait: (pid) => progress.step(`waiting for process ${pid}, which makes it too`) },
      async () => {
        if (missing().length > 0) await make(missing(), cache, { ...options, step: progress.step })
        return cache
      },
    )
  } finally {
    progress.stop()
  }
}

async function make(
  programs: readonly Program[],
  cache: string,
  options: AssetsOptions & { readonly step: (what: string) => void },
): Promise<void> {
  const { env, log, step, signal } = options
  mkdirSync(cache, { recursive: true })
  sweep(cache)
  const staging = mkdtempSync(`${cache}.making-`)
  const settle = (done: readonly Program[]): void => {
    for (const program of done) {
      chmodSync(join(staging, program), 0o755)
      renameSync(join(staging, program), join(cache, program))
    }
  }
  try {
    if (programs.some((program) => program !== 'kube-controller-manager')) {
      const archive = await fetchArchive({
        version: KUBERNETES_VERSION,
        os,
        arch,
        into: staging,
        indexUrl: env.STAKING_ENVTEST_URL,
        step,
        signal,
      })
      if (archive.done) {
        log(`control plane: took kube-apiserver, etcd and kubectl from the published envtest archive of ${archive.version}`)
        settle(programs.filter((program) => existsSync(join(staging, program))))
      } else {
        log(`control plane: no envtest archive: ${archive.why}`)
      }
    }
    const rest = programs.filter((program) => !isProgram(join(cache, program)))
    if (rest.length === 0) return
    log(`control plane: building ${rest.join(', ')} ${KUBERNETES_VERSION} with Go into ${cache}; this takes about ten minutes, once`)
    await buildWithGo({ programs: rest, into: staging, env, step, signal })
    settle(rest)
  } finally {
    rmSync(staging, { recursive: true, force: true })
  }
}

/** Removes what an attempt that was killed left: we hold the lock, so nobody is at it now. */
function sweep(cache: string): void {
  for (const name of readdirSync(dirname(cache))) {
    if (name.startsWith(`${basename(cache)}.making-`)) rmSync(join(dirname(cache), name), { recursive: true, force: true })
  }
}

/** Says what goes on every `progressMs`, with the time passed. */
function startProgress({ log, progressMs = 15_000 }: AssetsOptions): { readonly step: (what: string) => void; readonly stop: () => void } {
  const began = performance.now()
  let current = 'starting'
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - began) / 1000)
    log(`control plane: ${current} (${Math.floor(seconds / 60)} min ${seconds % 60} s)`)
  }, progressMs)
  return {
    step: (what) => {
      current = what
    },
    stop: () => clearInterval(timer),
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
