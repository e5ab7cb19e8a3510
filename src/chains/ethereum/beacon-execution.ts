import { type BeaconBlock, BeaconError, type BlockExecution } from './beacon.ts'
import * as formats from './beacon-formats.ts'
import type { BeaconNode, BeaconNodes } from './beacon-nodes.ts'
import type { Hex } from './chain.ts'

/** Blocks that are remembered: a block is its root, so that what it holds never changes. */
const mostRemembered = 4_096
/** The blinded block is the smaller one, and the other is there since Altair. */
const endpoints = [
  { endpoint: 'blinded_blocks', path: '/eth/v1/beacon/blinded_blocks' },
  { endpoint: 'blocks', path: '/eth/v2/beacon/blocks' },
] as const

/** The node has no such block, or has no such endpoint: some say 400 for one that they don't know of a fork. */
const absent = new BeaconError('state-not-kept', 'the beacon node does not show the block')

const isUnserved = (error: unknown): boolean => error === absent || (error instanceof BeaconError && error.refused !== undefined)

/** @throws `absent`, where this node serves neither */
async function readBlock(node: BeaconNode, root: Hex, signal: AbortSignal): Promise<BlockExecution> {
  for (const { endpoint, path } of endpoints) {
    try {
      const request = { endpoint, path: `${path}/${root}`, schema: formats.blockExecution, notFound: absent, isBadNotFound: true }
      return await node.get(request, signal)
    } catch (error) {
      if (!isUnserved(error)) throw error
    }
  }
  throw absent
}

/** Which blocks of the execution layer a block of the beacon chain names, by the first node that shows it. Undefined where none serves blocks. */
export function createBlockExecution(
  nodes: Pick<BeaconNodes, 'first'>,
): (block: BeaconBlock, signal: AbortSignal) => Promise<BlockExecution | undefined> {
  const known = new Map<Hex, BlockExecution>()
  return async ({ root }, signal) => {
    const before = known.get(root)
    if (before !== undefined) return before
    let hasFailed = false
    try {
      const found = await nodes.first(async (node) => {
        try {
          return await readBlock(node, root, signal)
        } catch (error) {
          hasFailed ||= error !== absent
          throw error
        }
      }, signal)
      if (known.size >= mostRemembered) for (const oldest of known.keys()) if (known.delete(oldest)) break
      known.set(root, found)
      return found
    } catch (error) {
      if (!(error instanceof BeaconError)) throw error
      if (!hasFailed) return undefined
      // Nothing is known of states by that.
      throw new BeaconError(error.code === 'state-not-kept' ? 'unavailable' : error.code, error.message, error.retryAfterMs)
    }
  }
}
