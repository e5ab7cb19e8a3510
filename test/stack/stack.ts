import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Anvil, type AnvilOptions, startAnvil } from '../chains/anvil.ts'
import { type FaultyProxy, startFaultyHttp } from '../chains/faulty-http.ts'
import { startFaultyRpc } from '../chains/faulty-rpc.ts'
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts'
import { freePort } from '../cluster/ports.ts'
import { type RunningProcess, startProcess } from '../cluster/process.ts'
import { createProgram, type Program } from './program.ts'

/** The seed of the validators' keys in tests and the demo: well known, so worthless. */
export const TEST_SEED = '7465737420736565642c20776f7274686c6573733a206e6576657220757365206974212121'
export const NETWORK = 'local'
/** Folder of the mounted key, and name of the signer, that pays in tests and the demo: anvil's first account. */
export const KEY_NAME = 'treasury'

export interface StackOptions {
  readonly dir?: string
  readonly anvil?: AnvilOptions
  readonly controllerManager?: boolean
  /** Put proxies in front of the chain and the service that can misbehave on demand. */
  readonly faults?: boolean
  readonly bumpAfterMs?: number
  /** `finalized` or a number of blocks. */
  readonly confirmations?: 'finalized' | number
  readonly operatorArgs?: readonly string[]
  /** Starts the operator at once. Default true. */
  readonly startOperator?: boolean
  /** The program that runs as operator and service. Default: its source. */
  readonly entry?: string
  /** What runs as the operator. Default: the program itself. Crash tests bring an entry of their own. */
  readonly operatorEntry?: string
  readonly operatorEnv?: Readonly<Record<string, string>>
  readonly log?: (line: string) => void
  readonly signal?: AbortSignal
}

export interface Stack {
  readonly dir: string
  readonly cluster: ControlPlane
  readonly anvil: Anvil
  readonly service: Program
  readonly operator: Program
  /** In front of the chain and the service; there with `faults`. */
  readonly rpcFaults: FaultyProxy | undefined
  readonly apiFaults: FaultyProxy | undefined
  readonly serviceUrl: string
  readonly apiKeyFile: string
  readonly keysDir: string
  readonly networksFile: string
  readonly operatorKubeconfig: string
  readonly operatorMetrics: string
  /** The operator's networks, before they are written: tests change and write them again. */
  readonly networks: NetworksDocument
  writeNetworks(networks: NetworksDocument): void
  /** Everything the two programs have logged. */
  logs(): string
  stop(): Promise<void>
}

export interface NetworksDocument {
  readonly stakingApi: { readonly url: string; readonly apiKeyFile: string; readonly timeoutMs: number }
  readonly networks: readonly Readonly<Record<string, unknown>>[]
}

const repository = new URL('../..', import.meta.url).pathname
export const mainEntry = join(repository, 'src/main.ts')

