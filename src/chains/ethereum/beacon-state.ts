import { lowerCase } from '../../lib/chain-types.ts'
import { type BeaconBlock, BeaconError, type BeaconValidator } from './beacon.ts'
import * as formats from './beacon-formats.ts'
import type { BeaconNode } from './beacon-nodes.ts'
import { statusAt } from './beacon-phase.ts'
import { epochOf } from './beacon-time.ts'
import type { Hex, Pubkey } from './chain.ts'

/** What one beacon node says of one state, by its slot. All throw BeaconError. */

/** Ids in one query of validators: 30 × 99 characters stay below every client's limit on URLs. */
const idsPerQuery = 30

/** Slots without a block in a row: two epochs, far more than a chain that goes on has. */
const maxEmptySlots = 64

const ofState = (slot: number, endpoint: string) => ({
  endpoint,
  path: `/eth/v1/beacon/states/${slot}/${endpoint}`,
  notFound: new BeaconError(
    'state-not-kept',
    `the beacon node does not have the state at slot ${slot}, or does not serve ${endpoint} of it`,
  ),
})

const noBlock = new BeaconError('state-not-kept', 'the slot has no block')

export const finality = (node: BeaconNode, slot: number, signal: AbortSignal) =>
  node.get({ ...ofState(slot, 'finality_checkpoints'), schema: formats.finality }, signal)

export const validatorsAt = async (node: BeaconNode, slot: number, pubkeys: readonly Pubkey[], signal: AbortSignal) => {
  const found = new Map<Pubkey, BeaconValidator>()
  for (let from = 0; from < pubkeys.length; from += idsPerQuery) {
    const wanted = pubkeys.slice(from, from + idsPerQuery).map((pubkey) => lowerCase(pubkey))
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
export const blockAt = async (node: BeaconNode, slot: number, signal: AbortSignal): Promise<Hex | undefined> => {
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
export const lastBlock = async (node: BeaconNode, slot: number, signal: AbortSignal): Promise<BeaconBlock> => {
  for (let at = slot; at >= Math.max(0, slot - maxEmptySlots); at--) {
    const root = await blockAt(node, at, signal)
    if (root !== undefined) return { slot: at, root }
  }
  throw new BeaconError('state-not-kept', `the beacon node has no block at slot ${slot}, nor in the ${maxEmptySlots} slots before it`)
}

export const queuedDeposits = (node: BeaconNode, slot: number, signal: AbortSignal) =>
  node.get({ ...ofState(slot, 'pending_deposits'), schema: formats.pendingDeposits }, signal)

/** Partial withdrawals that are requested and not paid yet. */
export const pendingPartialWithdrawals = (node: BeaconNode, slot: number, signal: AbortSignal) =>
  node.get({ ...ofState(slot, 'pending_partial_withdrawals'), schema: formats.pendingPartialWithdrawals }, signal)

/**
 * No rule depends on consolidations alone (a source is exiting by its exit epoch): they only make a message clearer, so a node may lack them, refuse them,
 * or answer with something else (a client gave the list of deposits: prysm#15308).
 */
export const pendingConsolidations = (node: BeaconNode, slot: number, signal: AbortSignal) =>
  node
    .get({ ...ofState(slot, 'pending_consolidations'), schema: formats.pendingConsolidations }, signal)
    .catch((error: unknown): never[] => {
      if (error instanceof BeaconError) return []
      throw error
    })
