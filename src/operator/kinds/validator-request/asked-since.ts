import type { EthereumNetwork } from '../../ports.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import type { RequestOrder } from './steps.ts'

/** How far back the contract's history is searched for what a restored resource may have asked for, in ms: as long as its record would have been kept. */
const RESTORED_MS = 30 * 86_400_000
/** Seconds between two blocks, at the least: slots have twelve, and some are empty. */
const BLOCK_SECONDS = 6
/** Clocks differ, by seconds. */
const MARGIN_S = 60

/**
 * A block before which a resource can have asked for nothing: a final one, from before the resource was created. What was sent since then may be lost to the log
 * and to the staking API, as by a restore of both, and the contract's history still has it. One that was restored under its name is older than it says.
 */
export async function askedSince(
  { resource, clock }: Pick<ValidatorRequestDeps, 'resource' | 'clock'>,
  { origin }: RequestOrder,
  { chain }: EthereumNetwork,
  signal: AbortSignal,
): Promise<bigint> {
  const { metadata } = (await resource(origin.kind, origin, false, signal)) ?? {}
  const created = Date.parse(metadata?.creationTimestamp ?? '')
  const isRestored = metadata?.uid !== origin.uid || Number.isNaN(created)
  const since = isRestored ? clock.now().getTime() - RESTORED_MS : created
  const { final, latest } = await chain.view(signal)
  const seconds = Math.max(0, latest.timestamp - Math.floor(since / 1_000)) + MARGIN_S
  const before = latest.number - BigInt(Math.ceil(seconds / BLOCK_SECONDS))
  const block = before < final.number ? before : final.number
  return block > 0n ? block : 0n
}
