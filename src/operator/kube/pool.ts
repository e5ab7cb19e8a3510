/** Values held once. */
export interface Pool<V> {
  /** The value that was given first under this key, as long as it is remembered. */
  share(key: string, value: V): V
  readonly size: number
}

/**
 * Remembers what comes again and forgets what doesn't, without counting: when the young generation is full it becomes the old one, and the old one goes.
 * What is asked for meanwhile moves to the young one, so texts that a whole fleet shares stay for ever and those of one object pass through.
 */
export function createPool<V>(generation = 2048): Pool<V> {
  let young = new Map<string, V>()
  let old = new Map<string, V>()
  return {
    share(key, value) {
      const fresh = young.get(key)
      if (fresh !== undefined) return fresh
      const known = old.get(key) ?? value
      if (young.size >= generation) {
        old = young
        young = new Map()
      }
      young.set(key, known)
      return known
    },
    get size() {
      return young.size + old.size
    },
  }
}
