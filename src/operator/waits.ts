import type { Clock } from '../lib/clock.ts'
import { type Condition, findCondition, OBSERVED } from '../resources/conditions.ts'
import { type Caches, type SagaName, sagasOf } from './caches.ts'
import type { Collection } from './kube/collections.ts'
import { cacheKey, type KubeObject } from './kube/objects.ts'
import type { SagaCollection, SagaResource } from './saga-collection.ts'

/** One thing that a resource waits for, as its conditions say. */
export interface Standing {
  /** Condition that says so. */
  readonly type: string
  readonly reason: string
}

/** The resource that a wait is of: by name only, for what is settled is held packed, and must not be kept whole by a wait. */
export interface Waiting {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** A standing, with the resource it is of (the same value for all of one resource) and since when it stands. */
export interface Wait extends Standing {
  readonly of: Waiting
  /** Since when the condition has this reason, monotonic ms: not only its status, which `lastTransitionTime` is of. */
  readonly sinceMs: number
}

/** What every resource has waited for, and since when, as far as it is not settled. */
export interface Waits {
  /** To be called before the cache runs. `standingsOf`: what a resource stands at, none where nothing goes on with it; one for each type. */
  follow<R extends KubeObject>(collection: Pick<Collection<R>, 'onChange'>, standingsOf: (resource: R) => readonly Standing[]): void
  all(): Iterable<Wait>
}

/**
 * Every instance keeps this from its caches, so that whoever comes to lead knows how long each wait has lasted. After a restart a stall has lasted since its
 * condition says so, anything else since it was first seen.
 */
export function createWaits(clock: Clock): Waits {
  const waits = new Map<string, readonly Wait[]>()

  function sinceOf(resource: KubeObject, { type, reason }: Standing, before: readonly Wait[] | undefined): number {
    const now = clock.monotonicMs()
    const same = before?.find((one) => one.type === type && one.reason === reason)
    if (same !== undefined) return same.sinceMs
    const stalled = findCondition((resource as { status?: { conditions?: readonly Condition[] } }).status?.conditions, 'Stalled')
    if (before !== undefined || type !== 'Stalled' || stalled === undefined) return now
    return now - Math.max(0, clock.now().getTime() - Date.parse(stalled.lastTransitionTime))
  }

  return {
    follow(collection, standingsOf) {
      collection.onChange((_key, change) => {
        const object = change.type === 'deleted' ? change.old : change.new
        const key = `${object.kind}/${cacheKey(object.metadata)}`
        const standings = change.type === 'deleted' ? [] : standingsOf(change.new)
        if (standings.length === 0) return void waits.delete(key)
        const known = waits.get(key)
        const { name, namespace = '', uid } = object.metadata
        const before = change.type === 'added' && known?.[0]?.of.uid !== uid ? undefined : known
        const of: Waiting = known?.[0]?.of.uid === uid ? known[0].of : { kind: object.kind, namespace, name, uid }
        waits.set(
          key,
          standings.map((standing) => ({ ...standing, of, sinceMs: sinceOf(object, standing, before) })),
        )
      })
    },
    *all() {
      for (const one of waits.values()) yield* one
    },
  }
}

/** The waits of all kinds. To be called before the caches run. */
export function followWaits(caches: Pick<Caches, SagaName | 'signers'>, clock: Clock): Waits {
  const waits = createWaits(clock)
  for (const saga of sagasOf(caches) as readonly Pick<SagaCollection<SagaResource>, 'onChange'>[])
    waits.follow(saga, ({ status }) => sagaStandings(status?.conditions))
  waits.follow(caches.signers, ({ status }) => signerStandings(status?.conditions))
  return waits
}

/** What a resource of a saga stands at: whether it needs a person, is under way, is not where it should be, or can't be looked at. */
export function sagaStandings(conditions: readonly Condition[] | undefined): readonly Standing[] {
  const [stalled, reconciling, ready, observed] = ['Stalled', 'Reconciling', 'Ready', OBSERVED].map((type) =>
    findCondition(conditions, type),
  )
  const told = [
    ...(stalled?.status === 'True' ? [stalled] : []),
    ...(ready !== undefined && ready.status !== 'True' ? [ready] : reconciling?.status === 'True' ? [reconciling] : []),
    // It is settled, and nobody can see whether it still is as its status says.
    ...(observed !== undefined && observed.status !== 'True' ? [observed] : []),
  ]
  if (conditions === undefined || conditions.length === 0) return [{ type: 'Ready', reason: 'Pending' }]
  return told.map(({ type, reason }) => ({ type, reason }))
}

/** What keeps a signer from being of use: its key or policy, its funds, a stranger who uses its key. */
export function signerStandings(conditions: readonly Condition[] | undefined): readonly Standing[] {
  return (conditions ?? []).flatMap(({ type, status, reason }) => {
    const isTold =
      ((type === 'Stalled' || type === 'KeyUsedElsewhere') && status === 'True') ||
      (type === 'Funded' && status !== 'True') ||
      (type === 'Ready' && status !== 'True' && reason === 'Deleting')
    return isTold ? [{ type, reason }] : []
  })
}
