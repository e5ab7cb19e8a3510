import type { Clock } from '../../lib/clock.ts'
import { abortable } from '../../lib/shared-call.ts'
import { BeaconError, type BeaconErrorCode, type BeaconGenesis, type BeaconSpec } from './beacon.ts'
import * as formats from './beacon-formats.ts'
import type { BeaconGet } from './beacon-http.ts'
import { slotAt } from './beacon-time.ts'
import type { Hex } from './chain.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import type { ChainLog } from './rpc-nodes.ts'

/**
 * Roots of the validators at genesis: two networks may share a chain id, never this. Sources: the networks' published metadata (eth-clients/mainnet,
 * eth-clients/hoodi, eth-clients/sepolia: genesis_validators_root).
 */
export const knownGenesisValidatorsRoots: Readonly<Record<string, Hex>> = {
  mainnet: '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95',
  hoodi: '0x212f13fc4df078b6cb7db228f1c8307566dcecf900867401a92023d7ba99cb5f',
  sepolia: '0xd8ea171f3c94aea21ebc42a1ed61052acf3f9209c00e4efbaaddac09ed9b8078',
}

/** A node that serves the right network, and what it said of it. */
export interface BeaconNode {
  readonly get: BeaconGet
  readonly spec: BeaconSpec
  readonly genesis: BeaconGenesis
}

export interface BeaconNodes {
  /** Does something on the first node of the right network that can; the next one is asked when a node fails in any way. @throws BeaconError */
  first<T>(use: (node: BeaconNode) => Promise<T>, signal: AbortSignal): Promise<T>
}

export type BeaconNetwork = Pick<EthereumNetworkConfig, 'name' | 'chainId' | 'depositContractAddress' | 'genesisForkVersion'>

/** How long a node that failed is asked last. */
const restMs = 10_000
/** What several nodes' failures mean together: the one that a person must act on, then the one that says most. */
const sayMost: readonly BeaconErrorCode[] = ['wrong-network', 'state-not-kept', 'behind', 'unavailable']

export function createBeaconNodes(options: {
  readonly gets: readonly BeaconGet[]
  readonly network: BeaconNetwork
  readonly clock: Clock
  readonly log?: ChainLog | undefined
}): BeaconNodes {
  const { network, clock, log } = options
  const nodes = options.gets.map((get, index) => ({ get, index, verified: undefined as Promise<BeaconNode> | undefined, restsUntil: 0 }))
  type Node = (typeof nodes)[number]
  /** Of a network whose root is not built in, the first that was seen: its nodes must agree. */
  let root: Hex | undefined = knownGenesisValidatorsRoots[network.name]

  const verify = async ({ get, index }: Node): Promise<BeaconNode> => {
    // Not the caller's signal: others may wait for the same check. Each call has its own time-out.
    const { signal } = new AbortController()
    const [genesis, spec, contract] = await Promise.all([
      get({ endpoint: 'genesis', path: '/eth/v1/beacon/genesis', schema: formats.genesis }, signal),
      get({ endpoint: 'spec', path: '/eth/v1/config/spec', schema: formats.spec }, signal),
      get({ endpoint: 'deposit_contract', path: '/eth/v1/config/deposit_contract', schema: formats.depositContract }, signal),
    ])
    const differences = [
      differs('chain id', network.chainId, spec.depositChainId),
      differs('chain id of the deposit contract', network.chainId, contract.chain_id),
      differs('deposit contract', network.depositContractAddress, spec.depositContractAddress),
      differs('deposit contract', network.depositContractAddress, contract.address),
      differs('genesis fork version', network.genesisForkVersion, genesis.genesisForkVersion),
      differs('genesis validators root', root ?? genesis.genesisValidatorsRoot, genesis.genesisValidatorsRoot),
    ].filter((text) => text !== undefined)
    if (differences.length > 0) {
      const message = `beacon node ${index + 1} of ${network.name} serves another network: ${differences[0]}`
      log?.warn({ network: network.name, node: index + 1 }, `${message}: it is not used`)
      throw new BeaconError('wrong-network', message)
    }
    root = genesis.genesisValidatorsRoot
    return { get, spec, genesis }
  }

  /** Asked once, and again after a failure, also when nobody waits for it any more. */
  const verified = (node: Node): Promise<BeaconNode> => {
    if (node.verified !== undefined) return node.verified
    const asked = verify(node)
    asked.catch(() => {
      if (node.verified === asked) node.verified = undefined
    })
    node.verified = asked
    return asked
  }

  const attempt = async <T>(node: Node, use: (node: BeaconNode) => Promise<T>, signal: AbortSignal): Promise<T> => {
    try {
      return await use(await abortable(verified(node), signal))
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof BeaconError)) throw error
      if (error.code !== 'state-not-kept') {
        if (error.code !== 'behind') node.verified = undefined
        node.restsUntil = clock.monotonicMs() + Math.max(restMs, error.retryAfterMs ?? 0)
        log?.warn({ network: network.name, beaconNode: node.index + 1, code: error.code }, error.message)
      }
      throw error
    }
  }

  return {
    first: async (use, signal) => {
      const failures: BeaconError[] = []
      const now = clock.monotonicMs()
      for (const node of nodes.toSorted((a, b) => Number(a.restsUntil > now) - Number(b.restsUntil > now) || a.index - b.index)) {
        signal.throwIfAborted()
        try {
          return await attempt(node, use, signal)
        } catch (error) {
          if (!(error instanceof BeaconError)) throw error
          failures.push(error)
        }
      }
      const worst = failures.toSorted((a, b) => sayMost.indexOf(a.code) - sayMost.indexOf(b.code))[0]
      throw worst ?? new BeaconError('unavailable', `no beacon node is configured for ${network.name}`)
    },
  }
}

const differs = (what: string, expected: string | number, found: string | number): string | undefined =>
  String(expected).toLowerCase() === String(found).toLowerCase() ? undefined : `its ${what} is ${found}, expected ${expected}`

/**
 * The slot of a node's head. @throws BeaconError `behind` when the node says that it syncs or has not verified its head, or when its head is more
 * than `maxLagSlots` behind what the time of day says. A head that is ahead of our clock is no lag.
 */
export async function headSlot(node: BeaconNode, clock: Clock, maxLagSlots: number | undefined, signal: AbortSignal): Promise<number> {
  const state = await node.get({ endpoint: 'syncing', path: '/eth/v1/node/syncing', schema: formats.syncing }, signal)
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
