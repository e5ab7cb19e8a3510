import type { Clock } from '../../lib/clock.ts'
import type { NodeReading } from '../nodes/nodes.ts'
import { type BeaconChain, BeaconError, type BeaconValidator, type StateAt } from './beacon.ts'
import * as formats from './beacon-formats.ts'
import { createBeaconGet, type OnBeaconCall } from './beacon-http.ts'
import { type BeaconNetwork, type BeaconNode, createBeaconNodes, headSlot } from './beacon-nodes.ts'
import { statusAt } from './beacon-phase.ts'
import { epochOf, firstSlotOf } from './beacon-time.ts'
import type { Hex } from './chain.ts'
import type { ChainLog } from './rpc-nodes.ts'

export interface BeaconChainOptions {
  readonly network: BeaconNetwork
  /** Base URLs of the Beacon API, tried in order. */
  readonly urls: readonly string[]
  readonly clock: Clock
  readonly log?: ChainLog
  /** For one call. Default 15 s. */
  readonly timeoutMs?: number
  /** For one answer. Default 64 MiB: a mainnet queue of a hundred thousand deposits. */
  readonly maxResponseBytes?: number
  /** How far a node's head may be behind the time of day. Default: an epoch, at least 8 slots. */
  readonly maxLagSlots?: number
  readonly fetch?: typeof globalThis.fetch
  /** For metrics. */
  readonly onCall?: OnBeaconCall
  /** Told once how the nodes' health is read, for metrics. */
  readonly onNodes?: (read: () => readonly NodeReading[]) => void
}

/** Ids in one query of validators: 30 × 99 characters stay below every client's limit on URLs. */
const idsPerQuery = 30

/** Slots without a block in a row: two epochs, far more than a chain that goes on has. */
const maxEmptySlots = 64

