import type { KubeObject } from './objects.ts'

/** The values under which an object is to be found. */
export type Indexer<T> = (object: T) => readonly string[]

export interface Store<T> {
  get(key: string): T | undefined
  set(key: string, object: T): void
  delete(key: string): void
  entries(): Iterable<readonly [string, T]>
  values(): Iterable<T>
  /** @throws TypeError for an index that was not declared. */
  byIndex(index: string, value: string): T[]
  readonly size: number
}

/** Objects by key, with indexes kept as they change. */
export function createStore<T extends KubeObject>(indexers: Readonly<Record<string, Indexer<T>>> = {}): Store<T> {
  const objects = new Map<string, T>()
  // One key mostly stands alone under its value (an id), and a Set for each would take more than the key: it is only made for the second one.
  const indexes = Object.entries(indexers).map(([name, values]) => ({ name, values, keys: new Map<string, string | Set<string>>() }))

  const unindex = (key: string, object: T): void => {
    for (const { values, keys } of indexes)
      for (const value of values(object)) {
        const known = keys.get(value)
        if (known === key) keys.delete(value)
        else if (typeof known === 'object') {
          known.delete(key)
          if (known.size === 0) keys.delete(value)
        }
      }
  }

  const index = (key: string, object: T): void => {
    for (const { values, keys } of indexes)
      for (const value of values(object)) {
        const known = keys.get(value)
        if (known === undefined) keys.set(value, key)
        else if (typeof known === 'object') known.add(key)
        else if (known !== key) keys.set(value, new Set([known, key]))
      }
  }

  return {
    get: (key) => objects.get(key),
    set(key, object) {
      const old = objects.get(key)
      if (old !== undefined) unindex(key, old)
      objects.set(key, object)
      index(key, object)
    },
    delete(key) {
      const old = objects.get(key)
      if (old === undefined) return
      unindex(key, old)
      objects.delete(key)
    },
    entries: () => objects.entries(),
    values: () => objects.values(),
    byIndex(name, value) {
      const found = indexes.find((candidate) => candidate.name === name)
      if (!found) throw new TypeError(`there is no index "${name}"`)
      const known = found.keys.get(value) ?? []
      return (typeof known === 'string' ? [known] : [...known]).flatMap((key) => objects.get(key) ?? [])
    },
    get size() {
      return objects.size
    },
  }
}
