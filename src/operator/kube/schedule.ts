import type { Clock } from '../../lib/clock.ts'
import { createHeap } from './heap.ts'

/** A key that waits for its time. */
interface Planned<K> {
  readonly key: K
  readonly dueAt: number
  priority: number
}
const dueAtOf = ({ dueAt }: { readonly dueAt: number }): number => dueAt

/** setTimeout takes 31 bits; an hour is as good. */
const LONGEST_SLEEP_MS = 3_600_000

/** Keys that wait for their time, with one timer for all. */
export interface Schedule<K extends string> {
  /** After `ms`. Of several plans for a key the earliest counts, with the highest priority of all. */
  plan(key: K, ms: number, priority: number): void
  /** Drops the plan. @returns its priority; undefined where there was none */
  drop(key: K): number | undefined
  close(): void
  readonly size: number
}

/** @param onDue told of each key whose time has come, once */
export function createSchedule<K extends string>(clock: Clock, onDue: (key: K, priority: number) => void): Schedule<K> {
  const waiting = new Map<K, Planned<K>>()
  /** May hold entries that no longer count: `waiting` tells. */
  let heap = createHeap<Planned<K>>(dueAtOf)
  let timer: { readonly dueAt: number; readonly stop: AbortController } | undefined
  let isClosed = false

  const release = (): void => {
    const now = clock.monotonicMs()
    for (let next = heap.peek(); next !== undefined && next.dueAt <= now; next = heap.peek()) {
      heap.pop()
      if (waiting.get(next.key) !== next) continue
      waiting.delete(next.key)
      onDue(next.key, next.priority)
    }
    setTimer()
  }

  /** For the earliest key. */
  const setTimer = (): void => {
    const next = heap.peek()
    if (isClosed || next === undefined || (timer !== undefined && timer.dueAt <= next.dueAt)) return
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

  return {
    plan(key, ms, priority) {
      const known = waiting.get(key)
      // Whole milliseconds: V8 keeps a fraction in a box of its own, for each of ten thousand keys.
      const dueAt = Math.ceil(clock.monotonicMs() + ms)
      const urgency = Math.max(priority, known?.priority ?? priority)
      if (known !== undefined && known.dueAt <= dueAt) {
        known.priority = urgency
        return
      }
      const planned = { key, dueAt, priority: urgency }
      waiting.set(key, planned)
      heap.push(planned)
      if (heap.size > 2 * waiting.size + 1024) {
        heap = createHeap<Planned<K>>(dueAtOf)
        for (const entry of waiting.values()) heap.push(entry)
      }
      setTimer()
    },

    drop(key) {
      const planned = waiting.get(key)
      waiting.delete(key)
      return planned?.priority
    },

    close() {
      isClosed = true
      timer?.stop.abort()
      waiting.clear()
    },

    get size() {
      return waiting.size
    },
  }
}
