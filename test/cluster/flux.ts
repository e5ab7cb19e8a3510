import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { untilEstablished } from './apply.ts'
import { cacheDir } from './cache-dir.ts'
import type { ControlPlane } from './control-plane.ts'
import { ensureGoPrograms, goModuleSource } from './go-program.ts'
import { freePort } from './ports.ts'
import { type RunningProcess, startProcess } from './process.ts'

const VERSION = '1.9.6'
const programs = {
  'source-controller': 'github.com/fluxcd/source-controller',
  'kustomize-controller': 'github.com/fluxcd/kustomize-controller',
}
const arch = process.arch === 'x64' ? 'amd64' : process.arch

export interface FluxAssets {
  /** Holds source-controller and kustomize-controller. */
  readonly programs: string
  /** Holds their definitions. */
  readonly definitions: string
}

/** Flux's source-controller and kustomize-controller, built with Go into the user's cache once: ten minutes on two cores. @throws with what to do */
export async function findFlux(log: (line: string) => void, signal: AbortSignal): Promise<FluxAssets> {
  const cache = join('flux', `${VERSION}-${process.platform}-${arch}`)
  const folder = await ensureGoPrograms({ module: 'flux', cache, programs, isComplete: false, log, signal })
  const definitions = join(cacheDir(process.env), 'flux', `definitions-${VERSION}`)
  for (const [name, path] of Object.entries(programs)) {
    const to = join(definitions, name)
    if (!existsSync(to)) {
      mkdirSync(definitions, { recursive: true })
      cpSync(join(await goModuleSource('flux', `${path}@v${VERSION}`, signal), 'config/crd/bases'), to, { recursive: true })
    }
  }
  return { programs: folder, definitions }
}

export interface Flux {
  stop(): Promise<void>
}

/** Installs Flux's definitions in the cluster and runs its two controllers beside it. */
export async function startFlux(cluster: ControlPlane, assets: FluxAssets): Promise<Flux> {
  for (const name of Object.keys(programs)) await cluster.kubectlOk(['apply', '--server-side', '-f', join(assets.definitions, name)])
  await untilEstablished(cluster)
  await cluster.kubectlOk(['create', 'namespace', 'flux-system'])
  const dir = mkdtempSync(join(tmpdir(), 'flux-'))
  const running: RunningProcess[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(running.map((each) => each.stop(5_000)))
    rmSync(dir, { recursive: true, force: true })
  }
  try {
    const storage = `127.0.0.1:${await freePort()}`
    const own = {
      'source-controller': [`--storage-path=${dir}`, `--storage-addr=${storage}`, `--storage-adv-addr=${storage}`],
      'kustomize-controller': [],
    }
    for (const [name, args] of Object.entries(own)) {
      const health = `127.0.0.1:${await freePort()}`
      running.push(
        await startProcess({
          name,
          command: join(assets.programs, name),
          args: [...args, `--metrics-addr=127.0.0.1:${await freePort()}`, `--health-addr=${health}`],
          env: { KUBECONFIG: cluster.adminKubeconfigPath, RUNTIME_NAMESPACE: 'flux-system', HOME: dir },
          readyWhen: async ({ signal }) => (await fetch(`http://${health}/readyz`, { signal })).ok,
          readyTimeoutMs: 60_000,
          logFile: join(cluster.dir, `${name}.log`),
        }),
      )
    }
    return { stop }
  } catch (error) {
    await stop()
    throw error
  }
}
