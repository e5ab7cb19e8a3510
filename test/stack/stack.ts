import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Anvil, AnvilOptions } from '../chains/anvil.ts'
import type { BeaconSimulator } from '../chains/beacon/simulator.ts'
import { type FaultyProxy, startFaultyHttp } from '../chains/faulty-http.ts'
import { startFaultyRpc } from '../chains/faulty-rpc.ts'
import { untilEstablished, untilRecorded } from '../cluster/apply.ts'
import { installRights } from '../cluster/chart.ts'
import { type ControlPlane, type ControlPlaneOptions, type ServiceAccount, startControlPlane } from '../cluster/control-plane.ts'
import { freePort } from '../cluster/ports.ts'
import type { Exit } from '../cluster/process.ts'
import { type StackCluster, startInstalled } from './cluster.ts'
import { type EthereumSource, ethereumNetwork, type StackBeaconOptions, startStackEthereum } from './ethereum.ts'
import { writeKey, writeSolanaKey } from './keys.ts'
import { createProgram, type Program } from './program.ts'
import { programFile } from './programs.ts'
import { startStackService } from './service.ts'
import { SOLANA_NETWORK, type StackSolana, type StackSolanaOptions, solanaNetwork, startStackSolana } from './solana.ts'
import { writeJson } from './write-json.ts'

export { type EthereumSource, FAST_BEACON, NETWORK } from './ethereum.ts'
export { writeKey, writeSolanaKey } from './keys.ts'
export { clientOf, TEST_SEED } from './service.ts'
export { SOLANA_NETWORK, SOLANA_STAKER, SOLANA_STAKER_ADDRESS, SOLANA_WITHDRAWER, SOLANA_WITHDRAWER_ADDRESS } from './solana.ts'

/** Folder of the mounted key, and name of the signer, that pays in tests and the demo: the first account of anvil, and of the devnet. */
export const KEY_NAME = 'treasury'

export interface StackOptions {
  readonly dir?: string
  readonly anvil?: AnvilOptions
  /** The simulated beacon chain over anvil, for both programs. `FAST_BEACON` has constants for tests. Default: none. */
  readonly beacon?: StackBeaconOptions
  /** Another network instead of anvil, which the caller ends: `startDevnet()`. */
  readonly ethereum?: EthereumSource
  /** The simulated Solana cluster, a network of its own for both programs. Default: none. */
  readonly solana?: StackSolanaOptions
  readonly controllerManager?: boolean
  /** Installs the definitions and the operator's rights, and says under whose the operator runs. Default: those two alone, as the chart has them. */
  readonly install?: (cluster: ControlPlane, networks: NetworksDocument) => Promise<ServiceAccount>
  /** Put proxies in front of the chain and the service that can misbehave on demand. */
  readonly faults?: boolean
  readonly bumpAfterMs?: number
  /** `finalized` or a number of blocks. */
  readonly confirmations?: 'finalized' | number
  readonly operatorArgs?: readonly string[]
  /** The operator is started again where it ends by itself, as a kubelet does. Default false. */
  readonly restartOperator?: boolean
  /** Starts the operator at once. Default true. */
  readonly startOperator?: boolean
  /** The program that runs as operator and service. Default: `mainEntry`. */
  readonly entry?: string
  /** What runs as the operator. Default: the program itself. Crash tests bring an entry of their own. */
  readonly operatorEntry?: string
  readonly operatorEnv?: Readonly<Record<string, string>>
  /** Of the service and its commands: `STAKING_SERVICE_DATABASE_URL_FILE` has it use a PostgreSQL server. */
  readonly serviceEnv?: Readonly<Record<string, string>>
  readonly log?: (line: string) => void
  readonly signal?: AbortSignal
}

export interface Stack {
  readonly dir: string
  readonly cluster: ControlPlane
  /** The Ethereum network, whatever it is. */
  readonly ethereum: EthereumSource
  /** Throws when it is used, where the stack runs on another network. */
  readonly anvil: Anvil
  /** Throws when it is used, where the stack was started without. */
  readonly beacon: BeaconSimulator
  /** Throws when it is used, where the stack was started without. */
  readonly solana: StackSolana
  readonly service: Program
  readonly operator: Program
  /** In front of the chain and the service; there with `faults`. */
  readonly rpcFaults: FaultyProxy | undefined
  readonly apiFaults: FaultyProxy | undefined
  readonly serviceUrl: string
  readonly serviceConfigFile: string
  readonly apiKeyFile: string
  readonly keysDir: string
  readonly networksFile: string
  readonly operatorKubeconfig: string
  readonly operatorMetrics: string
  /** The operator's networks, before they are written: tests change and write them again. */
  readonly networks: NetworksDocument
  writeNetworks(networks: NetworksDocument): void
  /** Everything the two programs have logged, in whole lines: a pipe may bring the last one in pieces. */
  logs(): string
  stop(): Promise<void>
}

export interface NetworksDocument {
  readonly stakingApi: { readonly url: string; readonly apiKeyFile: string; readonly timeoutMs: number }
  readonly networks: readonly Readonly<Record<string, unknown>>[]
}

