import { KubeConfig } from '@kubernetes/client-node'
import type { Clock } from '../../lib/clock.ts'
import { KubeTransportError } from './errors.ts'
import { type KubeLog, silentLog } from './log.ts'

/** Where the cluster's address and credentials come from. */
export type CredentialSource =
  | { readonly kubeConfig: KubeConfig }
  | { readonly kubeconfigPath: string; readonly context?: string }
  /** The pod's own ServiceAccount; `pathPrefix` goes before `/var/run/secrets/…`. */
  | { readonly inCluster: true; readonly pathPrefix?: string }

export interface TlsMaterial {
  readonly ca?: string | Buffer
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly pfx?: string | Buffer
  readonly passphrase?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** One reading of the credentials. It is replaced, never changed, so its identity tells whether they are still the same. */
export interface Access {
  readonly origin: string
  /** The path before `/api`, '' or such as `/k8s/clusters/c1`. */
  readonly basePath: string
  /** Authorization and impersonation. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly tls: TlsMaterial
  readonly proxyUrl: string | undefined
}

export interface Credentials {
  /** The current access: at once once loaded; files are read again in the background when the last reading is `refreshMs` old. */
  access(): Access | Promise<Access>
  /** After a 401 to `refused`: reads everything afresh (runs an exec plugin again). The same access back means there is nothing newer. */
  renew(refused: Access): Promise<Access>
}

export interface CredentialsOptions {
  readonly source: CredentialSource
  readonly clock: Clock
  readonly log?: KubeLog
  /** How old a reading of the files may get, ms. The kubelet rotates tokens hours before they expire; CAs and certificates likewise. */
  readonly refreshMs?: number
}

/** Reads a KubeConfig's current cluster and user, again and again: tokens, CAs and client certificates in files are rotated under us. */
export function createCredentials({ source, clock, log = silentLog, refreshMs = 10_000 }: CredentialsOptions): Credentials {
  let config: KubeConfig | undefined
  let current: Access | undefined
  let readAt = 0
  let reading: Promise<Access> | undefined

  const read = (afresh: boolean): Promise<Access> => {
    reading ??= (async () => {
      try {
        // KubeConfig keeps a token file's content for a minute and a plugin's credential until it expires. A new KubeConfig keeps nothing,
        // so files get a new one each time, and plugins, which are costly, only when the server refused what we had.
        if (config === undefined || afresh || !usesPlugin(config)) config = load(source)
        const next = await accessOf(config)
        current = current !== undefined && sameAccess(current, next) ? current : next
        return current
      } finally {
        readAt = clock.monotonicMs()
        reading = undefined
      }
    })()
    return reading
  }

  return {
    access() {
      if (current === undefined) return read(false)
      if (clock.monotonicMs() - readAt >= refreshMs && reading === undefined)
        read(false).catch((error: unknown) =>
          log.warn({ err: error }, 'credentials for the API server could not be read again: going on with the last ones'),
        )
      return current
    },
    async renew(refused) {
      if (current !== refused && current !== undefined) return current
      if (reading !== undefined) await reading
      return current === refused || current === undefined ? read(true) : current
    },
  }
}

function load(source: CredentialSource): KubeConfig {
  const config = new KubeConfig()
  if ('kubeConfig' in source) {
    const { clusters, users, contexts, currentContext } = source.kubeConfig
    config.loadFromOptions({ clusters, users, contexts, currentContext })
  } else if ('kubeconfigPath' in source) {
    config.loadFromFile(source.kubeconfigPath)
    if (source.context !== undefined) config.setCurrentContext(source.context)
  } else config.loadFromCluster(source.pathPrefix)
  return config
}

function usesPlugin(config: KubeConfig): boolean {
  const user = config.getCurrentUser()
  return user?.exec !== undefined || (user?.authProvider !== undefined && user.authProvider.config?.tokenFile === undefined)
}

interface HttpsOptions extends TlsMaterial {
  headers?: Record<string, string>
  auth?: string
}

async function accessOf(config: KubeConfig): Promise<Access> {
  const cluster = config.getCurrentCluster()
  if (!cluster) throw new KubeTransportError('NO_CLUSTER', 'the kubeconfig names no current cluster: set its current-context')
  const options: HttpsOptions = {}
  try {
    await config.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0])
  } catch (error) {
    // What a plugin printed may hold a secret: of a plugin only a system error (it is not there, say) is passed on.
    const isQuotable = error instanceof Error && (!usesPlugin(config) || 'code' in error)
    throw new KubeTransportError(
      'CREDENTIALS',
      `the credentials of user "${config.getCurrentUser()?.name}" could not be loaded${isQuotable ? `: ${error.message}` : ''}`,
    )
  }
  const url = new URL(cluster.server)
  const headers = Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value.trim()] as const)
  if (options.auth !== undefined) headers.push(['authorization', `Basic ${Buffer.from(options.auth).toString('base64')}`])
  return {
    origin: url.origin,
    basePath: url.pathname.replace(/\/+$/, ''),
    headers,
    tls: pickTls(options),
    proxyUrl: cluster.proxyUrl,
  }
}

const tlsFields = ['ca', 'cert', 'key', 'pfx', 'passphrase', 'servername', 'rejectUnauthorized'] as const

const pickTls = (options: TlsMaterial): TlsMaterial =>
  Object.fromEntries(
    tlsFields.filter((field) => options[field] !== undefined && options[field] !== null).map((field) => [field, options[field]]),
  )

/** Whether connections made for one serve the other. */
export const sameConnection = (a: Access, b: Access): boolean =>
  a.origin === b.origin && a.proxyUrl === b.proxyUrl && tlsFields.every((field) => String(a.tls[field]) === String(b.tls[field]))

const sameAccess = (a: Access, b: Access): boolean =>
  sameConnection(a, b) && a.basePath === b.basePath && String(a.headers) === String(b.headers)
