import type { Condition } from '../../resources/conditions.ts'
import type { Reason } from '../../resources/reasons.ts'
import type { EventRecorder } from '../kube/events.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { VisitLog } from './deps.ts'
import type { Progress } from './progress.ts'
import type { Reminders } from './reminders.ts'
import type { AnyStatus } from './saga-kind.ts'

/** What waits for something that may need a person is told, once it has lasted; what has waited for long is warned of, now and then, for as long as it waits. */
export function remind(
  { events, log, reminders }: { readonly events: Pick<EventRecorder, 'event'>; readonly log: VisitLog; readonly reminders: Reminders },
  key: string,
  resource: KubeObject,
  progress: Progress,
  now: number,
): void {
  if (progress.at === 'step') return
  if (progress.at !== 'halted' || progress.verdict.kind === 'stall') {
    reminders.forget(key)
    return
  }
  const { reason, message } = progress.verdict
  const due = reminders.due(key, reason, now)
  if (due === undefined) return
  const type = due === 'begun' ? 'Normal' : 'Warning'
  events.event(resource, { type, reason, action: progress.step || 'Reconcile', note: message })
  if (due === 'long') log.warn({ reason, step: progress.step }, `still waiting: ${message}`)
}

/** Events: one per change to a phase that somebody waits for or acts on, and a warning when a resource comes to need a person, or when one comes up. */
export function tell<R extends KubeObject>(
  {
    kind,
    events,
    log,
  }: {
    readonly kind: { readonly passing: readonly string[]; readonly warnings?: readonly Reason[] }
    readonly events: Pick<EventRecorder, 'event'>
    readonly log: VisitLog
  },
  resource: R,
  before: AnyStatus | undefined,
  after: AnyStatus,
  progress: Progress,
): void {
  for (const { type, reason, message } of warningsIn(kind, after)) {
    // As long as it lasts it is one warning, whatever else changes of what it says.
    if (warningsIn(kind, before).some((told) => told.type === type && told.reason === reason)) continue
    events.event(resource, { type: 'Warning', reason, action: 'Observe', note: message })
    log.warn({ reason }, `warning: ${message}`)
  }
  const stalled = (status: AnyStatus | undefined) => status?.conditions?.find(({ type }) => type === 'Stalled')
  const now = stalled(after)
  const was = stalled(before)
  if (now?.status === 'True' && (was?.status !== 'True' || was.message !== now.message)) {
    events.event(resource, {
      type: 'Warning',
      reason: now.reason,
      action: progress.at === 'halted' && progress.step !== '' ? progress.step : 'Reconcile',
      note: now.message,
    })
    log.warn({ reason: now.reason, step: progress.at === 'halted' ? progress.step : undefined }, `stalled: ${now.message}`)
  } else if (after.phase !== before?.phase && after.phase !== undefined) {
    const ready = after.conditions?.find(({ type }) => type === 'Ready')
    if (!kind.passing.includes(after.phase))
      events.event(resource, {
        type: 'Normal',
        reason: after.phase,
        action: progress.at === 'step' || progress.at === 'halted' ? progress.step || 'Reconcile' : 'Reconcile',
        note: ready?.message ?? after.phase,
      })
    log.info({ phase: after.phase }, `now ${after.phase}`)
  }
}

const warningsIn = ({ warnings = [] }: { readonly warnings?: readonly Reason[] }, status: AnyStatus | undefined): readonly Condition[] =>
  warnings.length === 0 ? [] : (status?.conditions ?? []).filter(({ reason }) => warnings.some((warning) => warning === reason))