export const mainEntry = programFile('src/main.ts')
export const kubectlEntry = programFile('src/kubectl-staking.ts')

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
  const ending =
    <T>(end: (value: T) => Promise<unknown>) =>
    (value: T): T => {
      undo.push(() => end(value))
      return value
    }
  try {
    log('starting etcd, kube-apiserver and the chains')
    // Each says how to end it as soon as it is there: what started beside one that failed is ended too.
    const controlPlane: ControlPlaneOptions = {
      controllerManager: options.controllerManager ?? false,
      log,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    }
    const [{ cluster, installed }, chains, solana] = await allOf(
      (options.install === undefined
        ? startInstalled(controlPlane)
        : startControlPlane(controlPlane).then((empty): StackCluster => ({ cluster: empty }))
      ).then(ending((each) => each.cluster.stop())),
      startStackEthereum(options).then(ending((each) => each.stop())),
      options.solana === undefined
        ? undefined
        : startStackSolana({ faults: options.faults === true, ...options.solana }).then(ending((each) => each.close())),
    )
    const { source: ethereum, anvil, beacon } = chains
    const rpcFaults = options.faults === true ? await startFaultyRpc(ethereum.url) : undefined
    if (rpcFaults) undo.push(() => rpcFaults.stop())

    log('starting the staking service')
    const confirmations = options.confirmations ?? 'finalized'
    const {
      program: service,
      serviceUrl,
      configFile: serviceConfigFile,
      apiKeyFile,
    } = await startStackService({
      dir,
      entry,
      ...(options.serviceEnv === undefined ? {} : { env: options.serviceEnv }),
      networks: [
        ethereumNetwork(ethereum, confirmations, ethereum.url),
        ...(solana === undefined ? [] : [solanaNetwork(solana, solana.url)]),
      ],
      ...(solana === undefined ? {} : { solana: { defaultVoteAccounts: { [SOLANA_NETWORK]: solana.validator.voteAccount } } }),
    })
    undo.push(() => service.stop())
    const apiFaults = options.faults === true ? await startFaultyHttp({ target: serviceUrl }) : undefined
    if (apiFaults) undo.push(() => apiFaults.stop())

    const keysDir = join(dir, 'keys')
    const [payer] = ethereum.accounts
    if (payer === undefined) throw new Error('the network has no account')
    writeKey(keysDir, KEY_NAME, payer.privateKey)
    for (const [name, keypair] of Object.entries(solana?.keys ?? {})) writeSolanaKey(keysDir, name, keypair)
    const networksFile = join(dir, 'networks.yaml')
    const networks: NetworksDocument = {
      stakingApi: { url: apiFaults?.url ?? serviceUrl, apiKeyFile, timeoutMs: 5_000 },
      networks: [
        { ...ethereumNetwork(ethereum, confirmations, rpcFaults?.url ?? ethereum.url), bumpAfterMs: options.bumpAfterMs ?? 60_000 },
        ...(solana === undefined ? [] : [solanaNetwork(solana, solana.operatorUrl)]),
      ],
    }
    const writeNetworks = (document: NetworksDocument) => writeJson(networksFile, document)
    writeNetworks(networks)

    log(options.install === undefined ? 'installing the CRDs and the rights of the operator' : 'installing the chart')
    const serviceAccount = installed ?? (await (options.install ?? installRights)(cluster, networks))
    await untilEstablished(cluster)
    if (options.install !== undefined) await untilRecorded(cluster)
    const operatorKubeconfig = join(dir, 'operator.kubeconfig')
    writeFileSync(operatorKubeconfig, await cluster.kubeconfigFor(serviceAccount), { mode: 0o600 })

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
      ...(options.restartOperator === true
        ? {
            onRestart: ({ code }: Exit) =>
              log(`the operator has ended (${code ?? 'by a signal'}) and is started again: see ${join(dir, 'operator.log')}`),
          }
        : {}),
    })
    undo.push(() => operator.stop())
    if (options.startOperator !== false) {
      log('starting the operator')
      await operator.start()
    }
    return {
      dir,
      cluster,
      ethereum,
      anvil: anvil ?? absent('anvil: it runs on another network'),
      beacon: beacon ?? absent('simulated beacon chain: ask for it with `beacon`'),
      solana: solana ?? absent('Solana cluster: ask for it with `solana`'),
      service,
      operator,
      rpcFaults,
      apiFaults,
      serviceUrl,
      serviceConfigFile,
      apiKeyFile,
      keysDir,
      networksFile,
      operatorKubeconfig,
      operatorMetrics,
      networks,
      writeNetworks,
      logs: () => ['operator.log', 'service.log'].map((file) => wholeLines(join(dir, file))).join('\n'),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const wholeLines = (path: string): string => {
  try {
    const text = readFileSync(path, 'utf8')
    return text.slice(0, text.lastIndexOf('\n') + 1)
  } catch {
    return ''
  }
}

/** Stands for a part that was not started: whoever uses it is told. */
const absent = <T extends object>(what: string): T =>
  new Proxy({} as T, {
    get: () => {
      throw new Error(`this stack has no ${what}`)
    },
  })

/** As `Promise.all`, but it waits for all of them: none may still be starting when the others are ended. */
async function allOf<T extends readonly unknown[]>(...promises: T): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}
