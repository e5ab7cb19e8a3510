import type { Clock } from '../../lib/clock.ts'
import { createBackoff } from './backoff.ts'
import { createCompact } from './compact.ts'
import { createDelivery, type OnChange } from './delivery.ts'
import { isAnswerTooLarge, isGone, isTimeout, isTransportError, KubeError } from './errors.ts'
import { type KubeLog, silentLog } from './log.ts'
import { cacheKey, compareResourceVersions, type KubeObject } from './objects.ts'
import { createPageSize, type PageSizeOptions } from './page-size.ts'
import type { ListPage, ResourceClient, WatchEvent } from './resource-client.ts'
import { createStore, type Indexer } from './store.ts'

export interface InformerMetrics {
  listed?(count: number, ms: number): void
  event?(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'): void
  /** `reason`: ended (by the server), cut, idle, relist, expired (410), failed. */
  watchEnded?(reason: string): void
  failed?(error: unknown): void
}

export interface InformerOptions<T extends KubeObject> {
  readonly client: ResourceClient<T>
  readonly clock: Clock
  readonly log?: KubeLog
  readonly random?: () => number
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** How large the pages of a list are. */
  readonly page?: PageSizeOptions
  /**
   * What of an object is kept; by default all but its metadata, of which only what every object is known by (`createCompact`). It must copy, not change: the
   * caller of `put` goes on with its own.
   */
  readonly transform?: (object: T) => T
  /** Named ways to find objects; see `byIndex`. */
  readonly indexers?: Readonly<Record<string, Indexer<T>>>
  /** Told of each change, after the cache has it. It should only enqueue keys. One that throws is told again later (the changes merged). */
  readonly onChange?: OnChange<T>
  /** A watch that has been silent for so long, ms, is cut and resumed. The server sends bookmarks about every minute. */
  readonly idleWatchMs?: number
  /** List afresh now and then, ms, against bugs that nobody knows of. Never by default. */
  readonly relistMs?: number
  /** Waits between failures, ms. */
  readonly backoff?: { readonly baseMs: number; readonly maxMs: number }
  readonly metrics?: InformerMetrics
}

/** A cache of one kind of objects that follows the API server. */
export interface Informer<T extends KubeObject> {
  /** Follows until aborted; then resolves. Never rejects: every failure is logged, backed off from and repaired. */
  run(signal: AbortSignal): Promise<void>
  /** Whether a whole list has been taken in. Stays true. */
  hasSynced(): boolean
  whenSynced(signal: AbortSignal): Promise<void>
  get(key: string): T | undefined
  list(): Iterable<T>
  byIndex(index: string, value: string): T[]
  readonly size: number
  /** When the server last gave a sign of life, monotonic ms; undefined before the first. */
  readonly lastEventAt: number | undefined
  /** Takes in the answer to an own write without waiting for the watch: never in place of something newer, never after a deletion that is already known. */
  put(object: T): void
}

/** Why a watch was cut by ourselves. */
class Cut extends Error {
  readonly reason: 'idle' | 'relist'
  constructor(reason: Cut['reason']) {
    super(`the watch was cut: ${reason}`)
    this.reason = reason
  }
}

const WATCH_SECONDS = 300

export function createInformer<T extends KubeObject>(options: InformerOptions<T>): Informer<T> {
  const { client, clock, log = silentLog, random = Math.random, idleWatchMs = 150_000, relistMs, metrics = {} } = options
  const { namespace, labelSelector, fieldSelector } = options
  const transform = options.transform ?? createCompact()
  const scope = {
    ...(namespace !== undefined && { namespace }),
    ...(labelSelector !== undefined && { labelSelector }),
    ...(fieldSelector !== undefined && { fieldSelector }),
  }
  const backoffOptions = { baseMs: 500, maxMs: 10_000, ...options.backoff, random }
  const backoff = createBackoff(backoffOptions)
  const pageSize = createPageSize(options.page)
  const resource = client.definition.plural
  const store = createStore<T>(options.indexers)
  const deliver = createDelivery({ store, onChange: options.onChange ?? (() => {}), clock, log, backoff: createBackoff(backoffOptions) })

  /** Up to where the cache follows the server; '' before the first list. */
  let position = ''
  let mustList = true
  let listedAt = 0
  let lastEventAt: number | undefined
  let heard = 0
  const synced = Promise.withResolvers<void>()
  let hasSynced = false

  const add = (key: string, object: T, own: boolean): void => {
    const old = store.get(key)
    store.set(key, object)
    deliver.changed(key, old, own)
  }

  const remove = (key: string, old: T): void => {
    store.delete(key)
    deliver.changed(key, old, false)
  }

  const isNews = (object: T, old: T | undefined): boolean =>
    old === undefined || compareResourceVersions(object.metadata.resourceVersion, old.metadata.resourceVersion) > 0

  /** The next page, as many objects as make a moderate answer. @throws KubeError `AnswerTooLarge` when not even one object is taken. */
  async function nextPage(token: string | undefined, after: string, signal: AbortSignal): Promise<ListPage<T>> {
    // Ends: each turn asks for fewer objects, and one is the last.
    for (;;) {
      const { limit, maxBytes } = pageSize
      try {
        const asked = { ...scope, limit, ...(maxBytes !== undefined && { maxBytes }), ...(token !== undefined && { continue: token }) }
        const page = await client.list(asked, signal)
        pageSize.took(page.items.length, page.bytes)
        return page
      } catch (error) {
        if (!isAnswerTooLarge(error)) {
          // A server that gives no answer in time may have too much to put together: the next attempt asks for less.
          if (isTimeout(error)) pageSize.shrink()
          throw error
        }
        if (!pageSize.shrink())
          throw new KubeError(error.status, error.reason, `list ${resource}: the object after "${after}" is too large: ${error.message}`)
        log.debug({ resource, from: limit, to: pageSize.limit }, 'a page of the list is too large: asking for a smaller one')
      }
    }
  }

  /**
   * Takes in a list, page by page: memory holds one page beside the cache. The pages are one snapshot, taken at the list's resource version. What the
   * cache has beyond that (an own write) stays. A list older than what was already seen, of a server restored from a backup, is refused by the client.
   */
  async function takeList(signal: AbortSignal): Promise<void> {
    const startedAt = clock.monotonicMs()
    const seen = new Set<string>()
    let at: string | undefined
    let token: string | undefined
    let last = ''
    do {
      const page: ListPage<T> = await nextPage(token, last, signal)
      at ??= page.resourceVersion
      for (const item of page.items) {
        const key = cacheKey(item.metadata)
        seen.add(key)
        last = key
        if (isNews(item, store.get(key))) add(key, transform(item), false)
      }
      token = page.continue
      lastEventAt = clock.monotonicMs()
    } while (token !== undefined)
    for (const [key, object] of store.entries())
      if (!seen.has(key) && compareResourceVersions(object.metadata.resourceVersion, at) <= 0) remove(key, object)
    position = at
    listedAt = clock.monotonicMs()
    mustList = false
    metrics.listed?.(seen.size, listedAt - startedAt)
    if (!hasSynced) {
      hasSynced = true
      synced.resolve()
    }
  }

  const onEvent = (event: WatchEvent<T>): void => {
    const { resourceVersion } = event.object.metadata
    lastEventAt = clock.monotonicMs()
    heard++
    backoff.reset()
    metrics.event?.(event.type)
    if (event.type !== 'BOOKMARK') {
      const key = cacheKey(event.object.metadata)
      const old = store.get(key)
      if (event.type !== 'DELETED') {
        if (isNews(event.object, old)) add(key, transform(event.object), false)
      } else if (old !== undefined && compareResourceVersions(resourceVersion, old.metadata.resourceVersion) >= 0) remove(key, old)
    }
    position = resourceVersion
  }

  /** One watch, until it ends. */
  async function follow(signal: AbortSignal): Promise<void> {
    const cut = new AbortController()
    const over = new AbortController()
    let heardAt = clock.monotonicMs()
    const onBytes = (): void => {
      heardAt = clock.monotonicMs()
    }
    const guard = async (): Promise<void> => {
      for (;;) {
        const now = clock.monotonicMs()
        const relistIn = relistMs === undefined ? Number.POSITIVE_INFINITY : listedAt + relistMs - now
        const idleIn = heardAt + idleWatchMs - now
        if (relistIn <= 0) return cut.abort(new Cut('relist'))
        if (idleIn <= 0) return cut.abort(new Cut('idle'))
        await clock.sleep(Math.min(idleIn, relistIn), over.signal)
      }
    }
    guard().catch(() => {})
    try {
      const timeoutSeconds = Math.round(WATCH_SECONDS * (1 + random()))
      await client.watch({ ...scope, resourceVersion: position, timeoutSeconds }, onEvent, AbortSignal.any([signal, cut.signal]), onBytes)
    } finally {
      over.abort()
    }
  }

  /** What a failure means: whether the cache can go on from where it was, and how long the server asks to wait. */
  function afterFailure(error: unknown): { ended: string; askedMs: number } {
    // Dropped or silent connections lose nothing: the next watch goes on from the position.
    if (error instanceof Cut && error.reason === 'idle') return { ended: 'idle', askedMs: 0 }
    if (isTransportError(error)) {
      metrics.failed?.(error)
      return { ended: 'cut', askedMs: 0 }
    }
    mustList = true
    if (error instanceof Cut) return { ended: error.reason, askedMs: 0 }
    if (isGone(error)) return { ended: 'expired', askedMs: 0 }
    metrics.failed?.(error)
    return { ended: 'failed', askedMs: error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0 }
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const before = heard
      let ended = 'ended'
      let askedMs = 0
      let failure: unknown
      try {
        if (mustList) await takeList(signal)
        // A server restored from a backup meanwhile would wait in silence until it is as far as the position, and pass on nothing of what came before: what
        // it is asked first tells (the client refuses an answer that is older than what was seen).
        else await client.list({ ...scope, limit: 1 }, signal)
        await follow(signal)
      } catch (error) {
        if (signal.aborted) break
        failure = error
        ;({ ended, askedMs } = afterFailure(error))
      }
      metrics.watchEnded?.(ended)
      // A watch that brought nothing, not even a bookmark, is not tried again at once, however it ended.
      const waitMs = (heard === before && ended !== 'relist') || ended === 'failed' ? Math.max(backoff.next(), askedMs) : askedMs
      log[ended === 'failed' ? 'warn' : 'debug'](
        { resource, ended, ...(failure !== undefined && { err: failure }), waitMs: Math.round(waitMs), relist: mustList },
        'the watch ended',
      )
      if (waitMs > 0) await clock.sleep(waitMs, signal).catch(() => {})
    }
    deliver.stop()
  }

  return {
    run,
    hasSynced: () => hasSynced,
    whenSynced: (signal) => abortable(synced.promise, signal),
    get: (key) => store.get(key),
    list: () => store.values(),
    byIndex: (index, value) => store.byIndex(index, value),
    get size() {
      return store.size
    },
    get lastEventAt() {
      return lastEventAt
    },
    put(object) {
      const key = cacheKey(object.metadata)
      const old = store.get(key)
      // Absent, and the watch is already past this version: it was deleted since.
      const isPast = old === undefined && compareResourceVersions(object.metadata.resourceVersion, position) <= 0
      if (!isPast && isNews(object, old)) add(key, transform(object), true)
    },
  }
}

function abortable(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason)
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(signal.reason)
  signal.addEventListener('abort', onAbort)
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', onAbort))
}
