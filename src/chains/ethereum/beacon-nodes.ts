import type { Clock } from '../../lib/clock.ts'
import { accessDenied } from '../nodes/access.ts'
import { type ChainLog, createNodes, type NodeHandle, type NodeReading } from '../nodes/nodes.ts'
import type { Refusals } from '../nodes/refusals.ts'
import { type NodeFailure, tellEach } from '../nodes/together.ts'
import { BeaconError, type BeaconErrorCode, type BeaconGenesis, type BeaconSpec } from './beacon.ts'
import * as formats from './beacon-formats.ts'
import type { BeaconGet } from './beacon-http.ts'
import { slotAt } from './beacon-time.ts'
import type { Hex } from './chain.ts'
import type { EthereumNetworkConfig } from './networks.ts'

/**
 * Roots of the validators at genesis: two networks may share a chain id, never this. Sources: the networks' published metadata (eth-clients/mainnet,
 * eth-clients/hoodi, eth-clients/sepolia: genesis_validators_root).
 */
export const knownGenesisValidatorsRoots: Readonly<Record<string, Hex>> = {
  mainnet: '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95',
  hoodi: '0x212f13fc4df078b6cb7db228f1c8307566dcecf900867401a92023d7ba99cb5f',
  sepolia: '0xd8ea171f3c94aea21ebc42a1ed61052acf3f9209c00e4efbaaddac09ed9b8078',
}

/** What a node says of its network. */
export interface BeaconIdentity {
  readonly spec: BeaconSpec
  readonly genesis: BeaconGenesis
}
interface BeaconClient {
  readonly get: BeaconGet
}
/** A node that serves the right network, and what it said of it. */
export type BeaconNode = BeaconClient & BeaconIdentity & Pick<NodeHandle<BeaconIdentity>, 'sees' | 'index'>

export interface BeaconNodes {
  /** Does something on the first node of the right network that can; the next one is asked when a node fails in any way. @throws BeaconError */
  first<T>(use: (node: BeaconNode) => Promise<T>, signal: AbortSignal): Promise<T>
  /** Does something on every node at once; those that can't are left out. By index, from 0. */
  each<T>(use: (node: BeaconNode) => Promise<T>, signal: AbortSignal): Promise<ReadonlyMap<number, T>>
  /** Counts a disagreement for these nodes (from 0). */
  disagreed(indexes: readonly number[]): void
  readings(): readonly NodeReading[]
}

export type BeaconNetwork = Pick<EthereumNetworkConfig, 'name' | 'chainId' | 'depositContractAddress' | 'genesisForkVersion' | 'forks'>

/** What several nodes' failures mean together: the one that a person must act on, then the one that says most. */
const sayMost: readonly BeaconErrorCode[] = ['wrong-network', 'disagreement', 'state-not-kept', 'behind', 'access-denied', 'unavailable']
/** Mainnet's slot. */
const slotMs = 12_000

export function createBeaconNodes(options: {
  readonly gets: readonly BeaconGet[]
  readonly network: BeaconNetwork
  readonly clock: Clock
  readonly maxLagSlots?: number | undefined
  readonly log?: ChainLog | undefined
}): BeaconNodes {
  const { network, clock, log, maxLagSlots } = options
  const nodes = createNodes<BeaconClient, BeaconIdentity, BeaconError>({
    clients: options.gets.map((get) => ({ get })),
    network: network.name,
    clock,
    log,
    pollMs: slotMs,
    blockMs: slotMs,
    fewBlocks: 3n,
    rules: {
      verify: createVerify(network, log),
      head: async (node) => {
        const { signal } = new AbortController()
        const { spec, genesis } = node.identity
        return headOf(node.identity, await headSlot({ ...node, spec, genesis }, clock, maxLagSlots, signal))
      },
      guard: ({ get }, refusals, skip) => ({ get: rememberingGet(get, refusals, skip) }),
      toError: (error) => {
        if (error instanceof BeaconError) return error
        throw error
      },
      passesOn: () => true,
      rests: ({ code, refused }) => code !== 'state-not-kept' && code !== 'disagreement' && refused === undefined,
      unknownRefusal: () => undefined,
      retryAfterMs: ({ retryAfterMs }) => retryAfterMs,
      worst: createWorst(network.name),
      code: ({ code }) => code,
    },
  })
  const asNode = (node: BeaconClient & NodeHandle<BeaconIdentity>): BeaconNode => ({
    get: node.get,
    sees: node.sees,
    index: node.index,
    ...node.identity,
  })
  return {
    first: (use, signal) => nodes.first((node) => use(asNode(node)), signal),
    each: async (use, signal) => {
      const answers = await nodes.each((node) => use(asNode(node)), signal)
      return new Map(answers.flatMap((answer, index) => (answer !== undefined && 'value' in answer ? [[index, answer.value]] : [])))
    },
    disagreed: nodes.disagreed,
    readings: nodes.readings,
  }
}

