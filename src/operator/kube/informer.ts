import type { Clock } from '../../lib/clock.ts'
import { abortable } from '../../lib/shared-call.ts'
import { createBackoff } from './backoff.ts'
import { createCompact } from './compact.ts'
import { createDelivery, type OnChange } from './delivery.ts'
import { endingOf, guardWatch } from './guarded-watch.ts'
import { type KubeLog, silentLog } from './log.ts'
import { compareResourceVersions, type KubeObject } from './objects.ts'
import { createOwnWrites } from './own-writes.ts'
import { createPageSize, type PageSizeOptions } from './page-size.ts'
import { createPagedList } from './paged-list.ts'
import { createReplica } from './replica.ts'
import type { ResourceClient, WatchEvent } from './resource-client.ts'
import { createStore, type Store, type StoreOptions } from './store.ts'

export interface InformerMetrics {
  listed?(count: number, ms: number): void
  event?(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'): void
  /** `reason`: ended (by the server), cut, idle, relist, expired (410), failed. */
  watchEnded?(reason: string): void
  failed?(error: unknown): void
}

/** What the store is told of its objects: how they are found and counted, and which are settled. */
type HeldBy<T> = Pick<StoreOptions<T>, 'indexers' | 'ranks' | 'tallies' | 'weights' | 'isSettled'>

export interface InformerOptions<T extends KubeObject> extends HeldBy<T> {
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
export interface Informer<T extends KubeObject> extends Pick<Store<T>, 'get' | 'unsettled' | 'byIndex' | 'atLeast' | 'tally'> {
  /** For writes: what the watch shows of them is known as this process' own. */
  readonly client: ResourceClient<T>
  /** Follows until aborted; then resolves. Never rejects: every failure is logged, backed off from and repaired. */
  run(signal: AbortSignal): Promise<void>
  /** Whether a whole list has been taken in. Stays true. */
  hasSynced(): boolean
  whenSynced(signal: AbortSignal): Promise<void>
  list(): Iterable<T>
  readonly size: number
  /** When the server last gave a sign of life, monotonic ms; undefined before the first. */
  readonly lastEventAt: number | undefined
  /** Takes in the answer to an own write without waiting for the watch: never in place of something newer, never after a deletion that is already known. */
  put(object: T): void
  /** Whether it shows all that was written up to this version. What it lacks then was not there yet. */
  hasHeard(resourceVersion: string): boolean
}

const WATCH_SECONDS = 300

export function createInformer<T extends KubeObject>(options: InformerOptions<T>): Informer<T> {
  const { client, clock, log = silentLog, random = Math.random, idleWatchMs = 150_000, relistMs, metrics = {} } = options
  const { namespace, labelSelector, fieldSelector } = options
  const scope = {
    ...(namespace !== undefined && { namespace }),
    ...(labelSelector !== undefined && { labelSelector }),
    ...(fieldSelector !== undefined && { fieldSelector }),
  }
  const backoffOptions = { baseMs: 500, maxMs: 10_000, ...options.backoff, random }
  const backoff = createBackoff(backoffOptions)
  const resource = client.definition.plural
  const store = createStore<T>(options)
  const deliver = createDelivery({ store, onChange: options.onChange ?? (() => {}), clock, log, backoff: createBackoff(backoffOptions) })
  const replica = createReplica(store, options.transform ?? createCompact(), deliver)
  const own = createOwnWrites(client, replica.takeEvent)
  const pages = createPagedList({ client, scope, pageSize: createPageSize(options.page), log })

  let mustList = true
  let listedAt = 0
  let lastEventAt: number | undefined
  let heard = 0
  const synced = Promise.withResolvers<void>()
  let hasSynced = false

  async function takeList(signal: AbortSignal): Promise<void> {
    const startedAt = clock.monotonicMs()
    const count = await replica.takeList(pages(signal), () => {
      lastEventAt = clock.monotonicMs()
    })
    listedAt = clock.monotonicMs()
    mustList = false
    metrics.listed?.(count, listedAt - startedAt)
    if (!hasSynced) {
      hasSynced = true
      synced.resolve()
    }
  }

  const onEvent = (event: WatchEvent<T>): void => {
    lastEventAt = clock.monotonicMs()
    heard++
    backoff.reset()
    metrics.event?.(event.type)
    if (event.type !== 'BOOKMARK') own.take(event)
    replica.reached(event.object.metadata.resourceVersion)
  }

  /** One watch, until it ends. */
  async function follow(signal: AbortSignal): Promise<void> {
    const relistAt = relistMs === undefined ? Number.POSITIVE_INFINITY : listedAt + relistMs
    const timeoutSeconds = Math.round(WATCH_SECONDS * (1 + random()))
    const asked = { ...scope, resourceVersion: replica.position, timeoutSeconds }
    const watch = (guarded: AbortSignal, onBytes: () => void) => client.watch(asked, onEvent, guarded, onBytes)
    await guardWatch(watch, { clock, idleMs: idleWatchMs, relistAt }, signal)
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
        const ending = endingOf(error)
        ;({ ended, askedMs } = ending)
        mustList ||= ending.mustList
        if (ending.isFailure) metrics.failed?.(error)
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
    client: own.client,
    run,
    hasSynced: () => hasSynced,
    async whenSynced(signal) {
      signal.throwIfAborted()
      await abortable(synced.promise, signal)
    },
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
      return lastEventAt
    },
    put: (object) => replica.put(object),
    hasHeard: (resourceVersion) =>
      hasSynced && compareResourceVersions(resourceVersion, replica.position) <= 0 && !own.holdsBack(resourceVersion),
  }
}
