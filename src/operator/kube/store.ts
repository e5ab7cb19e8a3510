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

/** 30 bits of a text, which V8 keeps in a table's own slot. */
function hashOf(text: string, seed: number): number {
  let hash = seed
  // FNV-1a
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 2
}

/**
 * Objects by key, with indexes kept as they change. An index holds hashes of values and looks again at what it finds: the values themselves (a public key, an
 * id) would take more memory than all the rest of it.
 * @param seed Of the hashes, so that nobody can make values that collide.
 */
export function createStore<T extends KubeObject>(
  indexers: Readonly<Record<string, Indexer<T>>> = {},
  seed: number = Math.floor(Math.random() * 2 ** 32) | 0,
): Store<T> {
  const objects = new Map<string, T>()
  // One key mostly stands alone under its value (an id), and a Set for each would take more than the key: it is only made for the second one.
  const indexes = Object.entries(indexers).map(([name, values]) => ({ name, values, keys: new Map<number, string | Set<string>>() }))

  const unindex = (key: string, object: T): void => {
    for (const { values, keys } of indexes)
      for (const value of values(object)) {
        const hash = hashOf(value, seed)
        const known = keys.get(hash)
        if (known === key) keys.delete(hash)
        else if (typeof known === 'object') {
          known.delete(key)
          if (known.size === 0) keys.delete(hash)
        }
      }
  }

  const index = (key: string, object: T): void => {
    for (const { values, keys } of indexes)
      for (const value of values(object)) {
        const hash = hashOf(value, seed)
        const known = keys.get(hash)
        if (known === undefined) keys.set(hash, key)
        else if (typeof known === 'object') known.add(key)
        else if (known !== key) keys.set(hash, new Set([known, key]))
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
      const known = found.keys.get(hashOf(value, seed)) ?? []
      return (typeof known === 'string' ? [known] : [...known])
        .flatMap((key) => objects.get(key) ?? [])
        .filter((object) => found.values(object).includes(value))
    },
    get size() {
      return objects.size
    },
  }
}
