import type { Standing } from '../../../chains/ethereum/request-queue.ts'
import { type Decided, maxReason, type Verdict } from './verdict.ts'

/**
 * What is told of a request that was judged before, in the block that it is in now. A verdict depends on the block that handed the request on, which may be a
 * later one. While that is in the chain, the verdict stays: it is replaced by what the states show, and never by silence, nor by what is only inferred from the
 * head. Once it has left the chain, the verdict has nothing to stand on.
 */
export async function withEarlier(
  earlier: Decided,
  given: {
    /** All that the judgement depends on is final: time to judge once more. */
    readonly isFinal: boolean
    /** Whether the block that handed the request on is still in the chain. */
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

const leftBy = ({ status, judgedAt }: Decided, reason: string | undefined): string =>
  `the states around block ${judgedAt} said that it was ${status}, and that block has left the chain${reason === undefined ? ': it is judged again' : `; ${reason}`}`.slice(
    0,
    maxReason,
  )
