import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Clock } from '../lib/clock.ts'
import { createKubeApi, type KubeApi } from '../operator/kube/api.ts'
import { isForbidden, isNotFound, KubeError, KubeTransportError } from '../operator/kube/errors.ts'
import { type Kubeconfig, mergedKubeconfig, podKubeconfig, readKubeconfig, serviceAccountFiles } from '../operator/kube/kubeconfig.ts'
import type { KubeObject } from '../operator/kube/objects.ts'
import type { ListOptions, ResourceDefinition } from '../operator/kube/resource-client.ts'
import { InspectError } from './error.ts'

export interface ClusterFlags {
  readonly kubeconfig?: string
  readonly context?: string
}

/** A cluster as whoever looks may read it. */
export interface Cluster {
  readonly server: string
  readonly context: string
  /** The context's namespace. */
  readonly namespace: string
  readonly api: KubeApi
  /** All of them, page by page; `forbidden` where the user may not. @throws InspectError */
  list<T extends KubeObject>(
    definition: ResourceDefinition,
    options: Omit<ListOptions, 'limit' | 'continue'>,
    signal: AbortSignal,
  ): Promise<readonly T[] | 'forbidden'>
  /** @throws InspectError */
  get<T extends KubeObject>(
    definition: ResourceDefinition,
    ref: { readonly name: string; readonly namespace?: string },
    signal: AbortSignal,
  ): Promise<T | 'forbidden' | 'absent'>
  close(): Promise<void>
}

const PAGE = 500
/** No listing is read for ever. */
const MOST_PAGES = 2_000

/**
 * The cluster that kubectl would take: `--kubeconfig`, KUBECONFIG (a list of files), ~/.kube/config, or inside a pod its ServiceAccount.
 * @throws InspectError
 */
export function openCluster(flags: ClusterFlags, { clock, userAgent }: { readonly clock: Clock; readonly userAgent: string }): Cluster {
  const config = load(flags)
  const api = createKubeApi({ kubeConfig: config, clock, userAgent })
  const server = hostOf(clusterOf(config)?.server)
  const where = `the API server ${server} (context ${config.currentContext ?? ''})`
  /** What the answer is, or why there is none. */
  async function asked<T>(call: () => Promise<T>): Promise<T | 'forbidden' | 'absent'> {
    try {
      return await call()
    } catch (error) {
      if (isForbidden(error)) return 'forbidden'
      if (isNotFound(error)) return 'absent'
      if (error instanceof KubeError && error.status === 401)
        throw new InspectError(
          `${where} does not accept the credentials of this context (401): log in again, or choose another context with --context`,
        )
      if (error instanceof KubeTransportError || error instanceof KubeError)
        throw new InspectError(`${where}: ${error.message}`, { passes: mayPass(error) })
      throw error
    }
  }
  return {
    server,
    context: config.currentContext ?? '',
    namespace: contextOf(config)?.namespace ?? 'default',
    api,
    async list<T extends KubeObject>(
      definition: ResourceDefinition,
      options: Omit<ListOptions, 'limit' | 'continue'>,
      signal: AbortSignal,
    ) {
      const client = api.resource<T>(definition)
      const all: T[] = []
      let next: string | undefined
      for (let page = 0; page < MOST_PAGES; page++) {
        const read = await asked(() => client.list({ ...options, limit: PAGE, ...(next === undefined ? {} : { continue: next }) }, signal))
        if (read === 'forbidden') return 'forbidden'
        if (read === 'absent')
          throw new InspectError(
            `${where} does not serve ${definition.plural}.${definition.group}: install the CRDs of the staking operator`,
          )
        all.push(...read.items)
        next = read.continue
        if (next === undefined) return all
      }
      throw new InspectError(`${where} has more than ${PAGE * MOST_PAGES} ${definition.plural}: name a namespace`)
    },
    get: <T extends KubeObject>(
      definition: ResourceDefinition,
      ref: { readonly name: string; readonly namespace?: string },
      signal: AbortSignal,
    ) => asked(() => api.resource<T>(definition).get(ref, signal)),
    close: () => api.close(),
  }
}

/** Nobody answers, or whoever does is overloaded, starting or without its store. */
const mayPass = (error: KubeTransportError | KubeError): boolean =>
  error instanceof KubeTransportError || error.status === 429 || error.status >= 500

function load({ kubeconfig, context }: ClusterFlags): Kubeconfig {
  const read = loadFiles(kubeconfig)
  if (context !== undefined) {
    const names = read.contexts.map(({ name }) => name)
    if (!names.includes(context))
      throw new InspectError(`the kubeconfig has no context ${context}: it has ${names.slice(0, 20).join(', ') || 'none'}`)
  }
  const config = context === undefined ? read : { ...read, currentContext: context }
  if (clusterOf(config) === undefined)
    throw new InspectError('the kubeconfig names no current cluster: set its current-context, or choose one with --context')
  return config
}

function loadFiles(kubeconfig: string | undefined): Kubeconfig {
  const named = kubeconfig === undefined ? (process.env.KUBECONFIG ?? '').split(delimiter).filter((file) => file !== '') : [kubeconfig]
  const own = join(homedir(), '.kube/config')
  if (named.length === 0 && !existsSync(own) && existsSync(serviceAccountFiles().token)) return podKubeconfig(undefined, process.env)
  return mergedKubeconfig((named.length === 0 ? [own] : named).map(readFile))
}

function readFile(path: string): Kubeconfig {
  try {
    return readKubeconfig(path)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    const what = code === undefined ? 'is not a kubeconfig' : `cannot be read (${code})`
    throw new InspectError(`${path} ${what}: name another with --kubeconfig`)
  }
}

const contextOf = ({ contexts, currentContext }: Kubeconfig) => contexts.find(({ name }) => name === currentContext)
const clusterOf = (config: Kubeconfig) => config.clusters.find(({ name }) => name === contextOf(config)?.cluster)

function hostOf(server: string | undefined): string {
  try {
    return new URL(server ?? '').host
  } catch {
    throw new InspectError('the server of the kubeconfig’s current cluster is not a URL')
  }
}
