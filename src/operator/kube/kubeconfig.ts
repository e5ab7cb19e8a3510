import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'

/** What of a kubeconfig is used (client-go's clientcmd/api/v1). Data are base64. */
export interface Kubeconfig {
  readonly clusters: readonly KubeCluster[]
  readonly users: readonly KubeUser[]
  readonly contexts: readonly KubeContext[]
  readonly currentContext?: string | undefined
}
export interface KubeContext {
  readonly name: string
  readonly cluster: string
  readonly user: string
  readonly namespace?: string | undefined
}
export interface KubeCluster {
  readonly name: string
  readonly server: string
  readonly caFile?: string | undefined
  readonly caData?: string | undefined
  readonly skipTLSVerify?: boolean | undefined
  readonly tlsServerName?: string | undefined
  readonly proxyUrl?: string | undefined
}
export interface KubeUser {
  readonly name: string
  readonly certFile?: string | undefined
  readonly certData?: string | undefined
  readonly keyFile?: string | undefined
  readonly keyData?: string | undefined
  readonly token?: string | undefined
  readonly tokenFile?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly impersonateUser?: string | undefined
  readonly exec?: ExecPlugin | undefined
  /** Plugins of before `exec`: none is supported. */
  readonly authProvider?: string | undefined
}
export interface ExecPlugin {
  /** Such as client.authentication.k8s.io/v1. */
  readonly apiVersion?: string | undefined
  readonly command: string
  readonly args?: readonly string[] | undefined
  readonly env?: readonly { readonly name: string; readonly value: string }[] | undefined
}

/** A file that is no kubeconfig. The message quotes nothing of it: it may be a secret in the wrong place. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError'
}

type Fields = { readonly [name: string]: unknown }
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads a kubeconfig; paths in it are relative to its folder. @throws KubeconfigError, or the system's error */
export function readKubeconfig(path: string): Kubeconfig {
  return parseKubeconfig(readFileSync(path, 'utf8'), dirname(path))
}

/** Several files as one, as kubectl takes them: of two that say the same, the first counts. */
export const mergedKubeconfig = (files: readonly Kubeconfig[]): Kubeconfig => {
  const first = <T extends { readonly name: string }>(all: readonly T[]): T[] => [
    ...new Map(all.toReversed().map((one) => [one.name, one])).values(),
  ]
  return {
    clusters: first(files.flatMap(({ clusters }) => clusters)),
    users: first(files.flatMap(({ users }) => users)),
    contexts: first(files.flatMap(({ contexts }) => contexts)),
    currentContext: files.find(({ currentContext }) => currentContext !== undefined)?.currentContext,
  }
}

/** @throws KubeconfigError */
export function parseKubeconfig(text: string, folder = '.'): Kubeconfig {
  let document: unknown
  try {
    document = parse(text)
  } catch (error) {
    const { line } = (error as { readonly linePos?: readonly { readonly line: number }[] }).linePos?.[0] ?? {}
    throw new KubeconfigError(`is not YAML${line === undefined ? '' : ` (line ${line})`}`)
  }
  if (!isFields(document)) throw new KubeconfigError('is not a kubeconfig')
  const current = document['current-context']
  return {
    clusters: entries(document, 'clusters', 'cluster').map((entry) => clusterOf(entry, folder)),
    users: entries(document, 'users', 'user').map((entry) => userOf(entry, folder)),
    contexts: entries(document, 'contexts', 'context').map(({ name, text }) => ({
      name,
      cluster: text('cluster') ?? '',
      user: text('user') ?? '',
      namespace: text('namespace'),
    })),
    ...(typeof current === 'string' && current !== '' ? { currentContext: current } : {}),
  }
}

interface Entry {
  readonly where: string
  readonly name: string
  readonly fields: Fields
  text(field: string): string | undefined
}

