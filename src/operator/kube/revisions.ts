import { compareResourceVersions } from './objects.ts'
import type { ResourceDefinition } from './resource-client.ts'

/**
 * The API server answers as of a moment before one that this process has seen: etcd was restored from a backup, or a member came back with old data.
 * What was written in between is gone, and with it perhaps what stands for a payment. The process must end: all that it knows is of another past.
 */
export class EtcdSetBack extends Error {
  override readonly name = 'EtcdSetBack'

  constructor(what: string, seen: string, now: string) {
    super(
      `etcd was set back: ${what} is at resource version ${now}, but ${seen} was seen before. What was written in between is gone; this process ends before it acts on that`,
    )
  }
}

/**
 * The highest resource versions that this process has seen. They are etcd's revision, which grows with every write of the whole store, so that none of
 * these may answer with a lower one than was seen **before it was asked**:
 * - a list without a resource version, which is a consistent read: of etcd itself, or of a watch cache that has waited until it is as far as etcd
 *   (Kubernetes API concepts, "Semantics for get and list"; KEP-2340). Further pages of a list are as old as its first, and say nothing;
 * - a write that has changed something: its version is the revision that it made. One that changed nothing answers with the version that the object had;
 * - a watch, against its own start: it passes on only what came after, bookmarks included, also where an API server lags behind another.
 * A get says nothing by itself: an object keeps the version of its last write. Nor does a store that was set back and has since been written to more often
 * than before: its revision has caught up. What stands for money has witnesses outside of etcd for that (docs/explanation/exactly-once.md).
 *
 * What compares with what: all custom resources are in one etcd. Built-in kinds may each have an etcd of its own (kube-apiserver's
 * `--etcd-servers-overrides` "applies only to resources compiled into this server binary"), so they are compared with themselves only; and events not at
 * all, since theirs may be thrown away at any time.
 */
export interface Revisions {
  /** The highest version seen so far where this kind is stored; '' before the first. */
  seen(definition: ResourceDefinition): string
  /** Takes note of a version that the server has given out. */
  note(definition: ResourceDefinition, resourceVersion: string): void
  /**
   * For an answer that can't be older than `floor`, which was seen when it was asked for. @throws EtcdSetBack, after telling `onSetBack`.
   * @param answer What answered, for the message: "a list of stakingsigners".
   */
  assertNotBefore(floor: string, definition: ResourceDefinition, resourceVersion: string, answer: string): void
  /** The same for a write that has changed something: it makes a revision of its own. */
  assertAfter(floor: string, definition: ResourceDefinition, resourceVersion: string, answer: string): void
}

const storeOf = ({ group, plural }: ResourceDefinition): string | undefined => {
  if (group === 'events.k8s.io') return undefined
  const isBuiltIn = group === '' || group.endsWith('.k8s.io')
  return isBuiltIn ? `${plural}.${group}` : 'custom resources'
}

export function createRevisions(onSetBack: (error: EtcdSetBack) => void = () => {}): Revisions {
  const highest = new Map<string, string>()
  const assert = (isLater: (order: number) => boolean): Revisions['assertAfter'] => {
    return (floor, definition, resourceVersion, answer) => {
      if (storeOf(definition) === undefined || isLater(compareResourceVersions(resourceVersion, floor))) return
      const error = new EtcdSetBack(answer, floor, resourceVersion)
      onSetBack(error)
      throw error
    }
  }
  return {
    seen: (definition) => highest.get(storeOf(definition) ?? '') ?? '',
    note(definition, resourceVersion) {
      const store = storeOf(definition)
      if (store !== undefined && compareResourceVersions(resourceVersion, highest.get(store) ?? '') > 0) highest.set(store, resourceVersion)
    },
    assertNotBefore: assert((order) => order >= 0),
    assertAfter: assert((order) => order > 0),
  }
}
