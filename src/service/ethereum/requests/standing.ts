import type { ChainReceipt } from '../../../chains/ethereum/chain.ts'
import type { Standing } from '../../../chains/ethereum/request-queue.ts'
import type { ValidatorAccess } from '../networks.ts'
import { type Decided, maxReason, type Verdict } from './verdict.ts'

/**
 * Whether what a verdict was judged by is still in the chain: the block that handed the request on, where that is a later one than the receipt's own, and the
 * block of the beacon chain that processed it, where that is another one's.
 */
export async function standingOf(
  validators: ValidatorAccess | undefined,
  { blockNumber }: ChainReceipt,
  { judgedAt, judgedBy, processedBy }: Decided,
  signal: AbortSignal,
): Promise<Standing> {
  const stands: Standing = 'stands'
  if (validators === undefined) return stands
  const both = await Promise.all([
    judgedBy === undefined || judgedAt === blockNumber ? stands : validators.reads.standing({ number: judgedAt, hash: judgedBy }, signal),
    processedBy === undefined ? stands : validators.beacon.standing(processedBy, signal),
  ])
  return worse(...both)
}

/**
 * What is told of a request that was judged before, in the block that it is in now. A verdict depends on the block that handed the request on, which may be a
 * later one, and from Gloas on on the block of the beacon chain that processed it. While those are in the chain, the verdict stays: it is replaced by what the states show, and never by silence, nor by what is only inferred from the
 * head. Once one has left the chain, the verdict has nothing to stand on.
 */
export async function withEarlier(
  earlier: Decided,
  given: {
    /** All that the judgement depends on is final: time to judge once more. */
    readonly isFinal: boolean
    /** Whether the blocks that it depends on are still in the chain. */
    readonly standing: () => Promise<Standing>
    readonly judge: () => Promise<Verdict>
  },
): Promise<Verdict> {
  const before = given.isFinal ? undefined : await given.standing()
  if (!given.isFinal && before !== 'left') return earlier
  const verdict = await given.judge()
  if (verdict.status !== 'pending' && verdict.inferred !== true) return verdict
  const standing = before ?? (await given.standing())
  if (standing === 'left') return verdict.status === 'pending' ? { ...verdict, reason: leftBy(earlier, verdict.reason) } : verdict
  // "Waiting", or "no such block", of a block that was judged: a node that lags. It is looked at again before it counts as final.
  const again = standing !== 'stands' || (verdict.status === 'pending' && (verdict.askAgain === true || verdict.cannotTell !== true))
  return again ? { ...earlier, askAgain: true } : earlier
}

const fromBest: readonly Standing[] = ['stands', 'unknown', 'disputed', 'left']
/** What is known of two blocks that both must be in the chain. */
const worse = (one: Standing, other: Standing): Standing => (fromBest.indexOf(one) > fromBest.indexOf(other) ? one : other)

const leftBy = ({ status, judgedAt, processedBy }: Decided, reason: string | undefined): string =>
  `the states around ${processedBy === undefined ? `block ${judgedAt}` : `slot ${processedBy.slot}, which processed what block ${judgedAt} handed on,`} said that it was ${status}, and that block has left the chain${reason === undefined ? ': it is judged again' : `; ${reason}`}`.slice(
    0,
    maxReason,
  )
