import type { BeaconBlock, BeaconChain, BeaconSpec } from './beacon.ts'
import { epochOf } from './beacon-time.ts'

/** Missed slots in a row after which nobody waits for the next block any more: eight epochs of mainnet. */
export const maxMissedSlots = 256

/**
 * The slot whose block processes the requests (deposits, EIP-7002) of the payload of a slot: its own, and from Gloas on that of the next block, which
 * confirms the payload (EIP-7732; consensus-specs, gloas/beacon-chain.md: process_parent_execution_payload), with that block: another one may take its place
 * while the payload stays. Undefined when there is none for long.
 * @throws BeaconError `behind` while the next block is not there
 */
export async function processingSlot(
  beacon: Pick<BeaconChain, 'blockAt'>,
  spec: BeaconSpec,
  slot: number,
  signal: AbortSignal,
): Promise<{ readonly slot: number; readonly confirmedBy?: BeaconBlock } | undefined> {
  if (spec.gloasForkEpoch === undefined || epochOf(slot, spec) < spec.gloasForkEpoch) return { slot }
  for (let at = slot + 1; at <= slot + maxMissedSlots; at += 1) {
    const block = await beacon.blockAt(at, signal)
    if (block !== undefined) return { slot: at, confirmedBy: block }
  }
  return undefined
}
