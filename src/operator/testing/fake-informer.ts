import type { Clock } from '../../lib/clock.ts'
import { createBackoff } from '../kube/backoff.ts'
import type { Cache, CacheOptions, Collection } from '../kube/collections.ts'
import { createCompact } from '../kube/compact.ts'
import { createDelivery, type OnChange } from '../kube/delivery.ts'
import { silentLog } from '../kube/log.ts'
import { cacheKey, compareResourceVersions, type KubeObject } from '../kube/objects.ts'
import { createStore } from '../kube/store.ts'

/** An informer's cache in memory: it hears of every write at once, unless it is frozen. */
export interface FakeInformer<T extends KubeObject> extends Cache<T> {
  /** While true, it hears nothing of others' writes: a stale cache. */
  frozen: boolean
  /** Hears again, and lists what it has missed. */
  thaw(): void
  readonly onChange: Collection<T>['onChange']
}

/** Where the writes of a collection are told: `revision` is that of the write, a deletion's too. */
export interface Hearing<T extends KubeObject> {
  hear(key: string, object: T | undefined, revision: string): void
}

/** Its store, its indexes, its own writes and its delivery of changes are the real informer's; only the watch is not. */
export function createFakeInformer<T extends KubeObject>(
  server: { list(): Iterable<T>; revision(): string },
  { clock, kept = {}, transform = createCompact(kept), ...held }: CacheOptions<T> & { readonly clock: Clock },
): FakeInformer<T> & Hearing<T> {
  const store = createStore<T>(held)
  const listeners: OnChange<T>[] = []
  const delivery = createDelivery<T>({
    store,
    onChange: (key, change) => {
      for (const listener of listeners) listener(key, change)
    },
    clock,
    log: silentLog,
    backoff: createBackoff({ baseMs: 500, maxMs: 10_000, random: () => 0.5 }),
  })
  /** Up to where it follows the server. */
  let position = ''

  const set = (key: string, object: T, own: boolean): void => {
    const old = store.get(key)
    store.set(key, transform(structuredClone(object)))
    delivery.changed(key, old, own)
  }
  const remove = (key: string): void => {
    const old = store.get(key)
    if (old === undefined) return
    store.delete(key)
    delivery.changed(key, old, false)
  }
  const isNews = (object: T, old: T | undefined) =>
    old === undefined || compareResourceVersions(object.metadata.resourceVersion, old.metadata.resourceVersion) > 0
  const relist = (): void => {
    const seen = new Set<string>()
    for (const object of server.list()) {
      const key = cacheKey(object.metadata)
      seen.add(key)
      if (isNews(object, store.get(key))) set(key, object, false)
    }
    for (const key of [...store.keys()]) if (!seen.has(key)) remove(key)
    position = server.revision()
  }
  relist()

  const self: FakeInformer<T> & Hearing<T> = {
    frozen: false,
    thaw() {
      self.frozen = false
      relist()
    },
    onChange: (listener) => void listeners.push(listener),
    hear(key, object, revision) {
      if (self.frozen) return
      position = revision
      if (object === undefined) remove(key)
      else if (isNews(object, store.get(key))) set(key, object, false)
    },
    hasSynced: () => true,
    whenSynced: async () => {},
    get: store.get,
    list: store.values,
    unsettled: store.unsettled,
    byIndex: store.byIndex,
    atLeast: store.atLeast,
    tally: store.tally,
    get size() {
      return store.size
    },
    get lastEventAt() {
      return clock.monotonicMs()
    },
    put(object) {
      const key = cacheKey(object.metadata)
      const old = store.get(key)
      const isPast = old === undefined && compareResourceVersions(object.metadata.resourceVersion, position) <= 0
      if (!isPast && isNews(object, old)) set(key, object, true)
    },
    hasHeard: (resourceVersion) => compareResourceVersions(resourceVersion, position) <= 0,
  }
  return self
}
