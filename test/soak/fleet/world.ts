import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { signDepositMessage } from '../../../src/chains/ethereum/deposit.ts'
import { gwei } from '../../../src/lib/amounts.ts'
import { type Anvil, startAnvil } from '../../chains/anvil.ts'
import { REQUEST_CONTRACT } from '../../chains/beacon/execution.ts'
import { type BeaconSimulator, startBeaconSimulator } from '../../chains/beacon/simulator.ts'
import { type FaultyProxy, startFaultyHttp } from '../../chains/faulty-http.ts'
import { startFaultyRpc } from '../../chains/faulty-rpc.ts'
import type { SolanaNode } from '../../chains/solana/cluster.ts'
import type { ControlPlane } from '../../cluster/control-plane.ts'
import { type Postgres, startPostgres } from '../../cluster/postgres.ts'
import { runToEnd } from '../../cluster/run.ts'
import { type FaultyLink, startToxiproxy } from '../../cluster/toxiproxy.ts'
import { FAST_BEACON } from '../../stack/ethereum.ts'
import type { Program } from '../../stack/program.ts'
import { replicaOf } from '../../stack/replica.ts'
import { PAYER } from '../../stack/resources.ts'
import type { StackSolana } from '../../stack/solana.ts'
import { type Stack, startStack } from '../../stack/stack.ts'
import { type Clock, createClock } from './clock.ts'

/** One of the programs, kept running as a kubelet would. */
export interface Kept {
  readonly name: string
  readonly program: Program
  readonly clock: Clock
  /** Ended on purpose: it stays so. */
  isHeld: boolean
}

export interface Fleet {
  readonly stack: Stack
  readonly cluster: ControlPlane
  readonly anvil: Anvil
  readonly beacon: BeaconSimulator
  readonly solana: StackSolana
  readonly operators: readonly [Kept, Kept]
  readonly service: Kept
  /** Each operator's connection to the API server, and the service's to its database. */
  readonly links: { readonly toApiServer: readonly [FaultyLink, FaultyLink]; readonly toDatabase: FaultyLink }
  /** What the programs take for two nodes of the chain. */
  readonly nodes: readonly [FaultyProxy, FaultyProxy]
  readonly beaconNode: FaultyProxy
  readonly stakingApi: FaultyProxy
  /** The operators' nodes; the service, and the oracle, have another. */
  readonly solanaNodes: readonly [SolanaNode, SolanaNode]
  readonly database: Database
  /** Public keys of validators that are there from the start and belong to the signer: 40 ETH each. */
  readonly validators: readonly string[]
  stop(): Promise<void>
}

export interface Database {
  readonly server: Postgres
  backUp(): Promise<void>
  /** Sets it back to the copy. The service must be down. */
  restore(): Promise<void>
}

const SOL = 1_000_000_000n
const NAME = 'staking'
/** So that who dies or freezes is followed by the other within seconds. */
const LEASE = ['--lease-duration', '4s', '--renew-deadline', '3s', '--retry-period', '500ms']
const OPERATOR = [...LEASE, '--stall-recheck', '2s', '--signer-interval', '2s', '--observe-activating', '3s', '--observe-settled', '10s']

