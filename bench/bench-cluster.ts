import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installRights } from '../test/cluster/chart.ts'
import { type ControlPlane, startControlPlane } from '../test/cluster/control-plane.ts'
import { freePort } from '../test/cluster/ports.ts'
import { type RunningProcess, startProcess } from '../test/cluster/process.ts'
import { CHAIN_ID, DEPOSIT_CONTRACT, GENESIS_FORK_VERSION, KEY_NAME, NETWORK, PAYER, PAYER_KEY, SIGNER } from './network.ts'

const repository = join(import.meta.dirname, '..')

export interface BenchCluster {
  readonly cluster: ControlPlane
  readonly dir: string
  /**
   * Starts the chain and the staking API, which hold so many stakes ready. `fleet`: so many deposits of the settled fleet are on the chain. With `blockMs`
   * the chain makes a block every so many ms, final after `finality` more.
   */
  startFakes(stakes: number, chain?: { readonly fleet?: number; readonly blockMs?: number; readonly finality?: number }): Promise<Fakes>
  /** Starts the operator's own command under its own rights and waits until its caches are full. */
  startOperator(fakes: Fakes, options?: OperatorStart): Promise<BenchOperator>
  /** Namespaces of the stakes, and the signer that pays. */
  prepare(namespaces: readonly string[]): Promise<void>
  stop(): Promise<void>
}

export interface OperatorStart {
  /** For Node, before the program. */
  readonly nodeArgs?: readonly string[]
}

export interface BenchOperator {
  readonly process: RunningProcess
  readonly metricsUrl: string
  /** From the start of the process until it is ready. */
  readonly readyMs: number
}

export interface Fakes {
  readonly url: string
  progress(): Promise<{ readonly created: number; readonly mined: number; readonly inFlight: number; readonly submitted: number }>
  stop(): Promise<void>
}

/** With `profileDir` each operator leaves a CPU profile there. */
export async function startBenchCluster(
  log: (line: string) => void,
  signal: AbortSignal,
  profileDir: string | undefined,
): Promise<BenchCluster> {
  const dir = mkdtempSync(join(tmpdir(), 'staking-bench-'))
  const undo: (() => Promise<unknown>)[] = [async () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 })]
  const stop = async () => {
    for (const step of undo.toReversed()) await step().catch((error: unknown) => log(`while stopping: ${String(error)}`))
    undo.length = 0
  }
  try {
    log('starting etcd and kube-apiserver')
    const cluster = await startControlPlane({ log, signal })
    undo.push(() => cluster.stop())
    const serviceAccount = await installRights(cluster)
    await cluster.kubectlOk(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s'])
    const kubeconfig = join(dir, 'operator.kubeconfig')
    writeFileSync(kubeconfig, await cluster.kubeconfigFor(serviceAccount), { mode: 0o600 })
    const keysDir = join(dir, 'keys')
    mkdirSync(join(keysDir, KEY_NAME), { recursive: true })
    writeFileSync(join(keysDir, KEY_NAME, 'privateKey'), `${PAYER_KEY}\n`, { mode: 0o600 })
    const apiKeyFile = join(dir, 'api-key')
    writeFileSync(apiKeyFile, 'the-fake-takes-any-key\n', { mode: 0o600 })

    return {
      cluster,
      dir,
      stop,
      async startFakes(stakes, { fleet = 0, blockMs, finality = 0 } = {}) {
        const fakes = await startProcess({
          name: 'fakes',
          command: process.execPath,
          args: [
            join(import.meta.dirname, 'fakes/main.ts'),
            '--stakes',
            String(stakes),
            '--fleet',
            String(fleet),
            '--finality',
            String(finality),
            ...(blockMs === undefined ? [] : ['--block-ms', String(blockMs)]),
          ],
        })
        undo.push(() => fakes.stop())
        const [, url = ''] = await fakes.waitForOutput(/listening (http:\S+)/, 60_000)
        return {
          url,
          progress: async () => (await fetch(`${url}/progress`, { signal: AbortSignal.timeout(10_000) })).json() as never,
          stop: async () => {
            await fakes.stop()
          },
        }
      },
      async startOperator(fakes, { nodeArgs = [] } = {}) {
        const networksFile = join(dir, 'networks.yaml')
        writeFileSync(
          networksFile,
          JSON.stringify({
            stakingApi: { url: fakes.url, apiKeyFile, timeoutMs: 10_000 },
            networks: [
              {
                name: NETWORK,
                chain: 'Ethereum',
                chainId: CHAIN_ID,
                depositContractAddress: DEPOSIT_CONTRACT,
                genesisForkVersion: GENESIS_FORK_VERSION,
                rpcUrls: [`${fakes.url}/rpc`],
                // A chain that mines at once is looked at often.
                pollIntervalMs: 500,
              },
            ],
          }),
        )
        const port = await freePort()
        const args = [
          ...nodeArgs,
          ...(profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`]),
          join(repository, 'src/main.ts'),
          'operator',
          '--kubeconfig',
          kubeconfig,
          '--networks',
          networksFile,
          '--keys-dir',
          keysDir,
          '--listen',
          `127.0.0.1:${port}`,
          // Not to lose the lease where the machine is busy with what is measured; an instance that is stopped gives it back.
          '--lease-duration',
          '30s',
          '--renew-deadline',
          '25s',
          '--retry-period',
          '500ms',
        ]
        const startedAt = performance.now()
        const operator = await startProcess({
          name: 'operator',
          command: process.execPath,
          args,
          logFile: join(dir, 'operator.log'),
          readyTimeoutMs: 120_000,
          readyWhen: async ({ signal: probe }) => (await fetch(`http://127.0.0.1:${port}/readyz`, { signal: probe })).ok,
        })
        const readyMs = performance.now() - startedAt
        undo.push(() => operator.stop())
        return { process: operator, metricsUrl: `http://127.0.0.1:${port}/metrics`, readyMs }
      },
      async prepare(namespaces) {
        const objects = [
          ...namespaces.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
          {
            apiVersion: 'staking.dev/v1alpha1',
            kind: 'StakingSigner',
            metadata: { name: SIGNER },
            spec: {
              chain: 'Ethereum',
              keyName: KEY_NAME,
              address: PAYER,
              policy: { allowedNamespaces: { names: namespaces }, maxPerTransaction: '64' },
            },
          },
        ]
        await cluster.kubectlOk(['apply', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }) })
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}
