import type { KubeObject } from './objects.ts'
import { createPacking, type Packed } from './packed.ts'

/** The values under which an object is to be found. */
export type Indexer<T> = (object: T) => readonly string[]

/** A group and a place in it, for `atLeast`. */
export interface Rank {
  readonly group: string
  readonly rank: number
}

export interface StoreOptions<T> {
  readonly indexers?: Readonly<Record<string, Indexer<T>>>
  /** A number under which an object of a group is to be found, where it has one. */
  readonly ranks?: Readonly<Record<string, (object: T) => Rank | undefined>>
  /** What objects are counted by. */
  readonly tallies?: Readonly<Record<string, (object: T) => string>>
  /** What an object counts for in the tally of the same name, as a whole number; 1 where there is none. */
  readonly weights?: Readonly<Record<string, (object: T) => number>>
  /** Nothing goes on with it: it is held packed, made anew for whoever asks for it, and no part of `unsettled`. */
  readonly isSettled?: (object: T) => boolean
  /** Of the hashes, so that nobody can make values that collide. */
  readonly seed?: number
}

export interface Store<T> {
  get(key: string): T | undefined
  set(key: string, object: T): void
  delete(key: string): void
  keys(): Iterable<string>
  /** All objects. Each that is packed is made for this: see `unsettled`. */
  values(): Iterable<T>
  /** Those that are not settled, as they are. */
  unsettled(): Iterable<T>
  /** @throws TypeError for an index that was not declared. */
  byIndex(index: string, value: string): T[]
  /** Those of a group with this rank or a higher one. @throws TypeError for a rank that was not declared. */
  atLeast(rank: string, group: string, least: number): Iterable<T>
  /** How many objects there are of each value, or what they weigh together. @throws TypeError for a tally that was not declared. */
  tally(name: string): ReadonlyMap<string, number>
  readonly size: number
}

/** 30 bits of a text, which V8 keeps in a table's own slot. */
function hashOf(text: string, seed: number): number {
  let hash = seed
  // FNV-1a
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 2
}

const named = <E extends { readonly name: string }>(all: readonly E[], name: string, what: string): E => {
  const found = all.find((one) => one.name === name)
  if (found === undefined) throw new TypeError(`there is no ${what} "${name}"`)
  return found
}

/**
 * An index holds hashes of values; whoever reads it looks again at what it finds: the values themselves (a public key, an id) would take more memory than all
 * the rest of it.
 */
function createIndex<T>(name: string, values: Indexer<T>, seed: number) {
  // One key mostly stands alone under its value (an id), and a Set for each would take more than the key: it is only made for the second one.
  const keys = new Map<number, string | Set<string>>()
  return {
    name,
    values,
    keysUnder(value: string): readonly string[] {
      const known = keys.get(hashOf(value, seed)) ?? []
      return typeof known === 'string' ? [known] : [...known]
    },
    remove(key: string, object: T): void {
      for (const value of values(object)) {
        const hash = hashOf(value, seed)
        const known = keys.get(hash)
        if (known === key) keys.delete(hash)
        else if (typeof known === 'object') {
          known.delete(key)
          if (known.size === 0) keys.delete(hash)
        }
      }
    },
    add(key: string, object: T): void {
      for (const value of values(object)) {
        const hash = hashOf(value, seed)
        const known = keys.get(hash)
        if (known === undefined) keys.set(hash, key)
        else if (typeof known === 'object') known.add(key)
        else if (known !== key) keys.set(hash, new Set([known, key]))
      }
    },
  }
}

function createRanks<T>(name: string, rankOf: (object: T) => Rank | undefined) {
  const groups = new Map<string, Map<string, number>>()
  return {
    name,
    *keysFrom(group: string, least: number): Generator<string> {
      for (const [key, rank] of groups.get(group) ?? []) if (rank >= least) yield key
    },
    remove(key: string, object: T): void {
      const { group } = rankOf(object) ?? {}
      const ranks = group === undefined ? undefined : groups.get(group)
      ranks?.delete(key)
      if (group !== undefined && ranks?.size === 0) groups.delete(group)
    },
    add(key: string, object: T): void {
      const found = rankOf(object)
      if (found === undefined) return
      const ranks = groups.get(found.group) ?? new Map<string, number>()
      groups.set(found.group, ranks.set(key, found.rank))
    },
  }
}

function createTally<T>(name: string, of: (object: T) => string, weigh: (object: T) => number) {
  const counts = new Map<string, number>()
  const count = (value: string, by: number): void => {
    const now = (counts.get(value) ?? 0) + by
    if (now === 0) counts.delete(value)
    else counts.set(value, now)
  }
  return {
    name,
    counts,
    remove: (_key: string, object: T): void => count(of(object), -weigh(object)),
    add: (_key: string, object: T): void => count(of(object), weigh(object)),
  }
}

/** Objects by key, with what they are found by and counted by kept as they change. */
export function createStore<T extends KubeObject>(options: StoreOptions<T> = {}): Store<T> {
  const { isSettled = () => false, seed = Math.floor(Math.random() * 2 ** 32) | 0 } = options
  const packing = createPacking<T>()
  const objects = new Map<string, T | Packed>()
  const indexes = Object.entries(options.indexers ?? {}).map(([name, values]) => createIndex(name, values, seed))
  const ranks = Object.entries(options.ranks ?? {}).map(([name, rankOf]) => createRanks(name, rankOf))
  const tallies = Object.entries(options.tallies ?? {}).map(([name, of]) => createTally(name, of, options.weights?.[name] ?? (() => 1)))
  const followers = [...indexes, ...ranks, ...tallies]

  const get = (key: string): T | undefined => {
    const held = objects.get(key)
    return typeof held === 'string' ? packing.unpack(held) : held
  }

  const forget = (key: string): void => {
    const old = get(key)
    if (old !== undefined) for (const one of followers) one.remove(key, old)
  }

  function* these(found: Iterable<string>): Generator<T> {
    for (const key of found) {
      const object = get(key)
      if (object !== undefined) yield object
    }
  }

  function* unsettled(): Generator<T> {
    for (const held of objects.values()) if (typeof held !== 'string') yield held
  }

  return {
    get,
    set(key, object) {
      forget(key)
      objects.set(key, isSettled(object) ? packing.pack(object) : object)
      for (const one of followers) one.add(key, object)
    },
    delete(key) {
      forget(key)
      objects.delete(key)
    },
    keys: () => objects.keys(),
    values: () => these(objects.keys()),
    unsettled,
    byIndex(name, value) {
      const index = named(indexes, name, 'index')
      return [...these(index.keysUnder(value))].filter((object) => index.values(object).includes(value))
    },
    atLeast: (name, group, least) => these(named(ranks, name, 'rank').keysFrom(group, least)),
    tally: (name) => named(tallies, name, 'tally').counts,
    get size() {
      return objects.size
    },
  }
}
