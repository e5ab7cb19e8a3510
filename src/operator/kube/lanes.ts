/** First in, first out, without moving what is left. */
function createFifo<K>() {
  let items: K[] = []
  let head = 0
  return {
    push: (item: K): void => {
      items.push(item)
    },
    shift(): K | undefined {
      const item = items[head++]
      if (head > 1024 && head * 2 > items.length) {
        items = items.slice(head)
        head = 0
      }
      return item
    },
    isEmpty: (): boolean => head >= items.length,
  }
}

/** Keys that wait for a worker: each once, the higher priority first, within a priority in the order of coming. */
export interface Lanes<K> {
  /** A key that is in already keeps its place, unless the new priority is higher. */
  push(key: K, priority: number, now: number): void
  shift(): { readonly key: K; readonly priority: number; readonly since: number } | undefined
  has(key: K): boolean
  readonly size: number
}

export function createLanes<K>(): Lanes<K> {
  const waiting = new Map<K, { readonly priority: number; readonly since: number }>()
  let lanes: { readonly priority: number; readonly fifo: ReturnType<typeof createFifo<K>> }[] = []

  const lane = (priority: number) => {
    const known = lanes.find((candidate) => candidate.priority === priority)
    if (known) return known.fifo
    const fifo = createFifo<K>()
    lanes = [...lanes, { priority, fifo }].sort((a, b) => b.priority - a.priority)
    return fifo
  }

  return {
    push(key, priority, now) {
      const known = waiting.get(key)
      if (known !== undefined && known.priority >= priority) return
      waiting.set(key, { priority, since: known?.since ?? now })
      lane(priority).push(key)
    },
    shift() {
      for (const { priority, fifo } of lanes)
        while (!fifo.isEmpty()) {
          const key = fifo.shift() as K
          const entry = waiting.get(key)
          // Left behind in its old lane when the key was moved to a higher one.
          if (entry?.priority !== priority) continue
          waiting.delete(key)
          return { key, ...entry }
        }
      return undefined
    },
    has: (key) => waiting.has(key),
    get size() {
      return waiting.size
    },
  }
}
