import type { Clock } from '../../lib/clock.ts'
import type { EventRecorder, EventText } from '../kube/events.ts'
import type { KubeObject } from '../kube/objects.ts'

/** An event that this process has told. */
export interface RememberedEvent extends Pick<EventText, 'type' | 'reason' | 'note'> {
  readonly at: Date
  /** How often it was told in a row. */
  readonly count: number
}

/** With notes of 1024 characters at most, all of them take some 10 MB at worst. */
const MOST_OF_ONE = 10
const MOST_RESOURCES = 1_000

/** Passes events on to the recorder, and remembers the last ones of each resource for the page: as many as that, and no longer than the process lives. */
export function rememberEvents(recorder: Pick<EventRecorder, 'event'>, clock: Pick<Clock, 'now'>) {
  /** By UID; the resource that had an event last comes last. */
  const known = new Map<string, readonly RememberedEvent[]>()

  function remember({ metadata: { uid } }: KubeObject, { type, reason, note }: EventText): void {
    const before = known.get(uid) ?? []
    const last = before.at(-1)
    const isRepeated = last !== undefined && last.reason === reason && last.note === note
    const event = { type, reason, note: note.slice(0, 1_024), at: clock.now(), count: isRepeated ? last.count + 1 : 1 }
    known.delete(uid)
    known.set(uid, [...(isRepeated ? before.slice(0, -1) : before), event].slice(-MOST_OF_ONE))
    for (const oldest of known.keys()) {
      if (known.size <= MOST_RESOURCES) break
      known.delete(oldest)
    }
  }

  return {
    event(regarding: KubeObject, text: EventText): void {
      recorder.event(regarding, text)
      remember(regarding, text)
    },
    /** Oldest first. */
    of: (uid: string): readonly RememberedEvent[] => known.get(uid) ?? [],
  }
}
