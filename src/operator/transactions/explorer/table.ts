/**
 * The set of states that were seen, in the order of their discovery, which is the queue of a breadth-first search too. A state is `stride` words of
 * 16 bits; each is stored whole, so that two states are never mistaken for one another.
 */
export interface StateTable {
  /** How many states there are. */
  readonly size: () => number
  /** @returns the state's index, new or old; `size()` grew if it is new. */
  readonly add: (state: Uint16Array, parent: number, action: number) => number
  /** Copies state `index` into `into`. */
  readonly read: (index: number, into: Uint16Array) => void
  readonly parentOf: (index: number) => number
  readonly actionOf: (index: number) => number
  /** A number kept for each state, 0 at first. */
  readonly mark: (index: number, value: number) => void
  readonly markOf: (index: number) => number
}

export function createStateTable(stride: number): StateTable {
  let capacity = 1 << 12
  let slots = new Int32Array(capacity * 2).fill(-1)
  let words = new Uint16Array(capacity * stride)
  let parents = new Int32Array(capacity)
  let actions = new Int32Array(capacity)
  let marks = new Uint8Array(capacity)
  let hashes = new Int32Array(capacity)
  let size = 0

  const hashOf = (state: Uint16Array): number => {
    let hash = 0x811c9dc5
    for (let index = 0; index < stride; index++) {
      hash = Math.imul(hash ^ (state[index] ?? 0), 0x9e3779b1)
      hash ^= hash >>> 15
    }
    hash = Math.imul(hash, 0x85ebca6b)
    return hash ^ (hash >>> 13)
  }
  const isSame = (state: Uint16Array, index: number): boolean => {
    const start = index * stride
    for (let word = 0; word < stride; word++) if (words[start + word] !== state[word]) return false
    return true
  }
  const grow = (): void => {
    capacity *= 2
    const enlarged = new Uint16Array(capacity * stride)
    enlarged.set(words)
    words = enlarged
    const longer = (old: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> => {
      const next = new Int32Array(capacity)
      next.set(old)
      return next
    }
    parents = longer(parents)
    actions = longer(actions)
    hashes = longer(hashes)
    const marked = new Uint8Array(capacity)
    marked.set(marks)
    marks = marked
    slots = new Int32Array(capacity * 2).fill(-1)
    const mask = slots.length - 1
    for (let index = 0; index < size; index++) {
      let slot = (hashes[index] ?? 0) & mask
      while (slots[slot] !== -1) slot = (slot + 1) & mask
      slots[slot] = index
    }
  }

  return {
    size: () => size,
    add: (state, parent, action) => {
      const hash = hashOf(state)
      const mask = slots.length - 1
      let slot = hash & mask
      for (let index = slots[slot] ?? -1; index !== -1; index = slots[slot] ?? -1) {
        if (hashes[index] === hash && isSame(state, index)) return index
        slot = (slot + 1) & mask
      }
      if (size === capacity) {
        grow()
        return insert(state, hash, parent, action)
      }
      return insert(state, hash, parent, action)
    },
    read: (index, into) => {
      const start = index * stride
      for (let word = 0; word < stride; word++) into[word] = words[start + word] ?? 0
    },
    parentOf: (index) => parents[index] ?? -1,
    actionOf: (index) => actions[index] ?? 0,
    mark: (index, value) => {
      marks[index] = value
    },
    markOf: (index) => marks[index] ?? 0,
  }

  function insert(state: Uint16Array, hash: number, parent: number, action: number): number {
    const mask = slots.length - 1
    let slot = hash & mask
    while (slots[slot] !== -1) slot = (slot + 1) & mask
    slots[slot] = size
    words.set(state, size * stride)
    parents[size] = parent
    actions[size] = action
    hashes[size] = hash
    return size++
  }
}
