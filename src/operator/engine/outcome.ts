import { jitter } from '../../lib/clock.ts'
import type { Result } from '../kube/controller.ts'
import { Priority } from '../kube/queue.ts'
import type { Halted } from './saga-kind.ts'

interface Pace {
  readonly random?: () => number
  readonly stallRecheckMs: number
}

/** It is waited for: about this long, ahead of what is only looked at now and then. */
export const soon = ({ random }: Pace, afterMs: number): Result => ({
  kind: 'wait',
  afterMs: jitter(afterMs, random),
  priority: Priority.high,
})
/** Nobody waits for it. */
export const later = ({ random }: Pace, afterMs: number): Result => ({
  kind: 'wait',
  afterMs: jitter(afterMs, random),
  priority: Priority.low,
})

/** When what needs a person is looked at again by itself; never, where a watch sees every cause of it. `atMostMs`: something else is looked at by then. */
export const afterStall = (pace: Pace, verdict: Halted & { readonly kind: 'stall' }, atMostMs = Number.POSITIVE_INFINITY): Result =>
  verdict.recheck ? later(pace, Math.min(verdict.recheckAfterMs ?? pace.stallRecheckMs, atMostMs)) : { kind: 'done' }
