import type { Clock } from '../../lib/clock.ts'
import { backoffMs } from './backoff.ts'
import { createHeap } from './heap.ts'
import { createLanes } from './lanes.ts'
import { refOf } from './objects.ts'

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

interface Waiter<K> {
  readonly resolve: (key: K | undefined) => void
}

/** A key that waits for its time. */
interface Planned<K> {
  readonly key: K
  readonly dueAt: number
  priority: number
}
const dueAtOf = ({ dueAt }: { readonly dueAt: number }): number => dueAt

/** setTimeout takes 31 bits; an hour is as good. */
const LONGEST_SLEEP_MS = 3_600_000

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
  const delayed = new Map<K, Planned<K>>()
  /** May hold entries that no longer count: `delayed` tells. */
  let schedule = createHeap<Planned<K>>(dueAtOf)
  const failures = new Map<K, number>()
  const waiters = new Set<Waiter<K>>()
  const closing = new AbortController()
  let timer: { readonly dueAt: number; readonly stop: AbortController } | undefined

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
    const planned = delayed.get(key)
    delayed.delete(key)
    enqueue(key, Math.max(priority, planned?.priority ?? priority))
  }

  const release = (): void => {
    const now = clock.monotonicMs()
    for (let next = schedule.peek(); next !== undefined && next.dueAt <= now; next = schedule.peek()) {
      schedule.pop()
      if (delayed.get(next.key) !== next) continue
      delayed.delete(next.key)
      enqueue(next.key, next.priority)
    }
    plan()
  }

  /** Keeps one timer, for the earliest key. */
  const plan = (): void => {
    const next = schedule.peek()
    if (closing.signal.aborted || next === undefined || (timer !== undefined && timer.dueAt <= next.dueAt)) return
    timer?.stop.abort()
    const stop = new AbortController()
    timer = { dueAt: next.dueAt, stop }
    const ms = Math.min(LONGEST_SLEEP_MS, Math.max(0, next.dueAt - clock.monotonicMs()))
    clock.sleep(ms, stop.signal).then(
      () => {
        if (timer?.stop === stop) timer = undefined
        release()
      },
      () => {},
    )
  }

  const addAfter = (key: K, ms: number, { priority = Priority.low }: AddOptions = {}): void => {
    if (closing.signal.aborted) return
    if (!(ms > 0)) {
      add(key, { priority })
      return
    }
    const known = delayed.get(key)
    // Whole milliseconds: V8 keeps a fraction in a box of its own, for each of ten thousand keys.
    const dueAt = Math.ceil(clock.monotonicMs() + ms)
    const urgency = Math.max(priority, known?.priority ?? priority)
    if (known !== undefined && known.dueAt <= dueAt) {
      known.priority = urgency
      return
    }
    const planned = { key, dueAt, priority: urgency }
    delayed.set(key, planned)
    schedule.push(planned)
    if (schedule.size > 2 * delayed.size + 1024) {
      schedule = createHeap<Planned<K>>(dueAtOf)
      for (const entry of delayed.values()) schedule.push(entry)
    }
    plan()
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
      timer?.stop.abort()
      dirty.clear()
      delayed.clear()
      for (const waiter of waiters) waiter.resolve(undefined)
      waiters.clear()
    },
    stats: () => ({ ready: ready.size, delayed: delayed.size, processing: processing.size, dirty: dirty.size }),
  }
}
