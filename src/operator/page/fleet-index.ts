import type { Clock } from '../../lib/clock.ts'
import type { OnChange } from '../kube/delivery.ts'
import { cacheKey, type KubeObject } from '../kube/objects.ts'
import { type Standable, type State, standingOf, states } from './standing.ts'

/** A resource of the fleet: by name and state only. Caches hold what is settled packed, and a page takes out no more than it shows. */
export interface Entry {
  readonly kind: string
  /** '' for a cluster-scoped kind. */
  readonly namespace: string
  readonly name: string
  readonly state: State
}

/** What a page of the fleet shows; '' is no filter. */
export interface FleetQuery {
  readonly namespace: string
  readonly kind: string
  readonly state: string
  /** A part of the name. */
  readonly name: string
  /** From 1. One beyond the last is the last. */
  readonly page: number
}

export interface FleetView {
  /** Of this page. */
  readonly entries: readonly Entry[]
  /** Resources that the filters admit. */
  readonly total: number
  readonly page: number
  readonly pages: number
  /** How many of each state there are among those that all filters but that of the state admit. */
  readonly counts: ReadonlyMap<State, number>
  /** All namespaces that have a resource, in order. */
  readonly namespaces: readonly string[]
}

export interface FleetIndex {
  /** To be called before the cache runs. */
  follow<R extends KubeObject & Standable>(kind: string, collection: { onChange(listener: OnChange<R>): void }): void
  view(query: FleetQuery): FleetView
}

export const PAGE_SIZE = 50
/** The order is made anew at most so often, in ms: a fleet in motion must not be sorted for every view. */
const ORDER_HOLDS_MS = 1_000

const rank: Readonly<Record<State, number>> = Object.fromEntries(states.map((state, at) => [state, at])) as Record<State, number>
const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const compare = (a: Entry, b: Entry): number =>
  rank[a.state] - rank[b.state] || compareTexts(a.namespace, b.namespace) || compareTexts(a.kind, b.kind) || compareTexts(a.name, b.name)

/**
 * Names and states of all resources, kept as they change, in the order in which they are shown. A view compares names and counts; it takes no object out of a
 * cache, and its work grows with the fleet only as far as ten thousand comparisons do.
 */
export function createFleetIndex(clock: Pick<Clock, 'monotonicMs'>): FleetIndex {
  const entries = new Map<string, Entry>()
  let isStale = true
  let order: { readonly entries: readonly Entry[]; readonly namespaces: readonly string[]; readonly at: number } | undefined

  function ordered() {
    const now = clock.monotonicMs()
    if (order === undefined || (isStale && now - order.at >= ORDER_HOLDS_MS)) {
      const sorted = [...entries.values()].sort(compare)
      const namespaces = [...new Set(sorted.map(({ namespace }) => namespace))].filter((one) => one !== '').sort(compareTexts)
      order = { entries: sorted, namespaces, at: now }
      isStale = false
    }
    return order
  }

  return {
    follow(kind, collection) {
      collection.onChange((_key, change) => {
        const object = change.type === 'deleted' ? change.old : change.new
        const key = `${kind}/${cacheKey(object.metadata)}`
        const known = entries.get(key)
        if (change.type === 'deleted') {
          if (entries.delete(key)) isStale = true
          return
        }
        const { state } = standingOf(change.new)
        if (known?.state === state) return
        const { name, namespace = '' } = object.metadata
        entries.set(key, { kind, namespace, name, state })
        isStale = true
      })
    },
    view({ namespace, kind, state, name, page }) {
      const { entries: all, namespaces } = ordered()
      const counts = new Map<State, number>()
      const admitted: Entry[] = []
      for (const entry of all) {
        if (namespace !== '' && entry.namespace !== namespace) continue
        if (kind !== '' && entry.kind !== kind) continue
        if (name !== '' && !entry.name.includes(name)) continue
        counts.set(entry.state, (counts.get(entry.state) ?? 0) + 1)
        if (state === '' || entry.state === state) admitted.push(entry)
      }
      const pages = Math.max(1, Math.ceil(admitted.length / PAGE_SIZE))
      const at = Math.min(Math.max(1, page), pages)
      return {
        entries: admitted.slice((at - 1) * PAGE_SIZE, at * PAGE_SIZE),
        total: admitted.length,
        page: at,
        pages,
        counts,
        namespaces,
      }
    },
  }
}
