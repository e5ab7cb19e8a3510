import type { Clock } from '../../lib/clock.ts'
import type { AddOptions, Queue } from './queue.ts'

/** Beyond so many keys those that are long past are dropped. */
const MOST = 1_000

/**
 * A queue for keys that are woken by many: the first is taken at once, and what follows within `everyMs` (ms of monotonic time) is one more look at its end.
 * What is added after a wait is passed on as it is.
 */
export function paced<K extends string>(
  queue: Pick<Queue<K>, 'add' | 'addAfter'>,
  { clock, everyMs }: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly everyMs: number },
): Pick<Queue<K>, 'add' | 'addAfter'> {
  /** When the latest look at a key was, or is to be. */
  const latest = new Map<K, number>()

  function forgetPast(now: number): void {
    if (latest.size < MOST) return
    for (const [key, at] of latest) if (now - at >= everyMs) latest.delete(key)
  }

  return {
    add(key: K, options: AddOptions = {}) {
      const now = clock.monotonicMs()
      const at = latest.get(key)
      if (at === undefined || now - at >= everyMs) {
        forgetPast(now)
        latest.set(key, now)
        queue.add(key, options)
        return
      }
      const due = at > now ? at : at + everyMs
      latest.set(key, due)
      queue.addAfter(key, due - now, options)
    },
    addAfter: (key, ms, options) => queue.addAfter(key, ms, options),
  }
}
