import { cacheKey, compareResourceVersions, type KubeObject } from './objects.ts'
import type { ResourceClient, WatchEvent } from './resource-client.ts'

type ObjectEvent<T extends KubeObject> = Exclude<WatchEvent<T>, { type: 'BOOKMARK' }>

export interface OwnWrites<T extends KubeObject> {
  /** The same client, whose writes are known while they are under way. */
  readonly client: ResourceClient<T>
  /** Passes an event on: at once, or, where this process is writing that very object, when it is known whether the event is of that write. */
  take(event: ObjectEvent<T>): void
  /** Whether an event of this version, or of an earlier one, is not passed on yet. */
  holdsBack(resourceVersion: string): boolean
}

interface Writing<T extends KubeObject> {
  underWay: number
  readonly held: ObjectEvent<T>[]
  /** Versions that this process has made. */
  readonly made: Set<string>
}

/**
 * Tells a watch's events of own writes from others. A watch is often faster than the answer to the write that it shows: taken for somebody else's change, it
 * would have the author look at its own work once more.
 */
export function createOwnWrites<T extends KubeObject>(
  client: ResourceClient<T>,
  pass: (event: ObjectEvent<T>, own: boolean) => void,
): OwnWrites<T> {
  const writes = new Map<string, Writing<T>>()

  async function noted(key: string, write: () => Promise<T>): Promise<T> {
    const writing = writes.get(key) ?? { underWay: 0, held: [], made: new Set() }
    writes.set(key, writing)
    writing.underWay++
    try {
      const answer = await write()
      writing.made.add(answer.metadata.resourceVersion)
      return answer
    } finally {
      writing.underWay--
      if (writing.underWay === 0) {
        writes.delete(key)
        for (const event of writing.held) pass(event, writing.made.has(event.object.metadata.resourceVersion))
      }
    }
  }

  return {
    client: {
      ...client,
      create(object, signal, options) {
        const { namespace, name } = object.metadata
        const create = () => client.create(object, signal, options)
        return name === undefined ? create() : noted(cacheKey(namespace === undefined ? { name } : { namespace, name }), create)
      },
      mergePatch: (ref, patch, options, signal) => noted(cacheKey(ref), () => client.mergePatch(ref, patch, options, signal)),
    },
    take(event) {
      const writing = writes.get(cacheKey(event.object.metadata))
      if (writing === undefined) pass(event, false)
      else writing.held.push(event)
    },
    holdsBack: (resourceVersion) =>
      [...writes.values()].some(({ held }) =>
        held.some(({ object }) => compareResourceVersions(object.metadata.resourceVersion, resourceVersion) <= 0),
      ),
  }
}
