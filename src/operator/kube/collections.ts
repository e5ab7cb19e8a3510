import type { Clock } from '../../lib/clock.ts'
import type { KubeApi } from './api.ts'
import { createCompact } from './compact.ts'
import type { OnChange } from './delivery.ts'
import { createInformer, type Informer, type InformerOptions } from './informer.ts'
import type { Kept } from './kept-metadata.ts'
import type { KubeLog } from './log.ts'
import type { KubeObject } from './objects.ts'
import type { ResourceClient, ResourceDefinition } from './resource-client.ts'

/** An informer without what only its maker does: running it. */
export type Cache<T extends KubeObject> = Omit<Informer<T>, 'run' | 'client'>
export interface CacheOptions<T extends KubeObject>
  extends Pick<InformerOptions<T>, 'transform' | 'indexers' | 'ranks' | 'tallies' | 'weights' | 'isSettled'> {
  /** What is kept of metadata, by the client and by the cache. By default the client gives all of it, and the cache holds what every object is known by. */
  readonly kept?: Kept
}

/** All objects of one kind: their client, their cache, their changes. */
export interface Collection<T extends KubeObject> {
  readonly client: ResourceClient<T>
  readonly cache: Cache<T>
  /** Tells `listener` of each change from now on, as `InformerOptions.onChange` does. */
  onChange(listener: OnChange<T>): void
}

/** Makes the client and the cache of a kind. */
export type Follow = <T extends KubeObject>(definition: ResourceDefinition, options?: CacheOptions<T>) => Collection<T>

type Followed = Pick<Informer<never>, 'run' | 'hasSynced' | 'whenSynced' | 'size' | 'lastEventAt'>

export interface KubeCollections {
  readonly follow: Follow
  /** The informers of all kinds that are followed, by their plural. */
  readonly informers: readonly (readonly [string, Followed])[]
  /** Plurals of the kinds of which no whole list has been taken in yet. */
  unsynced(): readonly string[]
  whenSynced(signal: AbortSignal): Promise<void>
  /** Follows all until aborted. */
  run(signal: AbortSignal): Promise<void>
}

/** Collections of an API server. Whoever wants to hear of every change subscribes before they run. */
export function createKubeCollections(deps: {
  readonly api: Pick<KubeApi, 'resource'>
  readonly clock: Clock
  readonly log: KubeLog
}): KubeCollections {
  const { api, clock, log } = deps
  const informers: (readonly [string, Followed])[] = []
  return {
    informers,
    follow<T extends KubeObject>(definition: ResourceDefinition, { kept, ...options }: CacheOptions<T> = {}): Collection<T> {
      const client = api.resource<T>(definition, kept === undefined ? {} : { kept })
      const listeners: OnChange<T>[] = []
      const informer = createInformer<T>({
        client,
        clock,
        log,
        transform: createCompact(kept),
        ...options,
        onChange: (key, change) => {
          for (const listener of listeners) listener(key, change)
        },
      })
      informers.push([definition.plural, informer])
      return { client: informer.client, cache: informer, onChange: (listener) => void listeners.push(listener) }
    },
    unsynced: () => informers.filter(([, informer]) => !informer.hasSynced()).map(([plural]) => plural),
    async whenSynced(signal) {
      await Promise.all(informers.map(([, informer]) => informer.whenSynced(signal)))
    },
    async run(signal) {
      await Promise.all(informers.map(([, informer]) => informer.run(signal)))
    },
  }
}
