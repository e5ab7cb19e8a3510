/** A binary heap: the item with the least weight comes first. */
export interface Heap<T> {
  push(item: T): void
  peek(): T | undefined
  pop(): T | undefined
  readonly size: number
}

/** `weightOf` must not change while an item is in. Items are held as they are: a node around each would be as large as many an item. */
export function createHeap<T>(weightOf: (item: T) => number): Heap<T> {
  const items: T[] = []
  const weight = (at: number): number => {
    const item = items[at]
    return item === undefined ? Number.POSITIVE_INFINITY : weightOf(item)
  }

  const swap = (a: number, b: number): void => {
    const [first, second] = [items[a], items[b]]
    if (first === undefined || second === undefined) return
    items[a] = second
    items[b] = first
  }

  return {
    push(item) {
      items.push(item)
      let at = items.length - 1
      while (at > 0) {
        const parent = (at - 1) >> 1
        if (weight(parent) <= weight(at)) break
        swap(at, parent)
        at = parent
      }
    },
    peek: () => items[0],
    pop() {
      swap(0, items.length - 1)
      const least = items.pop()
      let at = 0
      for (;;) {
        const left = 2 * at + 1
        const child = weight(left + 1) < weight(left) ? left + 1 : left
        if (weight(child) >= weight(at)) break
        swap(at, child)
        at = child
      }
      return least
    },
    get size() {
      return items.length
    },
  }
}
