import { randomBytes } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApiRequest, type ApiResponse, apiRequest } from './api-request.ts'
import { type ControlPlaneAssets, findAssets } from './assets.ts'
import { startApiServer, startControllerManager, writeApiServerFiles } from './components.ts'
import { type Etcd, startEtcd } from './etcd.ts'
import { kubeconfig } from './kubeconfig.ts'
import { freePort } from './ports.ts'
import type { RunningProcess } from './process.ts'
import { BRIEF_GO, type RunResult, runToEnd } from './run.ts'

export interface ControlPlaneOptions {
  /** Also start kube-controller-manager: namespaces then end, garbage is collected, cluster roles aggregate. Default false. */
  readonly controllerManager?: boolean
  /** Where it keeps its files; they stay there, and a later start finds the cluster as it was. Default: a temporary folder, removed by `stop`. */
  readonly dir?: string
  /** A folder that another one has left (its `dir`): this one begins as a copy of that cluster. */
  readonly begins?: string
  /** Found by `findAssets` when left out. */
  readonly assets?: ControlPlaneAssets
  /** More flags for kube-apiserver, such as `--watch-cache=false`. */
  readonly apiServerArgs?: readonly string[]
  readonly log?: (line: string) => void
  readonly signal?: AbortSignal
}

export interface KubectlOptions {
  /** Standard input, for `-f -`. */
  readonly input?: string
  /** Impersonates a user, `system:serviceaccount:<namespace>:<name>` for a service account. */
  readonly asUser?: string
  readonly asGroups?: readonly string[]
  /** Path of another kubeconfig than the administrator's. */
  readonly kubeconfig?: string
  /** Default 60,000. */
  readonly timeoutMs?: number
}

export interface ControlPlane {
  /** https://127.0.0.1:<port> */
  readonly url: string
  /** Certificate authority of the API server's certificate. */
  readonly caPem: string
  /** Of a user in system:masters: every right. */
  readonly adminKubeconfig: string
  readonly adminKubeconfigPath: string
  /** Logs of the parts, and whatever a test wants to put beside them. */
  readonly dir: string
  readonly assets: ControlPlaneAssets
  pids(): { readonly etcd: number; readonly apiServer: number; readonly controllerManager?: number }
  /** Runs the real kubectl. A refusal is an exit code, not an exception. */
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<RunResult>
  /** As `kubectl`; throws with stderr unless it exits 0; returns stdout. */
  kubectlOk(args: readonly string[], options?: KubectlOptions): Promise<string>
  /** `kubectl apply -f -` as the administrator. */
  apply(yaml: string): Promise<string>
  /** One request to the API, as the administrator unless a token is given. Never throws for a status. */
  request(request: ApiRequest): Promise<ApiResponse>
  /** A token as a pod of this service account would get. The service account must exist. */
  tokenFor(serviceAccount: ServiceAccount): Promise<string>
  /** A kubeconfig with such a token, so that a program runs with the service account's rights and no more. */
  kubeconfigFor(serviceAccount: ServiceAccount): Promise<string>
  /** Ends the API server at once (SIGKILL). Its clients see their connections reset, then refused. */
  stopApiServer(): Promise<void>
  /** Starts it again on the same port, with the same keys; resolves when it is ready. */
  startApiServer(): Promise<void>
  /** `moreArgs`: flags beside those that it was started with, such as `--emulated-version=1.33`, for an older cluster. */
  restartApiServer(moreArgs?: readonly string[]): Promise<void>
  /**
   * Compacts etcd at its present revision and returns that. The API server answers 410 to a list or watch from before, as soon as its own watch
   * cache doesn't hold it any more: at once with `--watch-cache=false`, after `restartApiServer()` otherwise.
   */
  compactEtcd(): Promise<bigint>
  /** Keeps a copy of etcd as it is, for `restoreEtcd`. etcd is away for a moment. */
  backUpEtcd(): Promise<void>
  /** Sets etcd back to the copy, with the API server stopped, as one does it: all that was written since is gone. Resolves when the API server is ready. */
  restoreEtcd(): Promise<void>
  stop(): Promise<void>
}

export interface ServiceAccount {
  readonly namespace: string
  readonly name: string
}

