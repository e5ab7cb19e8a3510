import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { EthereumChain, Hash } from '../chains/ethereum/chain.ts'
import { type EthereumNetworkConfig, ethereumNetworkConfig, knownNetworks } from '../chains/ethereum/networks.ts'
import { createEthereumChain } from '../chains/ethereum/rpc-chain.ts'
import { AmountError, gwei, parseEth } from '../lib/amounts.ts'
import { systemClock } from '../lib/clock.ts'
import { readNetworksFile } from '../operator/networks/networks-file.ts'
import { definitionOf } from '../operator/saga-collection.ts'
import { type EthereumStake, ethereumStake } from '../resources/ethereum-stake.ts'
import type { Cluster } from './cluster.ts'
import { parseDepositFile } from './deposit-claims.ts'
import { InspectError } from './error.ts'
import { parseTarget } from './life.ts'
import { readStdin } from './stdin.ts'
import { type Verdict, verdict } from './verdict.ts'
import { type Expectation, verifyDepositData, verifyNoneBefore, verifyOnceInList, verifyTransaction } from './verify-deposit.ts'
import { lookUpLogged } from './verify-logged.ts'

/** The rules of one deposit. */
export interface Verdicts {
  readonly what: string
  readonly verdicts: readonly Verdict[]
}

interface NodeFlags {
  readonly networks: string
  readonly rpcUrl?: readonly string[]
  readonly history?: true
}

/** More would be another kind of file. */
const LARGEST_FILE = 16 * 1024 * 1024

/** @throws InspectError, NetworksFileError, ChainError */
export async function verifyDepositTarget(
  target: string,
  flags: NodeFlags & { readonly network: string } & { readonly withdrawalAddress?: `0x${string}`; readonly amountEth?: string },
  signal: AbortSignal,
): Promise<readonly Verdicts[]> {
  const { withdrawalAddress } = flags
  const expected: Expectation = { withdrawalAddress, amountGwei: amountOf(flags.amountEth) }
  if (/^0x[0-9a-fA-F]{64}$/.test(target)) {
    const network = await networkOf(flags.network, flags, true)
    return [await ofTransaction(chainOf(network, signal), target.toLowerCase() as Hash, network, expected, flags.history === true, signal)]
  }
  if (/^0x[0-9a-fA-F]*$/.test(target))
    throw new InspectError(`${target} is not the hash of a transaction: that has 64 hex digits after 0x, and this has ${target.length - 2}`)
  if (/^(0X[0-9a-fA-F]*|[0-9a-fA-F]{64})$/.test(target) && !existsSync(target))
    throw new InspectError(`${target} is no file, and the hash of a transaction begins with 0x: write 0x${target.replace(/^0X/, '')}`)
  const withHistory = flags.history === true
  const network = await networkOf(flags.network, flags, withHistory)
  const claims = parseDepositFile(await readTarget(target, signal), target)
  const chain = withHistory ? chainOf(network, signal) : undefined
  const groups: Verdicts[] = []
  for (const claim of claims)
    groups.push({
      what: `${network.name}: ${claim.pubkey}`,
      verdicts: [
        ...verifyDepositData(claim, network, expected),
        ...verifyOnceInList(claim, claims),
        ...(chain === undefined ? [] : [verifyNoneBefore(claim, await chain.depositsFor(claim.pubkey, signal))]),
      ],
    })
  return groups
}

const chainOf = (network: EthereumNetworkConfig, signal: AbortSignal) =>
  createEthereumChain({ config: network, clock: systemClock, signal, historyWaitMs: 86_400_000 })

function amountOf(eth: string | undefined) {
  if (eth === undefined) return undefined
  try {
    return parseEth(eth)
  } catch (error) {
    throw error instanceof AmountError ? new InspectError(`--amount-eth: ${error.message}`) : error
  }
}

async function readTarget(path: string, signal: AbortSignal): Promise<string> {
  const isStdin = path === '-'
  try {
    const content = isStdin ? new TextDecoder().decode(await readStdin(signal)) : await readFile(path, 'utf8')
    if (content.length > LARGEST_FILE) throw new InspectError(`${path} is larger than 16 MiB: it is no deposit data`)
    return content
  } catch (error) {
    if (isStdin || error instanceof InspectError) throw error
    throw new InspectError(
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'}): give a file of deposit data, or the hash of a transaction`,
    )
  }
}

