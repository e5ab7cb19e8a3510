import { existsSync } from 'node:fs'
import { createBeaconGet } from '../../chains/ethereum/beacon-http.ts'
import { parseExact } from '../../chains/solana/rpc-formats.ts'
import type { Clock } from '../../lib/clock.ts'
import { createRpcClient, type RpcCall } from '../../lib/json-rpc.ts'
import { createKeys } from '../../operator/keys/keys.ts'
import { createRemoteSigners, type LiveRemoteSigners } from '../../operator/keys/remote/remote-signers.ts'
import { type NetworksFile, readNetworksFile } from '../../operator/networks/networks-file.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { Cluster } from '../cluster.ts'
import { lookAtBeaconNode } from './beacon-node.ts'
import { lookAtApprovals, lookAtDefinitions, lookAtLeader, lookAtSigners } from './cluster-findings.ts'
import { atOneHeight, compareNodes, lookAtEthereumNode } from './ethereum-node.ts'
import { type Finding, failed, ok, saying, skipped, warning } from './finding.ts'
import { lookAtPermissions } from './permissions.ts'
import { lookAtSolanaNode } from './solana-node.ts'
import { lookAtApis } from './staking-api.ts'

export interface DoctorOptions {
  readonly networksFile: string
  /** Whether a person, or the pod's environment, has named it: then it is to be there. */
  readonly isNetworksNamed?: boolean
  readonly keysDir: string
  /** As of the networks file. */
  readonly isKeysDirNamed?: boolean
  /** Undefined where nobody has named one, and the operator has none. */
  readonly remoteSignersFile?: string | undefined
  readonly lease: { readonly namespace: string; readonly name: string }
  /** Undefined: why there is none. */
  /** `missing`: why there is none to look at; `isNamed`: one was asked for, by a flag or the environment. */
  readonly cluster: Cluster | { readonly missing: string; readonly isNamed?: boolean }
  /** Whether whoever runs this is the operator itself, so that its permissions are to be asked for. */
  readonly isOperator: boolean
  readonly clock: Clock
  readonly userAgent: string
  readonly timeoutMs?: number
}

const INSIDE = 'run it inside the pod: kubectl exec -n NAMESPACE deploy/staking-operator -- node /app/dist/main.js doctor'

/** Looks at everything that the operator needs. Nothing is written, signed or sent anywhere. Never throws for what it looks at. */
export async function examine(options: DoctorOptions, signal: AbortSignal): Promise<readonly Finding[]> {
  const configuration = await lookAtConfiguration(options, signal)
  const { findings, signers } = await lookAtCluster(options, signal)
  return [...configuration, ...findings, ...(await lookAtKeys(options, signers, signal))]
}

async function lookAtConfiguration(options: DoctorOptions, signal: AbortSignal): Promise<readonly Finding[]> {
  const { networksFile } = options
  if (!existsSync(networksFile))
    return options.isNetworksNamed === true
      ? [
          failed(
            'configuration',
            networksFile,
            'it is not there, so nodes and staking API are not looked at: name the right file with --networks',
          ),
        ]
      : [
          skipped(
            'configuration',
            networksFile,
            `it is not here, so nodes and staking API are not looked at: ${INSIDE}, or name a copy with --networks`,
          ),
        ]
  let file: NetworksFile
  try {
    file = await readNetworksFile(networksFile)
  } catch (error) {
    return [failed('configuration', networksFile, saying(error))]
  }
  const names = [...file.ethereum, ...file.solana].map(({ config }) => config.name)
  return [
    ok('configuration', networksFile, `it has ${names.length === 1 ? 'the network' : 'the networks'} ${names.join(', ')}`),
    ...(await lookAtNodes(file, options, signal)),
    ...(await lookAtApis(file, options, signal)),
  ]
}

async function lookAtNodes(
  file: NetworksFile,
  { clock, timeoutMs = 10_000 }: DoctorOptions,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const callOf = (url: string, parse?: (text: string) => unknown): RpcCall =>
    createRpcClient({ url, clock, timeoutMs, maxBytes: 33_554_432, parse }).call
  const ethereum = await Promise.all(
    file.ethereum.map(async ({ config }) => {
      const now = () => clock.now().getTime()
      const calls = config.rpcUrls.map((url) => callOf(url))
      const views = await Promise.all(calls.map((call, index) => lookAtEthereumNode(config, index + 1, call, now, signal)))
      const compared = compareNodes(config.name, await atOneHeight(views, calls, signal))
      const beacon = await Promise.all(
        config.beaconApiUrls.map((url, index) => {
          const get = createBeaconGet({ url, clock, timeoutMs, maxBytes: 67_108_864 })
          return lookAtBeaconNode(config, index + 1, get, clock, signal)
        }),
      )
      return [...views.flatMap(({ findings }) => findings), ...compared, ...beacon.flat()]
    }),
  )
  const solana = await Promise.all(
    file.solana.map(async ({ config }) => {
      const views = await Promise.all(
        config.rpcUrls.map((url, index) => lookAtSolanaNode(config, index + 1, callOf(url, parseExact), signal)),
      )
      const slots = views.map(({ slot }) => slot)
      const highest = slots.reduce<bigint>((most, slot) => (slot !== undefined && slot > most ? slot : most), 0n)
      const behind = slots.flatMap((slot, index) =>
        slot !== undefined && highest - slot > 150n
          ? [warning('node', config.name, `node ${index + 1} is ${highest - slot} slots behind the highest`)]
          : [],
      )
      return [...views.flatMap(({ findings }) => findings), ...behind]
    }),
  )
  return [...ethereum.flat(), ...solana.flat()]
}

