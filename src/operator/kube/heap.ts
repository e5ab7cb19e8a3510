/** A binary heap: the item with the least `weight` comes first. */
export interface Heap<T> {
  push(item: T, weight: number): void
  peek(): { readonly item: T; readonly weight: number } | undefined
  pop(): T | undefined
  readonly size: number
}

export function createHeap<T>(): Heap<T> {
  const nodes: { item: T; weight: number }[] = []
  const weight = (at: number): number => nodes[at]?.weight ?? Number.POSITIVE_INFINITY

  const swap = (a: number, b: number): void => {
    const [first, second] = [nodes[a], nodes[b]]
    if (first === undefined || second === undefined) return
    nodes[a] = second
    nodes[b] = first
  }

  return {
    push(item, itemWeight) {
      nodes.push({ item, weight: itemWeight })
      let at = nodes.length - 1
      while (at > 0) {
        const parent = (at - 1) >> 1
        if (weight(parent) <= weight(at)) break
        swap(at, parent)
        at = parent
      }
    },
    peek: () => nodes[0],
    pop() {
      swap(0, nodes.length - 1)
      const least = nodes.pop()
      let at = 0
      for (;;) {
        const left = 2 * at + 1
        const child = weight(left + 1) < weight(left) ? left + 1 : left
        if (weight(child) >= weight(at)) break
        swap(at, child)
        at = child
      }
      return least?.item
    },
    get size() {
      return nodes.length
    },
  }
}
