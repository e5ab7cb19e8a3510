import { formatEth, gwei } from '../../../lib/amounts.ts'
import type { Instant } from '../../../lib/clock.ts'
import { timestamp } from '../../../resources/conditions.ts'
import { LIMITS_SHOWN, type LimitUse } from '../../../resources/signer-limits.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { type Limit, type Use, type Used, usedOf } from '../../transactions/limits.ts'

/** A time in ms as an Instant. */
type AtMs = (ms: number) => Instant

/** What of a signer's limits is used on a network, for people. */
export function limitUses(
  limits: readonly Limit[],
  uses: readonly Use[],
  {
    network,
    chain,
    nowMs,
    at,
  }: { readonly network: string; readonly chain: StakingSigner['spec']['chain']; readonly nowMs: number; readonly at: AtMs },
): readonly LimitUse[] {
  const coins = (amount: bigint): string => formatEth(gwei(amount))
  const left = (most: bigint, used: bigint): bigint => (used < most ? most - used : 0n)
  const total = ({ limit: { maxTotal }, total: used }: Used) => {
    if (maxTotal === undefined) return {}
    const rest = left(maxTotal, used)
    return chain === 'Solana' ? { usedSol: coins(used), leftSol: coins(rest) } : { usedEth: coins(used), leftEth: coins(rest) }
  }
  return usedOf(limits, uses, { clockMs: nowMs, blockMs: undefined }).map((used) => {
    const { limit, namespace, count, freesAtMs } = used
    return {
      network,
      window: limit.window,
      per: limit.per,
      ...(namespace === undefined ? {} : { namespace }),
      count,
      ...(limit.maxCount === undefined ? {} : { countLeft: Math.max(0, limit.maxCount - count) }),
      ...total(used),
      ...(freesAtMs === undefined ? {} : { freesAt: timestamp(at(freesAtMs)) }),
    }
  })
}

const placeOf = ({ network, window, namespace = '' }: LimitUse): string => `${network} ${window} ${namespace}`

/** As many as status shows: those of the whole signer, and the namespaces that have used most. */
export function shownLimits(all: readonly LimitUse[]): readonly LimitUse[] {
  const rank = ({ namespace, count }: LimitUse): number => (namespace === undefined ? Number.POSITIVE_INFINITY : count)
  const most =
    all.length <= LIMITS_SHOWN
      ? all
      : all.toSorted((a, b) => rank(b) - rank(a) || (placeOf(a) < placeOf(b) ? -1 : 1)).slice(0, LIMITS_SHOWN)
  return most.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : placeOf(a) > placeOf(b) ? 1 : 0))
}
