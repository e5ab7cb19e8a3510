import { FINALIZER, ORIGIN_ANNOTATION } from '../../resources/meta.ts'
import type { Reason } from '../../resources/reasons.ts'
import { changeMetadata } from '../kube/finalizers.ts'
import { diffMergePatch } from '../kube/merge-patch.ts'
import type { KubeObject } from '../kube/objects.ts'
import { acknowledged } from './acknowledge.ts'
import type { ReconcilerDeps, VisitLog } from './deps.ts'
import { progressInTime } from './in-time.ts'
import { milestones } from './milestones.ts'
import { originAnnotation } from './origin.ts'
import type { Progress } from './progress.ts'
import type { Reminders } from './reminders.ts'
import type { AnyStatus } from './saga-kind.ts'
import { remind, tell } from './tell.ts'

/** A resource in hand for one visit: what it is, what was found out of it, and whether the API server has that. */
export interface Draft<R, S> {
  readonly resource: R
  /** With everything that was found out. */
  readonly status: S
  /** There is evidence that the API server doesn't have. */
  readonly unsaved: boolean
  /** Takes in evidence. It is written by the next flush. */
  learn(status: S): void
  /** Writes what differs, fenced, and goes on with the object that comes back. @returns false where nothing differed, and nobody was asked */
  flush(progress: Progress): Promise<boolean>
  /** The finalizer, and whose stake it is. @returns false where the resource is gone */
  mark(): Promise<boolean>
  /** Takes the finalizer away. `undone`: what could not be done before, a sentence without its full stop. */
  release(because: string, undone?: string): Promise<void>
}

interface Kind<R, S> {
  readonly passing: readonly string[]
  readonly warnings?: readonly Reason[]
  readonly statusOf: (resource: R) => S | undefined
  readonly say: (resource: R, status: S, progress: Progress, now: Date) => S
  readonly hasSigned: (status: S) => boolean
}

export function createDraft<R extends KubeObject, S extends AnyStatus>(
  kind: Kind<R, S>,
  deps: ReconcilerDeps<R>,
  given: {
    readonly key: string
    readonly resource: R
    readonly log: VisitLog
    readonly signal: AbortSignal
    readonly reminders: Reminders
  },
): Draft<R, S> {
  const { client, informer, events, clock, fieldManager } = deps
  const { key, log, signal, reminders } = given
  const point = (name: string): void => deps.onPoint?.(name, key)
  let { resource } = given
  let status = (kind.statusOf(resource) ?? {}) as S
  let unsaved = false

  return {
    get resource() {
      return resource
    },
    get status() {
      return status
    },
    get unsaved() {
      return unsaved
    },
    learn(next) {
      unsaved ||= next !== status
      status = next
    },

    async flush(progress) {
      const before = kind.statusOf(resource)
      const inTime = progressInTime(progress, kind.hasSigned(status))
      const said = kind.say(resource, status, inTime, clock.now())
      // In the middle of a visit nothing was taken up yet.
      const next = progress.at === 'step' ? said : acknowledged(resource, said)
      remind({ events, log, reminders }, key, resource, inTime, clock.monotonicMs())
      const patch = diffMergePatch(before as Record<string, unknown> | undefined, next as Record<string, unknown>)
      unsaved = false
      if (patch === undefined) return false
      deps.assertHeld()
      point('before status write')
      const { name, namespace, resourceVersion } = resource.metadata
      const written = await client.mergePatch(
        namespace === undefined ? { name } : { name, namespace },
        { status: patch },
        { resourceVersion, subresource: 'status', fieldManager },
        signal,
      )
      point('after status write')
      deps.onStatusWrite?.()
      informer.put(written)
      tell({ kind, events, log }, written, before, next, progress)
      const { reached, stalled } = milestones(written.metadata, before, next, clock.now())
      for (const { type, sinceCreatedMs } of reached) deps.onCondition?.(type, sinceCreatedMs)
      if (stalled !== undefined) deps.onStall?.(stalled)
      resource = written
      status = (kind.statusOf(written) ?? next) as S
      return true
    },

    async mark() {
      deps.assertHeld()
      point('before marking')
      const { metadata } = resource
      const annotations = metadata.annotations?.[ORIGIN_ANNOTATION] === undefined ? { [ORIGIN_ANNOTATION]: originAnnotation(metadata) } : {}
      const marked = await changeMetadata(client, resource, { addFinalizer: FINALIZER, annotations }, signal, { fieldManager })
      point('after marking')
      if (marked === undefined) return false
      informer.put(marked)
      resource = marked
      return true
    },

    async release(because, undone) {
      deps.assertHeld()
      point('before release')
      const note = `The finalizer is removed: ${because}.${undone === undefined ? '' : ` ${undone}.`}`
      if (undone !== undefined) log.warn({}, note)
      events.event(resource, { type: undone === undefined ? 'Normal' : 'Warning', reason: 'Released', action: 'Delete', note })
      const left = await changeMetadata(client, resource, { removeFinalizer: FINALIZER }, signal, { fieldManager })
      point('after release')
      if (left !== undefined) informer.put(left)
    },
  }
}