/** A network of the file, or one whose constants are built in. `asks`: nodes are needed. */
async function networkOf(name: string, { networks, rpcUrl }: NodeFlags, asks: boolean): Promise<EthereumNetworkConfig> {
  const known = knownNetworks[name]
  if (known !== undefined && (rpcUrl !== undefined || !asks)) {
    const parsed = ethereumNetworkConfig.safeParse({ name, chain: 'Ethereum', rpcUrls: rpcUrl ?? ['http://127.0.0.1'] })
    if (!parsed.success) throw new InspectError(`--rpc-url: ${parsed.error.issues.map(({ message }) => message).join('; ')}`)
    return parsed.data
  }
  const { ethereum } = await readNetworksFile(networks)
  const found = ethereum.find(({ config }) => config.name === name)?.config
  if (found === undefined)
    throw new InspectError(
      `${networks} has no Ethereum network ${name}: it has ${ethereum.map(({ config }) => config.name).join(', ') || 'none'}`,
    )
  return rpcUrl === undefined ? found : { ...found, rpcUrls: [...rpcUrl] }
}

async function ofTransaction(
  chain: EthereumChain,
  hash: Hash,
  network: EthereumNetworkConfig,
  expected: Expectation,
  withHistory: boolean,
  signal: AbortSignal,
): Promise<Verdicts> {
  return {
    what: `${network.name}: transaction ${hash}`,
    verdicts: await verifyTransaction(chain, { hash, network, expected, withHistory }, signal),
  }
}

/**
 * A stake of a cluster: what its status claims is compared with its spec, with the transaction log, and its transaction with the chain. The cluster is believed
 * in nothing but what the spec asks for, and in whose deposit it is by the log. @throws InspectError, NetworksFileError, ChainError
 */
export async function verifyStake(
  cluster: Pick<Cluster, 'get'>,
  { target, namespace }: { readonly target: string; readonly namespace: string },
  flags: NodeFlags,
  signal: AbortSignal,
  connect: (network: EthereumNetworkConfig, signal: AbortSignal) => EthereumChain = chainOf,
): Promise<readonly Verdicts[]> {
  const { kinds, name } = parseTarget(target)
  if (!kinds.includes(ethereumStake))
    throw new InspectError(`"${target}" is no EthereumStake: only their deposits are verified, the life of the others is told by status`)
  const ref = { name, namespace }
  const stake = await cluster.get<EthereumStake>(definitionOf(ethereumStake), ref, signal)
  if (stake === 'absent')
    throw new InspectError(`there is no EthereumStake ${ref.name} in namespace ${ref.namespace}: name another namespace with -n`)
  if (stake === 'forbidden') throw new InspectError(`you may not read EthereumStakes in namespace ${ref.namespace}: ask for the role view`)
  const { spec, status } = stake
  const network = await networkOf(spec.network, flags, status?.transaction?.hash !== undefined)
  const expected: Expectation = {
    withdrawalAddress: spec.withdrawalAddress,
    amountGwei: amountOf(spec.amountEth),
    credentialsType: spec.credentialsType === 'Execution' ? '0x01' : '0x02',
  }
  const data = status?.depositData
  const groups: Verdicts[] = []
  if (data === undefined)
    throw new InspectError(`${ref.name} has no deposit data yet: the staking API has not been asked, or has not answered`)
  groups.push({
    what: `EthereumStake ${ref.namespace}/${ref.name}: its deposit data`,
    verdicts: verifyDepositData(
      {
        pubkey: data.pubkey,
        withdrawalCredentials: data.withdrawalCredentials,
        amountGwei: gwei(BigInt(data.amountGwei)),
        signature: data.signature,
        depositMessageRoot: undefined,
        depositDataRoot: data.depositDataRoot,
        forkVersion: undefined,
        depositContractAddress: undefined,
        chainId: undefined,
      },
      network,
      expected,
    ),
  })
  const { transaction } = status ?? {}
  if (transaction === undefined)
    return [
      ...groups,
      {
        what: `EthereumStake ${ref.namespace}/${ref.name}: its transaction`,
        verdicts: [verdict('transaction', 'unknown', 'its status names none: nothing was signed for it yet, or its status was lost')],
      },
    ]
  const chain = connect(network, signal)
  const logged = await lookUpLogged(cluster, stake, { pubkey: data.pubkey, chainId: network.chainId }, signal)
  const versions = logged.versions ?? [transaction, ...(transaction.replaced ?? []).toReversed()]
  const hash = await landedOf(versions, chain, signal)
  const { what, verdicts } = await ofTransaction(chain, hash, network, { ...expected, pubkey: data.pubkey }, flags.history === true, signal)
  return [...groups, { what, verdicts: [logged.verdict, ...verdicts] }]
}

/** The version of a transaction that is in a block, or else the latest: which one lands is told by the chain alone. */
export async function landedOf(
  versions: readonly { readonly hash: string }[],
  chain: Pick<EthereumChain, 'receipt'>,
  signal: AbortSignal,
): Promise<Hash> {
  const hashes = versions.map(({ hash }) => hash as Hash)
  for (const hash of hashes.length > 1 ? hashes : []) if ((await chain.receipt(hash, signal)) !== undefined) return hash
  const [latest] = hashes
  if (latest === undefined) throw new InspectError('the transaction has no hash')
  return latest
}