/**
 * Starts a real etcd and kube-apiserver (and kube-controller-manager) on free ports of 127.0.0.1, with RBAC, and waits until they are ready.
 * @throws with the failing part's last lines.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const log = options.log ?? ((line: string) => console.error(line))
  const assets = options.assets ?? (await findAssets({ env: process.env, log, signal: options.signal ?? AbortSignal.timeout(45 * 60_000) }))
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'staking-control-plane-'))
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  // Without what etcd only keeps in reserve.
  if (options.begins !== undefined) cpSync(options.begins, dir, { recursive: true, filter: (file) => !/\.(log|tmp)$/.test(file) })
  const port = await freePort()
  const url = `https://127.0.0.1:${port}`
  const adminToken = randomBytes(32).toString('hex')
  const files = writeApiServerFiles(dir, adminToken)

  let etcd: Etcd | undefined
  let apiServer: RunningProcess | undefined
  let controllerManager: RunningProcess | undefined
  // Tests look again and again, and a handshake costs both sides more than what is looked at. The API server closes what was idle for longer than this.
  const connections = (): Agent => new Agent({ keepAlive: true, timeout: 30_000 })
  let agent = connections()
  const startServer = async (etcdUrl: string, moreArgs: readonly string[] = []): Promise<RunningProcess> =>
    startApiServer({
      ...{ command: assets.kubeApiserver, dir, port, etcdUrl, files, adminToken },
      extra: [...(options.apiServerArgs ?? []), ...moreArgs],
    })
  const stop = async (): Promise<void> => {
    // The API server closes its watches only slowly; nothing in it is worth waiting for.
    await controllerManager?.stop(2_000)
    await apiServer?.stop(2_000)
    agent.destroy()
    await etcd?.process.stop(5_000)
    if (options.dir === undefined) rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
  }
  try {
    etcd = await startEtcd({ command: assets.etcd, dir })
    apiServer = await startServer(etcd.url)
    const caPem = files.caPem()
    const adminKubeconfig = kubeconfig({ url, caPem, user: 'admin', token: adminToken })
    const adminKubeconfigPath = join(dir, 'admin.kubeconfig')
    writeFileSync(adminKubeconfigPath, adminKubeconfig, { mode: 0o600 })
    const request = (given: ApiRequest): Promise<ApiResponse> => apiRequest({ url, caPem, token: adminToken, agent }, given)
    if (options.controllerManager === true) {
      controllerManager = await startControllerManager({
        command: assets.kubeControllerManager,
        dir,
        kubeconfig: adminKubeconfigPath,
        files,
        ready: async () => (await request({ path: '/api/v1/namespaces/default/serviceaccounts/default' })).status === 200,
      })
    }
    const running = { etcd, controllerManager }

    const kubectl: ControlPlane['kubectl'] = async (args, given = {}) =>
      runToEnd({
        command: assets.kubectl,
        args: [
          `--kubeconfig=${given.kubeconfig ?? adminKubeconfigPath}`,
          `--cache-dir=${join(dir, 'kubectl-cache')}`,
          ...(given.asUser === undefined ? [] : [`--as=${given.asUser}`]),
          ...(given.asGroups ?? []).map((group) => `--as-group=${group}`),
          ...args,
        ],
        env: { ...BRIEF_GO, KUBECONFIG: undefined },
        ...(given.input === undefined ? {} : { input: given.input }),
        signal: AbortSignal.timeout(given.timeoutMs ?? 60_000),
      })
    const kubectlOk: ControlPlane['kubectlOk'] = async (args, given) => {
      const { code, stdout, stderr } = await kubectl(args, given)
      if (code !== 0) throw new Error(`kubectl ${args.join(' ')} exited with ${code}: ${stderr.trim()}`)
      return stdout
    }
    const tokenFor: ControlPlane['tokenFor'] = async ({ namespace, name }) => {
      const { status, body } = await request({
        method: 'POST',
        path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 24 * 3600 } },
      })
      const token = (body as { status?: { token?: unknown } } | undefined)?.status?.token
      if (status !== 201 || typeof token !== 'string') {
        throw new Error(`no token for service account ${namespace}/${name}: HTTP ${status} (apply what creates it first)`)
      }
      return token
    }
    const stopApiServer = async (): Promise<void> => {
      apiServer?.kill('SIGKILL')
      await apiServer?.exited
      // None of the next one's requests goes to a connection of this one.
      agent.destroy()
      agent = connections()
    }
    const startAgain = async (moreArgs?: readonly string[]): Promise<void> => {
      if (apiServer?.alive() === true) throw new Error('the API server runs')
      apiServer = await startServer(running.etcd.url, moreArgs)
    }
    return {
      url,
      caPem,
      adminKubeconfig,
      adminKubeconfigPath,
      dir,
      assets,
      pids: () => ({
        etcd: running.etcd.process.pid,
        apiServer: apiServer?.pid ?? -1,
        ...(running.controllerManager === undefined ? {} : { controllerManager: running.controllerManager.pid }),
      }),
      kubectl,
      kubectlOk,
      apply: (yaml) => kubectlOk(['apply', '-f', '-'], { input: yaml }),
      request,
      tokenFor,
      kubeconfigFor: async (account) =>
        kubeconfig({ url, caPem, user: account.name, token: await tokenFor(account), namespace: account.namespace }),
      stopApiServer,
      startApiServer: () => startAgain(),
      restartApiServer: async (moreArgs) => {
        await stopApiServer()
        await startAgain(moreArgs)
      },
      compactEtcd: running.etcd.compact,
      backUpEtcd: running.etcd.backUp,
      restoreEtcd: async () => {
        await stopApiServer()
        await running.etcd.restore()
        await startAgain()
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
