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

/** @throws `absent` where this node serves neither, or what the last one of them failed by */
async function readBlock(node: BeaconNode, root: Hex, signal: AbortSignal): Promise<BlockExecution> {
  let failed: BeaconError = absent
  for (const { endpoint, path } of endpoints) {
    try {
      const request = { endpoint, path: `${path}/${root}`, schema: formats.blockExecution, notFound: absent, isBadNotFound: true }
      return await node.get(request, signal)
    } catch (error) {
      if (!(error instanceof BeaconError)) throw error
      if (error !== absent && error.refused === undefined) failed = error
    }
  }
  throw failed
}

/** Which blocks of the execution layer a block of the beacon chain names, by the first node that shows it. Undefined where none serves blocks. */
export function createBlockExecution(
  nodes: Pick<BeaconNodes, 'first'>,
): (block: BeaconBlock, signal: AbortSignal) => Promise<BlockExecution | undefined> {
  async function read(root: Hex, signal: AbortSignal): Promise<BlockExecution | undefined> {
    let hasFailed = false
    try {
      return await nodes.first(async (node) => {
        try {
          return await readBlock(node, root, signal)
        } catch (error) {
          hasFailed ||= error !== absent
          throw error
        }
      }, signal)
    } catch (error) {
      if (!(error instanceof BeaconError)) throw error
      if (!hasFailed) return undefined
      // Nothing is known of states by that.
      throw new BeaconError(error.code === 'state-not-kept' ? 'unavailable' : error.code, error.message, error.retryAfterMs)
    }
  }

  /** Requests of one block are judged side by side. */
  const known = new Map<Hex, Promise<BlockExecution | undefined>>()
  return ({ root }, signal) => {
    const before = known.get(root)
    if (before !== undefined) return before
    const asked = read(root, signal)
    if (known.size >= mostRemembered) for (const oldest of known.keys()) if (known.delete(oldest)) break
    known.set(root, asked)
    const forget = (): void => void known.delete(root)
    // What no node shows now, one may show later.
    asked.then((found) => (found === undefined ? forget() : undefined), forget)
    return asked
  }
}
