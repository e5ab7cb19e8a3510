import type { Delivery } from './delivery.ts'
import { cacheKey, compareResourceVersions, type KubeObject } from './objects.ts'
import type { ListPage, WatchEvent } from './resource-client.ts'
import type { Store } from './store.ts'

/** Keeps a store as the API server has it, by lists, by a watch and by the answers to own writes: whichever is newer counts. */
export interface Replica<T extends KubeObject> {
  /** Up to where the store follows the server; '' before the first list. */
  readonly position: string
  /**
   * Takes in a whole list, page by page: memory holds one page beside the store. What the store has beyond the list's resource version (an own write) stays.
   * A list older than what was already seen, of a server restored from a backup, is refused by the client. @returns how many objects it had
   */
  takeList(pages: AsyncIterable<ListPage<T>>, onPage: () => void): Promise<number>
  /** `own`: it shows a write of this process. */
  takeEvent(event: Exclude<WatchEvent<T>, { type: 'BOOKMARK' }>, own: boolean): void
  /** The store follows the server up to this version, but for events that are still to be taken in. */
  reached(resourceVersion: string): void
  /** Takes in the answer to an own write. */
  put(object: T): void
}

export function createReplica<T extends KubeObject>(
  store: Pick<Store<T>, 'get' | 'set' | 'delete' | 'keys'>,
  /** What of an object is kept. */
  transform: (object: T) => T,
  deliver: Pick<Delivery<T>, 'changed'>,
): Replica<T> {
  let position = ''
  /** Of the last list. */
  let listed = ''

  const add = (key: string, object: T, own: boolean): void => {
    const old = store.get(key)
    store.set(key, transform(object))
    deliver.changed(key, old, own)
  }

  const remove = (key: string, old: T): void => {
    store.delete(key)
    deliver.changed(key, old, false)
  }

  const isNews = (object: T, old: T | undefined): boolean =>
    old === undefined || compareResourceVersions(object.metadata.resourceVersion, old.metadata.resourceVersion) > 0

  return {
    get position() {
      return position
    },

    async takeList(pages, onPage) {
      const seen = new Set<string>()
      let at = ''
      for await (const page of pages) {
        // The same for all pages of one list.
        at ||= page.resourceVersion
        for (const item of page.items) {
          const key = cacheKey(item.metadata)
          seen.add(key)
          if (isNews(item, store.get(key))) add(key, item, false)
        }
        onPage()
      }
      for (const key of store.keys()) {
        const object = seen.has(key) ? undefined : store.get(key)
        if (object !== undefined && compareResourceVersions(object.metadata.resourceVersion, at) <= 0) remove(key, object)
      }
      position = at
      listed = at
      return seen.size
    },

    takeEvent({ type, object }, own) {
      const { resourceVersion } = object.metadata
      // It was kept back, and a list has told more since.
      if (listed !== '' && compareResourceVersions(resourceVersion, listed) <= 0) return
      const key = cacheKey(object.metadata)
      const old = store.get(key)
      if (type !== 'DELETED') {
        if (isNews(object, old)) add(key, object, own)
      } else if (old !== undefined && compareResourceVersions(resourceVersion, old.metadata.resourceVersion) >= 0) remove(key, old)
    },

    reached(resourceVersion) {
      position = resourceVersion
    },

    put(object) {
      const key = cacheKey(object.metadata)
      const old = store.get(key)
      // Absent, and the watch is already past this version: it was deleted since.
      const isPast = old === undefined && compareResourceVersions(object.metadata.resourceVersion, position) <= 0
      if (!isPast && isNews(object, old)) add(key, object, true)
    },
  }
}
