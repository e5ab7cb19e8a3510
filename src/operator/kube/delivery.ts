import type { Clock } from '../../lib/clock.ts'
import type { Backoff } from './backoff.ts'
import type { KubeLog } from './log.ts'
import type { KubeObject } from './objects.ts'
import type { Store } from './store.ts'

/**
 * A change of the cache. `own` marks one that came by `put`, from this process' own write: its author need not be woken, others who look at the object do.
 * An object deleted and made again under its name is told as deleted, then added.
 */
export type Change<T> =
  | { readonly type: 'added'; readonly new: T; readonly own: boolean }
  | { readonly type: 'updated'; readonly old: T; readonly new: T; readonly own: boolean }
  | { readonly type: 'deleted'; readonly old: T; readonly own: boolean }

export type OnChange<T> = (key: string, change: Change<T>) => void

export interface Delivery<T> {
  /** To be called after the store changed; `old` is what it held before. Never throws. */
  changed(key: string, old: T | undefined, own: boolean): void
  stop(): void
}

export interface DeliveryOptions<T extends KubeObject> {
  readonly store: Pick<Store<T>, 'get'>
  readonly onChange: OnChange<T>
  readonly clock: Clock
  readonly log: KubeLog
  readonly backoff: Backoff
}

/**
 * Tells the handler of each change. A handler that throws must neither end the watch nor lose the change, and must not hold up other objects: the key is
 * kept with what the handler last knew of it, and the difference to what then stands in the store is told after a back-off.
 */
export function createDelivery<T extends KubeObject>({ store, onChange, clock, log, backoff }: DeliveryOptions<T>): Delivery<T> {
  const undelivered = new Map<string, T | undefined>()
  const stopping = new AbortController()
  let retrying = false

  const tell = (key: string, old: T | undefined, own: boolean): void => {
    const now = store.get(key)
    if (old === undefined) {
      if (now !== undefined) onChange(key, { type: 'added', new: now, own })
    } else if (now === undefined) onChange(key, { type: 'deleted', old, own })
    else if (now.metadata.uid === old.metadata.uid) onChange(key, { type: 'updated', old, new: now, own })
    else {
      onChange(key, { type: 'deleted', old, own })
      onChange(key, { type: 'added', new: now, own })
    }
  }

  const attempt = (key: string, old: T | undefined, own: boolean): void => {
    try {
      tell(key, old, own)
    } catch (error) {
      undelivered.set(key, old)
      log.error({ key, err: error }, 'the handler of changes failed: it will be told again')
    }
  }

  const retry = async (): Promise<void> => {
    if (retrying) return
    retrying = true
    try {
      while (undelivered.size > 0) {
        await clock.sleep(backoff.next(), stopping.signal)
        for (const [key, old] of [...undelivered]) {
          undelivered.delete(key)
          attempt(key, old, false)
        }
      }
      backoff.reset()
    } finally {
      retrying = false
    }
  }

  return {
    changed(key, old, own) {
      // Told with the retry, in order.
      if (undelivered.has(key)) return
      attempt(key, old, own)
      if (undelivered.size > 0) retry().catch(() => {})
    },
    stop: () => stopping.abort(),
  }
}