/** A network's beacon chain over the standard Beacon API. */
export function createBeaconChain(options: BeaconChainOptions): BeaconChain {
  const { network, clock, log, maxLagSlots } = options
  const transport = {
    clock,
    timeoutMs: options.timeoutMs ?? 15_000,
    maxBytes: options.maxResponseBytes ?? 67_108_864,
    onCall: options.onCall,
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  }
  const gets = options.urls.map((url) => createBeaconGet({ url, ...transport }))
  const nodes = createBeaconNodes({ gets, network, clock, log, maxLagSlots })
  options.onNodes?.(nodes.readings)

  const finality = (node: BeaconNode, slot: number, signal: AbortSignal) =>
    node.get({ ...ofState(slot, 'finality_checkpoints'), schema: formats.finality }, signal)

  /** The state that is meant, by its slot: all that is then asked about is of one state. */
  const slotOf = async (node: BeaconNode, at: StateAt, signal: AbortSignal): Promise<number> => {
    const head = await headSlot(node, clock, maxLagSlots, signal)
    if (at === 'head') return head
    if (at === 'finalized') return firstSlotOf((await finality(node, head, signal)).finalized.epoch, node.spec)
    if (at > head) throw new BeaconError('behind', `the beacon node is at slot ${head}, and slot ${at} is asked for`)
    return at
  }

  const validatorsAt = async (node: BeaconNode, slot: number, pubkeys: readonly Hex[], signal: AbortSignal) => {
    const found = new Map<Hex, BeaconValidator>()
    for (let from = 0; from < pubkeys.length; from += idsPerQuery) {
      const wanted = pubkeys.slice(from, from + idsPerQuery).map((pubkey) => pubkey.toLowerCase() as Hex)
      // The list, not `validators/{id}`: its 404 means the state, and never an unknown key.
      const request = {
        ...ofState(slot, 'validators'),
        query: wanted.map((pubkey) => ['id', pubkey] as const),
        schema: formats.validators,
      }
      for (const validator of await node.get(request, signal)) {
        if (!wanted.includes(validator.pubkey)) {
          throw new BeaconError('unavailable', 'the beacon node answered with validators that were not asked for')
        }
        found.set(validator.pubkey, { ...validator, status: validator.status ?? statusAt(validator, epochOf(slot, node.spec)) })
      }
    }
    return found
  }

  /** The root of the block at a slot of the node's own chain; undefined where it has none there. */
  const blockAt = async (node: BeaconNode, slot: number, signal: AbortSignal): Promise<Hex | undefined> => {
    const request = { endpoint: 'headers', path: `/eth/v1/beacon/headers/${slot}`, schema: formats.header, notFound: noBlock }
    try {
      const { root, canonical, header } = await node.get(request, signal)
      return canonical && header.message.slot === slot ? root : undefined
    } catch (error) {
      if (error === noBlock) return undefined
      throw error
    }
  }

  /**
   * What a state is known by: the last block up to its slot, since nothing but time passes in slots without one. (Not by its own root: Prysm 7.1 answers
   * 500 for that of a slot without a block, and clients find states by roots of recent ones only.)
   */
  const lastBlock = async (node: BeaconNode, slot: number, signal: AbortSignal): Promise<Hex> => {
    for (let at = slot; at >= Math.max(0, slot - maxEmptySlots); at--) {
      const root = await blockAt(node, at, signal)
      if (root !== undefined) return root
    }
    throw new BeaconError('state-not-kept', `the beacon node has no block at slot ${slot}, nor in the ${maxEmptySlots} slots before it`)
  }

  /** Nodes that don't have the slot, or don't answer, say nothing; one of them that has another chain up to there is on another fork. */
  const assertAgreed = async (slot: number, node: BeaconNode, root: Hex, signal: AbortSignal): Promise<void> => {
    if (options.urls.length < 2) return
    const rootOn = async (each: BeaconNode): Promise<Hex> => {
      if (each.index === node.index) return root
      await slotOf(each, slot, signal)
      return lastBlock(each, slot, signal)
    }
    const roots = await nodes.each(rootOn, signal)
    const others = [...roots].filter(([, other]) => other !== root).map(([index]) => index)
    if (others.length === 0) return
    nodes.disagreed([node.index, ...others])
    const numbers = [node.index, ...others].map((index) => index + 1).toSorted((one, other) => one - other)
    throw new BeaconError(
      'disagreement',
      `beacon nodes ${numbers.join(' and ')} of ${network.name} have different states at slot ${slot}: nothing is concluded until they agree`,
    )
  }

  /**
   * Reads on the first node that can, all of one state: its last block is read before and after them, as a slot means another state once the chain is
   * reorganised.
   */
  const viewed = <T>(
    at: StateAt,
    signal: AbortSignal,
    read: (node: BeaconNode, slot: number) => Promise<T>,
  ): Promise<T & { readonly slot: number; readonly epoch: number }> =>
    nodes.first(async (node) => {
      const slot = await slotOf(node, at, signal)
      const root = await lastBlock(node, slot, signal)
      const value = await read(node, slot)
      if ((await lastBlock(node, slot, signal)) !== root)
        throw new BeaconError('behind', `the beacon chain was reorganised at slot ${slot} while its state was read`)
      if (at !== 'head') await assertAgreed(slot, node, root, signal)
      return { slot, epoch: epochOf(slot, node.spec), ...value }
    }, signal)

  const queuedDeposits = (node: BeaconNode, slot: number, signal: AbortSignal) =>
    node.get({ ...ofState(slot, 'pending_deposits'), schema: formats.pendingDeposits }, signal)

  return {
    network: network.name,
    spec: (signal) => nodes.first(async ({ spec }) => spec, signal),
    genesis: (signal) => nodes.first(async ({ genesis }) => genesis, signal),

    head: (signal) =>
      nodes.first(async (node) => {
        const slot = await headSlot(node, clock, maxLagSlots, signal)
        const { current_justified, finalized } = await finality(node, slot, signal)
        return { slot, epoch: epochOf(slot, node.spec), justifiedEpoch: current_justified.epoch, finalizedEpoch: finalized.epoch }
      }, signal),

    validators: (pubkeys, at, signal) =>
      viewed(at, signal, async (node, slot) => ({ validators: await validatorsAt(node, slot, pubkeys, signal) })),

    withdrawalView: (pubkey, at, signal) =>
      viewed(at, signal, async (node, slot) => {
        const [validators, pendingPartialWithdrawals, pendingConsolidations] = await Promise.all([
          validatorsAt(node, slot, [pubkey], signal),
          node.get({ ...ofState(slot, 'pending_partial_withdrawals'), schema: formats.pendingPartialWithdrawals }, signal),
          node.get({ ...ofState(slot, 'pending_consolidations'), schema: formats.pendingConsolidations }, signal).catch(noneServed),
        ])
        const validator = validators.get(pubkey.toLowerCase() as Hex)
        return { validator, pendingPartialWithdrawals, pendingConsolidations }
      }),

    hasBlock: (slot, signal) =>
      nodes.first(async (node) => (await blockAt(node, await slotOf(node, slot, signal), signal)) !== undefined, signal),

    depositView: (pubkeys, at, signal) =>
      viewed(at, signal, async (node, slot) => {
        const validators = await validatorsAt(node, slot, pubkeys, signal)
        const isKnown = pubkeys.every((pubkey) => validators.has(pubkey.toLowerCase() as Hex))
        return { validators, pendingDeposits: isKnown ? [] : await queuedDeposits(node, slot, signal) }
      }),

    pendingDeposits: (at, signal) =>
      viewed(at, signal, async (node, slot) => ({ deposits: await queuedDeposits(node, slot, signal) })).then(({ deposits }) => deposits),
  }
}

const noBlock = new BeaconError('state-not-kept', 'the slot has no block')

const ofState = (slot: number, endpoint: string) => ({
  endpoint,
  path: `/eth/v1/beacon/states/${slot}/${endpoint}`,
  notFound: new BeaconError(
    'state-not-kept',
    `the beacon node does not have the state at slot ${slot}, or does not serve ${endpoint} of it`,
  ),
})

/**
 * No rule depends on consolidations alone (a source is exiting by its exit epoch): they only make a message clearer, so a node may lack them, refuse them,
 * or answer with something else (a client gave the list of deposits: prysm#15308).
 */
const noneServed = (error: unknown): never[] => {
  if (error instanceof BeaconError) return []
  throw error
}