/** `clusters: [{ name, cluster: {…} }]` and the like. */
function entries(document: Fields, list: string, part: string): Entry[] {
  const all = document[list] ?? []
  if (!Array.isArray(all)) throw new KubeconfigError(`is not a kubeconfig: ${list} is no list`)
  return all.map((entry: unknown, index) => {
    const where = `${list}[${index}]`
    const { name, [part]: fields = {} } = isFields(entry) ? entry : {}
    if (typeof name !== 'string' || name === '') throw new KubeconfigError(`is not a kubeconfig: ${where}.name is missing`)
    if (fields !== null && !isFields(fields)) throw new KubeconfigError(`is not a kubeconfig: ${where}.${part} is no object`)
    return { where: `${where}.${part}`, name, fields: fields ?? {}, text: (field) => textOf(fields ?? {}, field, `${where}.${part}`) }
  })
}

function textOf(fields: Fields, field: string, where: string): string | undefined {
  const value = fields[field]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new KubeconfigError(`is not a kubeconfig: ${where}.${field} is no text`)
  return value
}

const fileIn = (folder: string, file: string | undefined): string | undefined => (file === undefined ? undefined : resolve(folder, file))

function clusterOf({ name, where, fields, text }: Entry, folder: string): KubeCluster {
  const server = text('server')
  if (server === undefined) throw new KubeconfigError(`is not a kubeconfig: ${where}.server is missing`)
  return {
    name,
    server,
    caFile: fileIn(folder, text('certificate-authority')),
    caData: text('certificate-authority-data'),
    skipTLSVerify: fields['insecure-skip-tls-verify'] === true,
    tlsServerName: text('tls-server-name'),
    proxyUrl: text('proxy-url'),
  }
}

function userOf({ name, where, fields, text }: Entry, folder: string): KubeUser {
  const provider = fields['auth-provider']
  return {
    name,
    certFile: fileIn(folder, text('client-certificate')),
    certData: text('client-certificate-data'),
    keyFile: fileIn(folder, text('client-key')),
    keyData: text('client-key-data'),
    token: text('token'),
    tokenFile: fileIn(folder, text('tokenFile')),
    username: text('username'),
    password: text('password'),
    impersonateUser: text('as'),
    exec: execOf(fields.exec, `${where}.exec`, folder),
    authProvider: isFields(provider) && typeof provider.name === 'string' ? provider.name : undefined,
  }
}

function execOf(value: unknown, where: string, folder: string): ExecPlugin | undefined {
  if (value === undefined || value === null) return undefined
  const command = isFields(value) ? textOf(value, 'command', where) : undefined
  if (!isFields(value) || command === undefined) throw new KubeconfigError(`is not a kubeconfig: ${where}.command is missing`)
  const list = (field: string): readonly unknown[] => (Array.isArray(value[field]) ? (value[field] as readonly unknown[]) : [])
  return {
    apiVersion: textOf(value, 'apiVersion', where),
    // A path is relative to the file, a name is looked up in PATH, as kubectl has it.
    command: command.includes('/') ? resolve(folder, command) : command,
    args: list('args').map(String),
    env: list('env').flatMap((one) => (isFields(one) ? [{ name: String(one.name), value: String(one.value ?? '') }] : [])),
  }
}

const serviceAccountDir = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Files of a pod's ServiceAccount. */
export const serviceAccountFiles = (pathPrefix = '') => ({
  token: `${pathPrefix}${serviceAccountDir}/token`,
  ca: `${pathPrefix}${serviceAccountDir}/ca.crt`,
})

/** The cluster that a pod is in, by its ServiceAccount. */
export function podKubeconfig(pathPrefix: string | undefined, env: Readonly<Record<string, string | undefined>>): Kubeconfig {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = env
  const { token, ca } = serviceAccountFiles(pathPrefix)
  return {
    clusters: [{ name: 'in-cluster', server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`, caFile: ca }],
    users: [{ name: 'service-account', tokenFile: token }],
    contexts: [{ name: 'in-cluster', cluster: 'in-cluster', user: 'service-account' }],
    currentContext: 'in-cluster',
  }
}
