import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiRequest } from './api-request.ts'
import { type RunningProcess, startProcess } from './process.ts'

export interface ApiServerFiles {
  readonly tokens: string
  readonly serviceAccountKey: string
  readonly serviceAccountPublicKey: string
  readonly certDir: string
  /** The authority in the certificate bundle that the API server makes for itself at its first start. */
  caPem(): string
  readonly caFile: string
}

/** Writes the administrator's token and the keys that service account tokens are signed with; keys that are there stay. */
export function writeApiServerFiles(dir: string, adminToken: string): ApiServerFiles {
  const at = (name: string): string => join(dir, name)
  const certDir = at('certificates')
  mkdirSync(certDir, { recursive: true, mode: 0o700 })
  writeFileSync(at('tokens.csv'), `${adminToken},admin,admin,"system:masters"\n`, { mode: 0o600 })
  if (!existsSync(at('service-account.key'))) {
    // Made at once and verified for less, where one of RSA takes a quarter of a second to make.
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeFileSync(at('service-account.key'), privateKey.export({ type: 'sec1', format: 'pem' }), { mode: 0o600 })
    writeFileSync(at('service-account.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  }
  const caFile = at('ca.pem')
  return {
    tokens: at('tokens.csv'),
    serviceAccountKey: at('service-account.key'),
    serviceAccountPublicKey: at('service-account.pub'),
    certDir,
    caFile,
    caPem: () => {
      // `--cert-dir`: kube-apiserver writes the serving certificate, followed by the authority that signed it.
      const bundle = readFileSync(join(certDir, 'apiserver.crt'), 'utf8')
      const authority = bundle.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----\n/g)?.at(-1)
      if (authority === undefined) throw new Error(`no certificate in ${certDir}/apiserver.crt`)
      writeFileSync(caFile, authority)
      return authority
    },
  }
}

export interface ApiServerOptions {
  readonly command: string
  readonly dir: string
  readonly port: number
  readonly etcdUrl: string
  readonly files: ApiServerFiles
  readonly adminToken: string
  readonly extra: readonly string[]
}

export function startApiServer({ command, dir, port, etcdUrl, files, adminToken, extra }: ApiServerOptions): Promise<RunningProcess> {
  const issuer = 'https://kubernetes.default.svc.cluster.local'
  return startProcess({
    name: 'kube-apiserver',
    command,
    args: [
      `--etcd-servers=${etcdUrl}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${files.certDir}`,
      '--authorization-mode=Node,RBAC',
      `--token-auth-file=${files.tokens}`,
      `--service-account-issuer=${issuer}`,
      `--service-account-key-file=${files.serviceAccountPublicKey}`,
      `--service-account-signing-key-file=${files.serviceAccountKey}`,
      '--service-cluster-ip-range=10.0.0.0/24',
      // Loopback can't be an endpoint of the `kubernetes` service, and nobody looks for it here.
      '--endpoint-reconciler-type=none',
      '--profiling=false',
      '--v=1',
      ...extra,
    ],
    // It is collected a fifth as often, for 100 MB more of memory: a fifth less processor time for its start.
    env: { GOGC: '400' },
    logFile: join(dir, 'kube-apiserver.log'),
    readyWhen: async () => {
      const { status, body } = await apiRequest(
        { url: `https://127.0.0.1:${port}`, caPem: files.caPem(), token: adminToken },
        { path: '/readyz', timeoutMs: 2_000 },
      )
      if (status !== 200) throw new Error(`readyz: HTTP ${status} ${String(body).slice(0, 500)}`)
      return true
    },
    readyTimeoutMs: 90_000,
  })
}

/**
 * Those that what we install depends on: namespaces that end, default service accounts, garbage collection, aggregated cluster roles (the chart's
 * rights for view and edit), the root certificate for pods, and the type check of admission policies.
 */
const CONTROLLERS = [
  'namespace-controller',
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'garbage-collector-controller',
  'clusterrole-aggregation-controller',
  'root-ca-certificate-publisher-controller',
  'validatingadmissionpolicy-status-controller',
]

export interface ControllerManagerOptions {
  readonly command: string
  readonly dir: string
  readonly kubeconfig: string
  readonly files: ApiServerFiles
  /** Whether its work shows. */
  readonly ready: () => Promise<boolean>
}

export function startControllerManager({ command, dir, kubeconfig, files, ready }: ControllerManagerOptions): Promise<RunningProcess> {
  return startProcess({
    name: 'kube-controller-manager',
    command,
    args: [
      `--kubeconfig=${kubeconfig}`,
      `--controllers=${CONTROLLERS.join(',')}`,
      `--service-account-private-key-file=${files.serviceAccountKey}`,
      `--root-ca-file=${files.caFile}`,
      '--leader-elect=false',
      '--secure-port=0',
      '--v=1',
    ],
    logFile: join(dir, 'kube-controller-manager.log'),
    readyWhen: ready,
    readyTimeoutMs: 60_000,
  })
}