/** Asks a node which network it serves. Of a network whose root is not built in, the first that was seen counts. */
export function createVerify(network: BeaconNetwork, log: ChainLog | undefined) {
  /** Of a network whose root is not built in, the first that was seen: its nodes must agree. */
  let root: Hex | undefined = knownGenesisValidatorsRoots[network.name]

  return async ({ get }: BeaconClient, number: number): Promise<BeaconIdentity> => {
    const { signal } = new AbortController()
    const answers = await Promise.allSettled([
      get({ endpoint: 'genesis', path: '/eth/v1/beacon/genesis', schema: formats.genesis }, signal),
      get({ endpoint: 'spec', path: '/eth/v1/config/spec', schema: formats.spec }, signal),
      get({ endpoint: 'deposit_contract', path: '/eth/v1/config/deposit_contract', schema: formats.depositContract }, signal),
    ])
    const [genesis, spec, contract] = valuesOf(answers, `beacon node ${number} of ${network.name}`)
    const differences = [
      differs('chain id', network.chainId, spec.depositChainId),
      differs('chain id of the deposit contract', network.chainId, contract.chain_id),
      differs('deposit contract', network.depositContractAddress, spec.depositContractAddress),
      differs('deposit contract', network.depositContractAddress, contract.address),
      differs('genesis fork version', network.genesisForkVersion, genesis.genesisForkVersion),
      differs('genesis validators root', root ?? genesis.genesisValidatorsRoot, genesis.genesisValidatorsRoot),
    ].filter((text) => text !== undefined)
    if (differences.length > 0) {
      const message = `beacon node ${number} of ${network.name} serves another network: ${differences[0]}`
      log?.warn({ network: network.name, node: number }, `${message}: it is not used`)
      throw new BeaconError('wrong-network', message)
    }
    root = genesis.genesisValidatorsRoot
    const gloasForkEpoch = spec.gloasForkEpoch ?? network.forks?.gloasEpoch
    return { spec: { ...spec, gloasForkEpoch }, genesis }
  }
}

type Settled<T extends readonly unknown[]> = { readonly [K in keyof T]: PromiseSettledResult<T[K]> }

/** @throws BeaconError `access-denied` of a node that lets us in for nothing, or has nothing under this path; else the first failure */
function valuesOf<A, B, C>(answers: Settled<readonly [A, B, C]>, node: string): readonly [A, B, C] {
  const [one, two, three] = answers
  if (one.status === 'fulfilled' && two.status === 'fulfilled' && three.status === 'fulfilled') return [one.value, two.value, three.value]
  const errors = answers.flatMap((answer): unknown[] => (answer.status === 'rejected' ? [answer.reason] : []))
  for (const error of errors) {
    // A node answers 404 for the genesis before there is one, and to everything only where its path is wrong.
    const isAlone = error instanceof BeaconError && error.isNotFound && errors.length < answers.length
    const denied = isAlone ? undefined : accessDenied(error, node, (error instanceof BeaconError && error.refused) || 'its network')
    if (denied !== undefined) throw new BeaconError('access-denied', denied)
  }
  throw errors[0]
}

/** What several nodes' failures mean together. */
const createWorst =
  (network: string) =>
  (failures: readonly NodeFailure<BeaconError>[]): BeaconError => {
    const [main] = failures.toSorted((a, b) => sayMost.indexOf(a.error.code) - sayMost.indexOf(b.error.code))
    if (main === undefined) return new BeaconError('unavailable', `no beacon node is configured for ${network}`)
    const isOneKind = new Set(failures.map(({ error }) => error.code)).size === 1 && main.error.code !== 'access-denied'
    const told = isOneKind ? undefined : tellEach(failures, { network, kind: 'beacon node', brief })
    if (told === undefined) return main.error
    return new BeaconError(main.error.code, told, main.error.retryAfterMs, main.error.refused)
  }
const brief = ({ code }: BeaconError): string | undefined =>
  code === 'unavailable' ? 'gives no usable answer now' : code === 'behind' ? 'is behind the head of the chain' : undefined

/** A client that remembers which endpoints its node refuses, and with `skip` does not ask for them. */
const rememberingGet =
  (get: BeaconGet, refusals: Refusals, skip: { readonly onSkip: () => void } | undefined): BeaconGet =>
  async (request, signal) => {
    if (skip !== undefined && refusals.has(request.endpoint)) {
      skip.onSkip()
      throw new BeaconError('unavailable', `the beacon node does not serve ${request.endpoint}`, undefined, request.endpoint)
    }
    try {
      return await get(request, signal)
    } catch (error) {
      if (error instanceof BeaconError && error.refused !== undefined) refusals.add(error.refused)
      throw error
    }
  }

const headOf = ({ genesis, spec }: BeaconIdentity, slot: number) => ({
  height: BigInt(slot),
  timestamp: genesis.genesisTime + (slot * spec.slotDurationMs) / 1000,
})

const differs = (what: string, expected: string | number, found: string | number): string | undefined =>
  String(expected).toLowerCase() === String(found).toLowerCase() ? undefined : `its ${what} is ${found}, expected ${expected}`

/**
 * The slot of a node's head. @throws BeaconError `behind` when the node says that it syncs or has not verified its head, or when its head is more
 * than `maxLagSlots` behind what the time of day says. A head that is ahead of our clock is no lag.
 */
export async function headSlot(node: BeaconNode, clock: Clock, maxLagSlots: number | undefined, signal: AbortSignal): Promise<number> {
  const state = await node.get({ endpoint: 'syncing', path: '/eth/v1/node/syncing', schema: formats.syncing }, signal)
  node.sees(headOf(node, state.head_slot))
  const due = slotAt(node.genesis, node.spec, clock.now().getTime() / 1000)
  const lag = due - state.head_slot
  // Clients' own idea of being synced is of this order; on a small network an epoch is too little.
  const allowed = maxLagSlots ?? Math.max(node.spec.slotsPerEpoch, 8)
  if (state.is_syncing || lag > allowed) {
    throw new BeaconError('behind', `the beacon node is at slot ${state.head_slot}, ${Math.max(lag, 0)} slots behind the time of day`)
  }
  if (state.is_optimistic || state.el_offline) {
    throw new BeaconError('behind', `the beacon node's head at slot ${state.head_slot} is not verified by its execution client`)
  }
  return state.head_slot
}
