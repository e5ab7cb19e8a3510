import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createSecureContext } from 'node:tls'
import { ConfigError, systemCode } from '../../lib/config-error.ts'
import { type Kubeconfig, KubeconfigError, parseKubeconfig, serviceAccountFiles } from './kubeconfig.ts'

/** Where the credentials are: a kubeconfig, or the pod's own ServiceAccount (`pathPrefix` goes before `/var/run/secrets/…`). */
export type ClusterSource = { readonly kubeconfigPath: string } | { readonly inCluster: true; readonly pathPrefix?: string }

/** The cluster that this process works on, for messages. */
export interface Cluster {
  /** Such as `kubeconfig /etc/kubeconfig, context "prod", server 10.0.0.1:6443`. */
  readonly name: string
  /** Host name of its server. */
  readonly host: string
}

/**
 * Reads what names the cluster and the credentials once, by rules that are stricter than the library's: it takes a context that is not there for no context,
 * and fails where a file is missing only when it first connects. @throws ConfigError
 */
export const checkCluster = (source: ClusterSource, env: Readonly<Record<string, string | undefined>>): Cluster =>
  'kubeconfigPath' in source ? checkKubeconfig(source.kubeconfigPath) : checkPod(source.pathPrefix ?? '', env)

function checkPod(prefix: string, env: Readonly<Record<string, string | undefined>>): Cluster {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = env
  if (host === '' || port === '')
    throw new ConfigError(
      'no kubeconfig is named, and this process is in no pod (KUBERNETES_SERVICE_HOST is not set): name a kubeconfig with --kubeconfig or KUBECONFIG',
    )
  for (const path of Object.values(serviceAccountFiles(prefix))) {
    read(
      path,
      (code) =>
        `the ServiceAccount's ${path} cannot be read (${code}): set automountServiceAccountToken, or name a kubeconfig with --kubeconfig`,
    )
  }
  return { name: `the ServiceAccount of this pod, server ${host}:${port}`, host }
}

function checkKubeconfig(path: string): Cluster {
  const config = parsed(path)
  const context = contextOf(config, path)
  const about = `kubeconfig ${path}, context "${context.name}"`
  const cluster = config.clusters.find(({ name }) => name === context.cluster)
  if (cluster === undefined)
    throw new ConfigError(`${about}: its cluster "${context.cluster}" is not in the file, which has ${listOf(config.clusters)}`)
  const user = config.users.find(({ name }) => name === context.user)
  if (user === undefined)
    throw new ConfigError(`${about}: its user "${context.user}" is not in the file, which has ${listOf(config.users)}`)
  const url = URL.canParse(cluster.server) ? new URL(cluster.server) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new ConfigError(`${about}: the server of cluster "${cluster.name}" is no URL: write https://HOST:PORT`)
  const name = `${about}, server ${url.host}`
  if (url.protocol === 'http:' && cluster.skipTLSVerify !== true)
    throw new ConfigError(
      `${name}: its URL is http, which shows the credentials to whoever listens: write https, or set insecure-skip-tls-verify`,
    )
  const fileOf = (field: string, file: string | undefined): Buffer | undefined =>
    file
      ? read(file, (code) => `${name}: its ${field} ${file} cannot be read (${code}): put the file there, or name the right one`)
      : undefined
  const dataOf = (data: string | undefined): Buffer | undefined => (data ? Buffer.from(data, 'base64') : undefined)
  const ca = fileOf('certificate-authority', cluster.caFile) ?? dataOf(cluster.caData)
  const cert = fileOf('client-certificate', user.certFile) ?? dataOf(user.certData)
  const key = fileOf('client-key', user.keyFile) ?? dataOf(user.keyData)
  if (user.authProvider !== undefined)
    throw new ConfigError(`${name}: the auth-provider "${user.authProvider}" of user "${user.name}" is not supported: use a plugin (exec)`)
  fileOf('tokenFile', user.tokenFile)
  if (ca !== undefined) attempt(() => new X509Certificate(ca), `${name}: its certificate-authority holds no certificate in PEM`)
  if (cert !== undefined || key !== undefined)
    attempt(
      () => createSecureContext({ ...(cert && { cert }), ...(key && { key }) }),
      `${name}: its client-certificate and client-key can't be used: write a certificate and its own key in PEM`,
    )
  return { name, host: url.hostname }
}

function parsed(path: string): Kubeconfig {
  const text = read(path, (code) => {
    const severalOf = path.includes(':') ? '; one file only can be named' : ''
    return `kubeconfig ${path} cannot be read (${code}): name the right file with --kubeconfig or KUBECONFIG${severalOf}. Inside a cluster none is needed`
  })
  if (text.toString('utf8').trim() === '') throw new ConfigError(`kubeconfig ${path} is empty`)
  try {
    return parseKubeconfig(text.toString('utf8'), dirname(path))
  } catch (error) {
    throw error instanceof KubeconfigError ? new ConfigError(`kubeconfig ${path} ${error.message}`) : error
  }
}

function contextOf(config: Kubeconfig, path: string) {
  const contexts = config.contexts
  const current = config.currentContext
  const names = listOf(contexts)
  if (current === undefined)
    throw new ConfigError(`kubeconfig ${path} has no current-context: set one (kubectl config use-context NAME); its contexts are ${names}`)
  const context = contexts.find(({ name }) => name === current)
  if (context === undefined)
    throw new ConfigError(`kubeconfig ${path}: its current-context "${current}" is not in the file: set current-context to one of ${names}`)
  return context
}

const listOf = (all: readonly { readonly name: string }[]): string =>
  all.length === 0 ? 'none' : all.map(({ name }) => `"${name}"`).join(', ')

function read(path: string, message: (code: string) => string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new ConfigError(message(systemCode(error)))
  }
}

function attempt(use: () => unknown, message: string): void {
  try {
    use()
  } catch (error) {
    throw new ConfigError(`${message} (${systemCode(error)})`)
  }
}
