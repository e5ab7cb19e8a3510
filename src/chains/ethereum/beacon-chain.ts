import { lowerCase } from '../../lib/chain-types.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NodeReading } from '../nodes/nodes.ts'
import { type BeaconBlock, type BeaconChain, BeaconError, type StateAt } from './beacon.ts'
import { createBlockExecution } from './beacon-execution.ts'
import { createBeaconGet, type OnBeaconCall } from './beacon-http.ts'
import { type BeaconNetwork, type BeaconNode, createBeaconNodes, headSlot } from './beacon-nodes.ts'
import {
  blockAt,
  finality,
  lastBlock,
  pendingConsolidations,
  pendingPartialWithdrawals,
  queuedDeposits,
  validatorsAt,
} from './beacon-state.ts'
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

  /** The state that is meant, by its slot: all that is then asked about is of one state. */
  const slotOf = async (node: BeaconNode, at: StateAt, signal: AbortSignal): Promise<number> => {
    const head = await headSlot(node, clock, maxLagSlots, signal)
    if (at === 'head') return head
    if (at === 'finalized') return firstSlotOf((await finality(node, head, signal)).finalized.epoch, node.spec)
    if (at > head) throw new BeaconError('behind', `the beacon node is at slot ${head}, and slot ${at} is asked for`)
    return at
  }

  /** Nodes that don't have the slot, or don't answer, say nothing; one of them that has another chain up to there is on another fork. */
  const assertAgreed = async (slot: number, node: BeaconNode, root: Hex, signal: AbortSignal): Promise<void> => {
    if (options.urls.length < 2) return
    const rootOn = async (each: BeaconNode): Promise<Hex> => {
      if (each.index === node.index) return root
      await slotOf(each, slot, signal)
      return (await lastBlock(each, slot, signal)).root
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
    read: (node: BeaconNode, slot: number, block: BeaconBlock) => Promise<T>,
  ): Promise<T & { readonly slot: number; readonly epoch: number }> =>
    nodes.first(async (node) => {
      const slot = await slotOf(node, at, signal)
      const block = await lastBlock(node, slot, signal)
      const value = await read(node, slot, block)
      if ((await lastBlock(node, slot, signal)).root !== block.root)
        throw new BeaconError('behind', `the beacon chain was reorganised at slot ${slot} while its state was read`)
      if (at !== 'head') await assertAgreed(slot, node, block.root, signal)
      return { slot, epoch: epochOf(slot, node.spec), ...value }
    }, signal)

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
      viewed(at, signal, async (node, slot, block) => {
        const [validators, withdrawals, consolidations] = await Promise.all([
          validatorsAt(node, slot, [pubkey], signal),
          pendingPartialWithdrawals(node, slot, signal),
          pendingConsolidations(node, slot, signal),
        ])
        const validator = validators.get(lowerCase(pubkey))
        return { block, validator, pendingPartialWithdrawals: withdrawals, pendingConsolidations: consolidations }
      }),

    blockAt: (slot, signal) =>
      nodes.first(async (node) => {
        const root = await blockAt(node, await slotOf(node, slot, signal), signal)
        return root === undefined ? undefined : { slot, root }
      }, signal),

    standing: async ({ slot, root }, signal) => {
      // A node that is not so far, or that does not answer, says nothing.
      const roots = await nodes.each(async (node) => (await blockAt(node, await slotOf(node, slot, signal), signal)) ?? 'none', signal)
      const having = [...roots.values()].filter((one) => one === root)
      if (roots.size === 0) return 'unknown'
      return having.length === roots.size ? 'stands' : having.length > 0 ? 'disputed' : 'left'
    },

    executionOf: createBlockExecution(nodes),

    depositView: (pubkeys, at, signal) =>
      viewed(at, signal, async (node, slot) => {
        const validators = await validatorsAt(node, slot, pubkeys, signal)
        const isKnown = pubkeys.every((pubkey) => validators.has(lowerCase(pubkey)))
        return { validators, pendingDeposits: isKnown ? [] : await queuedDeposits(node, slot, signal) }
      }),

    pendingDeposits: (at, signal) =>
      viewed(at, signal, async (node, slot) => ({ deposits: await queuedDeposits(node, slot, signal) })).then(({ deposits }) => deposits),
  }
}