/**
 * The whole system from one checkout: the real API server and etcd, a real EVM with the real deposit contract, the staking service, and the
 * operator as a process of its own under its ServiceAccount's rights.
 */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const { log = () => undefined, entry = mainEntry } = options
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'staking-stack-'))
  mkdirSync(dir, { recursive: true })
  const undo: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const step of undo.toReversed()) await step().catch((error: unknown) => log(`while stopping: ${String(error)}`))
    undo.length = 0
    if (options.dir === undefined) rmSync(dir, { recursive: true, force: true })
  }
  try {
    log('starting etcd, kube-apiserver and the chain')
    const [cluster, anvil] = await Promise.all([
      startControlPlane({
        controllerManager: options.controllerManager ?? false,
        log,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      }),
      startAnvil({ accounts: 4, ...options.anvil }),
    ])
    undo.push(
      () => cluster.stop(),
      () => anvil.stop(),
    )
    const rpcFaults = options.faults === true ? await startFaultyRpc(anvil.url) : undefined
    if (rpcFaults) undo.push(() => rpcFaults.stop())

    log('starting the staking service')
    const servicePort = await freePort()
    const chain = {
      name: NETWORK,
      chain: 'Ethereum',
      chainId: anvil.chainId,
      depositContractAddress: anvil.depositContract,
      genesisForkVersion: '0x10000038',
      confirmations: options.confirmations ?? 'finalized',
      pollIntervalMs: 500,
    }
    const serviceConfig = join(dir, 'service.yaml')
    writeFileSync(join(dir, 'seed'), `${TEST_SEED}\n`, { mode: 0o600 })
    writeJson(serviceConfig, {
      listen: { host: '127.0.0.1', port: servicePort },
      database: { dataDir: join(dir, 'service-data') },
      seedFile: join(dir, 'seed'),
      networks: [{ ...chain, rpcUrls: [anvil.url] }],
      rateLimit: { max: 1_000_000 },
      trackerIntervalMs: 500,
    })
    const serviceUrl = `http://127.0.0.1:${servicePort}`
    const service = createProgram({
      name: 'service',
      command: process.execPath,
      args: [entry, 'service', '--config', serviceConfig],
      logFile: join(dir, 'service.log'),
      readyUrl: `${serviceUrl}/readyz`,
    })
    const apiKeyFile = join(dir, 'api-key')
    const key = await runCommand([entry, 'api-keys', 'create', '--config', serviceConfig, '--account', 'platform', '--label', 'operator'])
    writeFileSync(apiKeyFile, key, { mode: 0o600 })
    await service.start()
    undo.push(() => service.stop())
    const apiFaults = options.faults === true ? await startFaultyHttp({ target: serviceUrl }) : undefined
    if (apiFaults) undo.push(() => apiFaults.stop())

    log('installing the CRDs and the rights of the operator')
    await cluster.kubectlOk(['apply', '-f', join(repository, 'crds')])
    await cluster.kubectlOk(['apply', '-f', join(repository, 'deploy/rbac.yaml')])
    await cluster.kubectlOk(['wait', '--for=condition=Established', 'crd', '-l', '!none', '--all', '--timeout=30s'])
    const operatorKubeconfig = join(dir, 'operator.kubeconfig')
    writeFileSync(operatorKubeconfig, await cluster.kubeconfigFor({ namespace: 'staking-system', name: 'staking-operator' }), {
      mode: 0o600,
    })

    const keysDir = join(dir, 'keys')
    const [payer] = anvil.accounts
    if (payer === undefined) throw new Error('anvil has no account')
    writeKey(keysDir, KEY_NAME, payer.privateKey)
    const networksFile = join(dir, 'networks.yaml')
    const networks: NetworksDocument = {
      stakingApi: { url: apiFaults?.url ?? serviceUrl, apiKeyFile, timeoutMs: 5_000 },
      networks: [{ ...chain, rpcUrls: [rpcFaults?.url ?? anvil.url], bumpAfterMs: options.bumpAfterMs ?? 60_000 }],
    }
    const writeNetworks = (document: NetworksDocument) => writeJson(networksFile, document)
    writeNetworks(networks)

    const operatorPort = await freePort()
    const operatorMetrics = `http://127.0.0.1:${operatorPort}/metrics`
    const operator = createProgram({
      name: 'operator',
      command: process.execPath,
      args: [
        options.operatorEntry ?? entry,
        'operator',
        '--kubeconfig',
        operatorKubeconfig,
        '--networks',
        networksFile,
        '--keys-dir',
        keysDir,
        '--listen',
        `127.0.0.1:${operatorPort}`,
        '--lease-duration',
        '3s',
        '--renew-deadline',
        '2s',
        '--retry-period',
        '500ms',
        '--stall-recheck',
        '3s',
        '--signer-interval',
        '3s',
        '--observe-activating',
        '5s',
        ...(options.operatorArgs ?? []),
      ],
      ...(options.operatorEnv === undefined ? {} : { env: options.operatorEnv }),
      logFile: join(dir, 'operator.log'),
      readyUrl: `http://127.0.0.1:${operatorPort}/readyz`,
    })
    undo.push(() => operator.stop())
    if (options.startOperator !== false) {
      log('starting the operator')
      await operator.start()
    }
    return {
      dir,
      cluster,
      anvil,
      service,
      operator,
      rpcFaults,
      apiFaults,
      serviceUrl,
      apiKeyFile,
      keysDir,
      networksFile,
      operatorKubeconfig,
      operatorMetrics,
      networks,
      writeNetworks,
      logs: () => ['operator.log', 'service.log'].map((file) => readIfThere(join(dir, file))).join('\n'),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** JSON is YAML. Written beside and renamed, as a reader may look at any time. */
function writeJson(path: string, value: unknown): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(value, null, 2)}\n`)
  renameSync(`${path}.new`, path)
}

/** Mounts a key as Kubernetes would: a folder with a file. */
export function writeKey(keysDir: string, keyName: string, privateKey: string): void {
  mkdirSync(join(keysDir, keyName), { recursive: true })
  const file = join(keysDir, keyName, 'privateKey')
  writeFileSync(`${file}.new`, `${privateKey}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

const readIfThere = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Runs a command of the program to its end and gives what it printed on standard output, which is its last line. */
async function runCommand(args: readonly string[]): Promise<string> {
  const run: RunningProcess = await startProcess({ name: args.slice(1, 3).join(' '), command: process.execPath, args })
  const { code } = await run.exited
  if (code !== 0) throw new Error(`${args.slice(1).join(' ')} failed: ${run.output()}`)
  const lines = run.output().trim().split('\n')
  return `${lines.at(-1) ?? ''}\n`
}