async function lookAtCluster(
  { cluster, lease, isOperator, clock }: DoctorOptions,
  signal: AbortSignal,
): Promise<{ readonly findings: readonly Finding[]; readonly signers: readonly StakingSigner[] }> {
  if ('missing' in cluster) {
    const found = cluster.isNamed === true ? failed : skipped
    return { findings: [found('cluster', 'API server', cluster.missing)], signers: [] }
  }
  try {
    const definitions = await lookAtDefinitions(cluster, signal)
    const leader = await lookAtLeader(cluster, lease, clock.now().getTime(), signal)
    const permissions = isOperator
      ? await lookAtPermissions(cluster.api, lease, signal)
      : [skipped('permission', 'RBAC', `they are the operator's, not yours: ${INSIDE}`)]
    const { findings, signers } = await lookAtSigners(cluster, signal)
    const approvals = await lookAtApprovals(cluster, signers, signal)
    return { findings: [...definitions, ...leader, ...permissions, ...findings, ...approvals], signers }
  } catch (error) {
    return { findings: [failed('cluster', 'API server', saying(error))], signers: [] }
  }
}

/** Whether each signer's key, mounted or remote, is the key of its address. No key is shown, and nothing that moves money is signed. */
async function lookAtKeys(options: DoctorOptions, signers: readonly StakingSigner[], signal: AbortSignal): Promise<readonly Finding[]> {
  const { keysDir, remoteSignersFile: file, clock } = options
  let remote: LiveRemoteSigners
  try {
    // As of the networks file: it is the operator's, and mounted in its pod.
    remote = await createRemoteSigners(file !== undefined && existsSync(file) ? file : undefined, { clock, log: silent })
  } catch (error) {
    return [failed('configuration', file ?? '', saying(error))]
  }
  try {
    const found: Finding[] = []
    if (file !== undefined && !existsSync(file))
      found.push(
        failed('configuration', file, `it is not there, so remote signers are not looked at: name the right file with --remote-signers`),
      )
    if (!existsSync(keysDir)) {
      const isNamed = options.isKeysDirNamed === true
      if (isNamed)
        found.push(failed('configuration', keysDir, 'it is not there, so no mounted key is found: name the right folder with --keys-dir'))
      if (remote.names().length === 0) return isNamed ? found : [...found, skipped('key', keysDir, `no keys are mounted here: ${INSIDE}`)]
    }
    const keys = createKeys({ dir: keysDir, remote })
    return [
      ...found,
      ...(await Promise.all(signers.map((signer) => lookAtKey(signer, keys, remote.find(signer.spec.keyName) !== undefined, signal)))),
    ]
  } finally {
    await remote.close()
  }
}

async function lookAtKey(
  { metadata, spec }: StakingSigner,
  keys: ReturnType<typeof createKeys>,
  isRemote: boolean,
  signal: AbortSignal,
): Promise<Finding> {
  const about = `signer ${metadata.name}`
  const what = isRemote ? 'remote signer' : 'mounted key'
  try {
    const own = spec.chain === 'Ethereum' ? keys.ethereum : keys.solana
    await own.probe?.(spec.keyName, signal)
    const address: string = await own.address(spec.keyName, signal)
    const isSame = spec.chain === 'Ethereum' ? address.toLowerCase() === spec.address.toLowerCase() : address === spec.address
    return isSame
      ? ok(
          'key',
          about,
          isRemote
            ? `the remote signer ${spec.keyName} answers, and has the key of ${spec.address}`
            : `the mounted key ${spec.keyName} is the key of ${spec.address}`,
        )
      : failed(
          'key',
          about,
          `the ${what} ${spec.keyName} is that of ${address}, not of ${spec.address}: ${isRemote ? 'name the right one' : 'mount the right key'}`,
        )
  } catch (error) {
    return failed('key', about, saying(error))
  }
}

const silent = { info: () => {}, error: () => {} }