export interface FleetOptions {
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/** Everything at once: two operators over one cluster, two nodes of each chain, a beacon chain, the service on PostgreSQL, and something between each two that can fail. */
export async function startFleet({ say, signal }: FleetOptions): Promise<Fleet> {
  const dir = mkdtempSync(join(tmpdir(), 'staking-fleet-'))
  const undo: (() => Promise<unknown>)[] = [async () => rmSync(dir, { recursive: true, force: true })]
  const stop = async (): Promise<void> => {
    for (const step of undo.toReversed()) await step().catch((error: unknown) => say(`while stopping: ${String(error)}`))
  }
  const ending =
    <T>(end: (value: T) => Promise<unknown>) =>
    (value: T): T => {
      undo.push(() => end(value))
      return value
    }
  const stopping = ending<{ stop(): Promise<unknown> }>((one) => one.stop()) as <T extends { stop(): Promise<unknown> }>(one: T) => T
  try {
    const [anvil, server, toxiproxy] = await Promise.all([
      startAnvil({ mining: 1, accounts: 4, balanceEth: 50_000_000, keepsStates: false, extra: ['--prune-history', '64'] }).then(stopping),
      startPostgres().then(stopping),
      startToxiproxy(signal).then(stopping),
    ])
    const withdrawalCredentials = `0x02${'0'.repeat(22)}${PAYER.slice(2).toLowerCase()}` as const
    const validators = Array.from({ length: 250 }, (_, index) => {
      const secret = new Uint8Array(32).fill(1)
      secret[31] = index + 1
      const { GENESIS_FORK_VERSION: genesisForkVersion = '0x10000038' } = FAST_BEACON.spec ?? {}
      return signDepositMessage(secret, { withdrawalCredentials, amountGwei: gwei(40n * SOL), genesisForkVersion }).pubkey
    })
    const beacon = stopping(
      await startBeaconSimulator({
        anvil,
        time: 'clock',
        spec: { ...FAST_BEACON.spec, SECONDS_PER_SLOT: 1 },
        validators: validators.map((pubkey) => ({ pubkey, withdrawalCredentials, amountGwei: 40n * SOL })),
      }),
    )
    const nodes = [stopping(await startFaultyRpc(anvil.url)), stopping(await startFaultyRpc(anvil.url))] as const
    const beaconNode = stopping(await startFaultyHttp({ target: beacon.url }))

    const database = new URL(await server.createDatabase(NAME))
    const toDatabase = await toxiproxy.proxy('database', database.host)
    const through = new URL(database)
    through.host = toDatabase.address
    const urlFile = join(dir, 'database-url')
    writeFileSync(urlFile, through.href, { mode: 0o600 })
    const clocks = { operator: createClock(dir, 'operator'), other: createClock(dir, 'other'), service: createClock(dir, 'service') }
    const stack = stopping(
      await startStack({
        ethereum: {
          url: nodes[0].url,
          chainId: anvil.chainId,
          depositContract: anvil.depositContract,
          genesisForkVersion: beacon.spec.GENESIS_FORK_VERSION,
          accounts: anvil.accounts,
          beaconUrl: beaconNode.url,
        },
        solana: { faults: false },
        controllerManager: true,
        bumpAfterMs: 3_000,
        startOperator: false,
        operatorArgs: OPERATOR,
        operatorEnv: clocks.operator.env,
        serviceEnv: { STAKING_SERVICE_DATABASE_URL_FILE: urlFile, ...clocks.service.env },
        log: say,
        signal,
      }),
    )
    const { cluster, solana, networks } = stack
    for (const address of Object.values(solana.keys)) solana.fund(address.publicKey.toBase58(), 1_000_000n * SOL)
    const stakingApi = stopping(await startFaultyHttp({ target: stack.serviceUrl }))
    const solanaNodes = [await solana.addNode(), await solana.addNode()] as const
    stack.writeNetworks({
      stakingApi: { ...networks.stakingApi, url: stakingApi.url },
      networks: networks.networks.map((network) => ({
        ...network,
        rpcUrls: (network.chain === 'Solana' ? solanaNodes : nodes).map(({ url }) => url),
        // The service names itself, and the operators reach it through a proxy.
        ...(network.chain === 'Solana' ? { challengeDomain: new URL(stack.serviceUrl).host } : {}),
      })),
    })

    const toApiServer = await Promise.all(
      ['operator', 'other'].map((name) => toxiproxy.proxy(`apiserver-of-${name}`, new URL(cluster.url).host)),
    )
    const [link, otherLink] = toApiServer
    if (link === undefined || otherLink === undefined) throw new Error('toxiproxy made no proxy')
    const kubeconfig = readFileSync(stack.operatorKubeconfig, 'utf8')
    const otherKubeconfig = join(dir, 'other.kubeconfig')
    writeFileSync(stack.operatorKubeconfig, kubeconfig.replaceAll(cluster.url, `https://${link.address}`), { mode: 0o600 })
    writeFileSync(otherKubeconfig, kubeconfig.replaceAll(cluster.url, `https://${otherLink.address}`), { mode: 0o600 })
    const other = stopping(await replicaOf(stack, { flags: { '--kubeconfig': otherKubeconfig }, env: clocks.other.env }))
    await stack.operator.start()
    await other.start()
    const kept = (name: string, program: Program, clock: Clock): Kept => ({ name, program, clock, isHeld: false })
    return {
      stack,
      cluster,
      anvil,
      beacon,
      solana,
      operators: [kept('operator', stack.operator, clocks.operator), kept('other operator', other, clocks.other)],
      service: kept('service', stack.service, clocks.service),
      links: { toApiServer: [link, otherLink], toDatabase },
      nodes,
      beaconNode,
      stakingApi,
      solanaNodes,
      database: databaseOf(server, database.href, join(dir, 'staking.dump')),
      validators,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

export const TERMS = { requestContract: REQUEST_CONTRACT.toLowerCase(), signer: PAYER.toLowerCase() }

/** As docs/how-to/back-up-and-restore-the-service.md has it. */
function databaseOf(server: Postgres, url: string, dump: string): Database {
  const tool = async (program: string, ...args: readonly string[]): Promise<void> => {
    const { code, stderr } = await runToEnd({ command: join(server.bin, program), args, signal: AbortSignal.timeout(60_000) })
    if (code !== 0) throw new Error(`${program}: ${stderr}`)
  }
  return {
    server,
    backUp: () => tool('pg_dump', '--format=custom', `--file=${dump}`, url),
    restore: async () => {
      const client = new pg.Client({ connectionString: server.url })
      await client.connect()
      await client.query(`drop database ${NAME} with (force)`)
      await client.end()
      await server.createDatabase(NAME)
      await tool('pg_restore', '--exit-on-error', `--dbname=${url}`, dump)
    },
  }
}
