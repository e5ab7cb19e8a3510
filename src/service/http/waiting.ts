import type { Clock } from '../../lib/clock.ts'
import { abortable } from '../../lib/shared-call.ts'
import type { Store } from '../store/database.ts'

/** Where changes of resources are told, each by the resource's id. */
const channel = 'staking_resources'
/** So often somebody who waits looks again while the database's notices can't be heard. */
const deafMs = 2_000
/** After notices may have been missed, those who wait look within this time, and not all at once. */
const spreadMs = 1_000

/** Who waits for a change of a resource. */
export interface Place {
  /** Resolves when the resource may have changed since the last call, or since the place was taken; else after `ms`, or when waiting is over. Never throws. */
  next(ms: number, signal: AbortSignal): Promise<void>
  leave(): void
}

export interface Waiting {
  /** A place for a caller to wait for a resource in; undefined when there is none. */
  enter(keyId: string, resourceId: string): Place | undefined
  /** Aborted: nobody waits from now on. */
  readonly over: AbortSignal
  readonly clock: Clock
  count(): number
}

/** Places to wait in, so many in all and for each API key. Nobody in them holds anything of the database. */
export function createWaiting(deps: {
  readonly store: Pick<Store, 'listen'>
  readonly clock: Clock
  readonly max: number
  readonly maxPerKey: number
  readonly over: AbortSignal
  readonly random?: () => number
}): Waiting {
  const { store, clock, max, maxPerKey, over, random = Math.random } = deps
  const wakes = new Map<string, Set<(withinMs: number) => void>>()
  const byKey = new Map<string, number>()
  let count = 0

  const notices = store.listen(channel, {
    onNotice: (id) => {
      for (const wake of wakes.get(id) ?? []) wake(0)
    },
    onGap: () => {
      for (const all of wakes.values()) for (const wake of all) wake(random() * spreadMs)
    },
    isAcknowledged: false,
  })

  function enter(keyId: string, resourceId: string): Place | undefined {
    const ofKey = byKey.get(keyId) ?? 0
    if (over.aborted || count >= max || ofKey >= maxPerKey) return undefined
    count++
    byKey.set(keyId, ofKey + 1)
    let woken = Promise.withResolvers<number>()
    const wake = (withinMs: number) => woken.resolve(withinMs)
    const all = wakes.get(resourceId) ?? new Set()
    wakes.set(resourceId, all.add(wake))
    let isIn = true

    return {
      async next(ms, signal) {
        const done = new AbortController()
        const ends = AbortSignal.any([signal, over, done.signal])
        const late = clock.sleep(notices.hears() ? ms : Math.min(ms, deafMs), ends).then(() => 0)
        late.catch(() => undefined)
        try {
          const withinMs = await abortable(Promise.race([woken.promise, late]), ends)
          if (withinMs > 0) await clock.sleep(Math.min(withinMs, ms), ends)
        } catch {
          // Over, or the caller has left.
        } finally {
          done.abort('over')
          woken = Promise.withResolvers()
        }
      },
      leave() {
        if (!isIn) return
        isIn = false
        count--
        const left = (byKey.get(keyId) ?? 1) - 1
        if (left === 0) byKey.delete(keyId)
        else byKey.set(keyId, left)
        all.delete(wake)
        if (all.size === 0) wakes.delete(resourceId)
      },
    }
  }

  return { enter, over, clock, count: () => count }
}
