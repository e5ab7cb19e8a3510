import type { Clock } from '../../lib/clock.ts'
import { backoffMs } from './backoff.ts'
import { createLanes } from './lanes.ts'
import { refOf } from './objects.ts'
import { createSchedule } from './schedule.ts'

/** New work and money in flight go before polls. */
export const Priority = { high: 1, low: 0 } as const

export interface AddOptions {
  /** Higher goes first; `Priority.low` by default. */
  readonly priority?: number
}

export interface QueueStats {
  /** Waiting for a worker. */
  readonly ready: number
  /** Waiting for their time. */
  readonly delayed: number
  readonly processing: number
  /** Being processed, and to be processed once more. */
  readonly dirty: number
}

/**
 * Keys for workers, with the guarantees of client-go's work queue: a key waits at most once, and is never processed by two at a time; a key added while
 * it is processed comes again when it is done. Unlike there, the namespaces take turns (see lanes.ts): one that floods the queue delays itself. Keys
 * without a namespace count as one.
 */
export interface Queue<K extends string> {
  /** As soon as possible. What was planned for later by `addAfter` is dropped: whoever processes the key now plans anew. */
  add(key: K, options?: AddOptions): void
  /** After `ms`. Of several the earliest counts. */
  addAfter(key: K, ms: number, options?: AddOptions): void
  /** After a wait that doubles with each call since `forget`. `atLeastMs`: what a server asked for. Returns the wait in ms. */
  addBackoff(key: K, options?: AddOptions & { readonly atLeastMs?: number }): number
  /** The key's failures are over. */
  forget(key: K): void
  failures(key: K): number
  /** The next key, which must be given back by `done`; undefined after `shutdown`. Rejects with the signal's reason. */
  get(signal: AbortSignal): Promise<K | undefined>
  done(key: K): void
  /** Drops what waits; keys being processed may still be `done`. */
  shutdown(): void
  stats(): QueueStats
}

export interface QueueOptions<K> {
  readonly clock: Clock
  /** Whose a key is: these take turns. By default the key's namespace. */
  readonly namespaceOf?: (key: K) => string
  readonly baseDelayMs?: number
  readonly maxDelayMs?: number
  readonly random?: () => number
  /** How many keys of one namespace are processed at a time, so that one whose reconciles are slow doesn't take all workers. No bound by default. */
  readonly mostOfOneNamespace?: number
  /** For metrics: how long a key waited for a worker, ms, from when it was due. */
  readonly onPicked?: (waitedMs: number, priority: number) => void
}

/** Keys of one namespace, or of what stands for one, take turns with those of others. */
export type Turns = Required<Pick<QueueOptions<string>, 'namespaceOf' | 'mostOfOneNamespace'>>

interface Waiter<K> {
  readonly resolve: (key: K | undefined) => void
}

export function createQueue<K extends string>({
  clock,
  baseDelayMs = 500,
  maxDelayMs = 300_000,
  random,
  namespaceOf = (key) => refOf(key).namespace ?? '',
  mostOfOneNamespace,
  onPicked,
}: QueueOptions<K>): Queue<K> {
  const ready = createLanes<K>({
    namespaceOf,
    ...(mostOfOneNamespace !== undefined && { mostOfOneNamespace }),
  })
  const processing = new Set<K>()
  const dirty = new Map<K, number>()
  const failures = new Map<K, number>()
  const waiters = new Set<Waiter<K>>()
  const closing = new AbortController()

  const pick = (): K | undefined => {
    const next = ready.shift()
    if (next === undefined) return undefined
    processing.add(next.key)
    onPicked?.(clock.monotonicMs() - next.since, next.priority)
    return next.key
  }

  const enqueue = (key: K, priority: number): void => {
    if (processing.has(key)) {
      dirty.set(key, Math.max(priority, dirty.get(key) ?? Number.NEGATIVE_INFINITY))
      return
    }
    ready.push(key, priority, clock.monotonicMs())
    serve()
  }

  const schedule = createSchedule<K>(clock, enqueue)

  /** Gives what may run to those who wait for it. */
  const serve = (): void => {
    for (const waiter of waiters) {
      const key = pick()
      if (key === undefined) return
      waiters.delete(waiter)
      waiter.resolve(key)
    }
  }

  const add = (key: K, { priority = Priority.low }: AddOptions = {}): void => {
    if (closing.signal.aborted) return
    // Lets go of what was planned, but not of how urgent it was.
    enqueue(key, Math.max(priority, schedule.drop(key) ?? priority))
  }

  const addAfter = (key: K, ms: number, { priority = Priority.low }: AddOptions = {}): void => {
    if (closing.signal.aborted) return
    if (ms > 0) schedule.plan(key, ms, priority)
    else add(key, { priority })
  }

  return {
    add,
    addAfter,
    addBackoff(key, { atLeastMs = 0, ...options } = {}) {
      const count = (failures.get(key) ?? 0) + 1
      failures.set(key, count)
      const ms = Math.max(atLeastMs, backoffMs(count, { baseMs: baseDelayMs, maxMs: maxDelayMs, random }))
      addAfter(key, ms, options)
      return ms
    },
    forget: (key) => {
      failures.delete(key)
    },
    failures: (key) => failures.get(key) ?? 0,
    get(signal) {
      if (signal.aborted) return Promise.reject(signal.reason)
      if (closing.signal.aborted) return Promise.resolve(undefined)
      const key = pick()
      if (key !== undefined) return Promise.resolve(key)
      return new Promise((resolve, reject) => {
        const waiter: Waiter<K> = {
          resolve: (picked) => {
            signal.removeEventListener('abort', onAbort)
            resolve(picked)
          },
        }
        const onAbort = (): void => {
          waiters.delete(waiter)
          reject(signal.reason)
        }
        signal.addEventListener('abort', onAbort, { once: true })
        waiters.add(waiter)
      })
    },
    done(key) {
      if (!processing.delete(key)) return
      ready.release(key)
      const priority = dirty.get(key)
      dirty.delete(key)
      if (closing.signal.aborted) return
      if (priority === undefined) serve()
      else enqueue(key, priority)
    },
    shutdown() {
      closing.abort()
      schedule.close()
      dirty.clear()
      for (const waiter of waiters) waiter.resolve(undefined)
      waiters.clear()
    },
    stats: () => ({ ready: ready.size, delayed: schedule.size, processing: processing.size, dirty: dirty.size }),
  }
}
