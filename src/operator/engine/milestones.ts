import type { Instant } from '../../lib/clock.ts'
import { OBSERVED } from '../../resources/conditions.ts'
import type { ObjectMeta } from '../kube/objects.ts'
import type { AnyStatus } from './saga-kind.ts'

/** What a status that was just written says for the first time. */
export interface Milestones {
  /** Conditions that became True, each so long after the resource was created, in ms. */
  readonly reached: readonly { readonly type: string; readonly sinceCreatedMs: number }[]
  /** Why the resource needs a person, where it did not need one for that reason before. */
  readonly stalled: string | undefined
}

/** They come and go, and say what is done now rather than what was reached. */
const passing: readonly string[] = ['Reconciling', 'Stalled', OBSERVED]

/**
 * What came about from one status to the next, for the metrics. Times are told only of a resource whose spec is the one that it was created with: after a
 * change they would tell what people did. (A Solana stake that is to be withdrawn sends again, months after it was created.)
 */
export function milestones(
  { creationTimestamp, generation }: Pick<ObjectMeta, 'creationTimestamp' | 'generation'>,
  before: Pick<AnyStatus, 'conditions'> | undefined,
  after: Pick<AnyStatus, 'conditions'>,
  now: Instant,
): Milestones {
  const isTrueOf = (type: string, reason?: string): boolean =>
    before?.conditions?.some((one) => one.type === type && one.status === 'True' && (reason === undefined || one.reason === reason)) ??
    false
  const held = (after.conditions ?? []).filter(({ status }) => status === 'True')
  const created = Date.parse(creationTimestamp ?? '')
  const isAsCreated = generation === 1 && Number.isFinite(created)
  return {
    reached: held
      .filter(({ type }) => isAsCreated && !passing.includes(type) && !isTrueOf(type))
      .map(({ type }) => ({ type, sinceCreatedMs: Math.max(0, now.getTime() - created) })),
    stalled: held.find(({ type, reason }) => type === 'Stalled' && !isTrueOf(type, reason))?.reason,
  }
}
