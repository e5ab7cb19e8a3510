import { readFileSync } from 'node:fs'
import type { Clock } from '../../lib/clock.ts'
import { KubeTransportError } from './errors.ts'
import { type PluginCredential, PluginFailed, runPlugin } from './exec-plugin.ts'
import { type KubeCluster, type Kubeconfig, type KubeUser, podKubeconfig, readKubeconfig } from './kubeconfig.ts'
import { type KubeLog, silentLog } from './log.ts'

/** Where the cluster's address and credentials come from. */
export type CredentialSource =
  | { readonly kubeConfig: Kubeconfig }
  | { readonly kubeconfigPath: string; readonly context?: string }
  /** The pod's own ServiceAccount; `pathPrefix` goes before `/var/run/secrets/…`. */
  | { readonly inCluster: true; readonly pathPrefix?: string }

export interface TlsMaterial {
  readonly ca?: string | Buffer
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
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

/** Reads a kubeconfig's current cluster and user, again and again: tokens, CAs and client certificates in files are rotated under us. */
export function createCredentials({ source, clock, log = silentLog, refreshMs = 10_000 }: CredentialsOptions): Credentials {
  let plugin: PluginCredential | undefined
  let current: Access | undefined
  let readAt = 0
  let reading: Promise<Access> | undefined

  /** Files are read each time; plugins are costly: they run when the server refused what they gave, and when that has expired. */
  const pluginOf = async ({ exec }: KubeUser, afresh: boolean): Promise<PluginCredential | undefined> => {
    if (exec === undefined) return undefined
    const isOver = plugin?.expiresAt !== undefined && plugin.expiresAt <= clock.now().getTime()
    if (plugin === undefined || afresh || isOver) plugin = await runPlugin(exec)
    return plugin
  }

  const readAll = async (afresh: boolean): Promise<Access> => {
    let name = ''
    try {
      const { cluster, user } = currentOf(load(source))
      name = user.name
      return accessOf(cluster, user, await pluginOf(user, afresh))
    } catch (error) {
      if (error instanceof KubeTransportError) throw error
      // A plugin that is there and fails may succeed the next time; what it printed is not passed on.
      const isPlugin = error instanceof PluginFailed
      const why = isPlugin || !(error instanceof Error) ? '' : `: ${error.message}`
      throw new KubeTransportError(isPlugin ? 'PLUGIN' : 'CREDENTIALS', `the credentials of user "${name}" could not be loaded${why}`)
    }
  }

  const read = (afresh: boolean): Promise<Access> => {
    reading ??= (async () => {
      try {
        const next = await readAll(afresh)
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

function load(source: CredentialSource): Kubeconfig {
  if ('kubeConfig' in source) return source.kubeConfig
  if (!('kubeconfigPath' in source)) return podKubeconfig(source.pathPrefix, process.env)
  const config = readKubeconfig(source.kubeconfigPath)
  return source.context === undefined ? config : { ...config, currentContext: source.context }
}

/** The cluster and the user of the current context. */
function currentOf({ clusters, users, contexts, currentContext }: Kubeconfig): { readonly cluster: KubeCluster; readonly user: KubeUser } {
  const context = contexts.find(({ name }) => name === currentContext)
  const cluster = clusters.find(({ name }) => name === context?.cluster)
  if (cluster === undefined) throw new KubeTransportError('NO_CLUSTER', 'the kubeconfig names no current cluster: set its current-context')
  return { cluster, user: users.find(({ name }) => name === context?.user) ?? { name: context?.user ?? '' } }
}

function accessOf(cluster: KubeCluster, user: KubeUser, plugin: PluginCredential | undefined): Access {
  const url = new URL(cluster.server)
  if (url.protocol === 'http:' && cluster.skipTLSVerify !== true) throw new Error('its server is asked by http: write https')
  if (user.authProvider !== undefined) throw new Error(`its auth-provider "${user.authProvider}" is not supported: use a plugin (exec)`)
  const token = user.tokenFile === undefined ? (user.token ?? plugin?.token) : readFileSync(user.tokenFile, 'utf8').trim()
  const headers: (readonly [string, string])[] = []
  if (user.impersonateUser !== undefined) headers.push(['impersonate-user', user.impersonateUser])
  if (token !== undefined) headers.push(['authorization', `Bearer ${token.trim()}`])
  else if (user.username !== undefined)
    headers.push(['authorization', `Basic ${Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64')}`])
  const tls: TlsMaterial = defined({
    ca: fileOrData(cluster.caFile, cluster.caData),
    cert: fileOrData(user.certFile, user.certData) ?? plugin?.cert,
    key: fileOrData(user.keyFile, user.keyData) ?? plugin?.key,
    servername: cluster.tlsServerName,
    rejectUnauthorized: cluster.skipTLSVerify === true ? false : undefined,
  })
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, ''), headers, tls, proxyUrl: cluster.proxyUrl }
}

const fileOrData = (file: string | undefined, data: string | undefined): Buffer | undefined =>
  file !== undefined ? readFileSync(file) : data === undefined ? undefined : Buffer.from(data, 'base64')

const defined = (fields: { readonly [Field in keyof TlsMaterial]: TlsMaterial[Field] | undefined }): TlsMaterial =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

const tlsFields = ['ca', 'cert', 'key', 'servername', 'rejectUnauthorized'] as const

/** Whether connections made for one serve the other. */
export const sameConnection = (a: Access, b: Access): boolean =>
  a.origin === b.origin && a.proxyUrl === b.proxyUrl && tlsFields.every((field) => String(a.tls[field]) === String(b.tls[field]))

const sameAccess = (a: Access, b: Access): boolean =>
  sameConnection(a, b) && a.basePath === b.basePath && String(a.headers) === String(b.headers)
