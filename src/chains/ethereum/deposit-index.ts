import type { Hex, Pubkey } from './chain.ts'

/**
 * Public key → blocks with a deposit for it, compact: mainnet has more than two million deposits, and this takes 12 bytes a slot. It keeps
 * eight bytes of the key only, so a hit is to be looked at in the block itself.
 */
export interface DepositIndex {
  add(pubkey: Pubkey, block: bigint): void
  /** The blocks, ascending. May name a block of another key with the same eight bytes; never leaves one out. */
  find(pubkey: Pubkey): readonly bigint[]
  readonly size: number
  /** `high, low, block` of all, sorted: what the next index can be made on. */
  sorted(): Uint32Array
}

const emptySlot = 0xffff_ffff

/**
 * An open-addressing hash table over typed arrays, linear probing, at most half full; on a sorted list of what is long known, which takes half of the
 * space and is searched by halves.
 */
export function createDepositIndex(initialCapacity = 1024, base: Uint32Array = new Uint32Array()): DepositIndex {
  const inBase = (h: number, l: number): readonly number[] => {
    const compare = (at: number): number => (base[at * 3] ?? 0) - h || (base[at * 3 + 1] ?? 0) - l
    let [from, to] = [0, base.length / 3]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (compare(middle) < 0) from = middle + 1
      else to = middle
    }
    const found: number[] = []
    for (let at = from; at < base.length / 3 && compare(at) === 0; at += 1) found.push(base[at * 3 + 2] ?? 0)
    return found
  }
  let capacity = initialCapacity
  let high = new Uint32Array(capacity)
  let low = new Uint32Array(capacity)
  let blocks = new Uint32Array(capacity).fill(emptySlot)
  let size = 0

  const insert = (h: number, l: number, block: number): boolean => {
    for (let slot = start(h, l, capacity); ; slot = (slot + 1) & (capacity - 1)) {
      if (blocks[slot] === emptySlot) {
        high[slot] = h
        low[slot] = l
        blocks[slot] = block
        return true
      }
      if (blocks[slot] === block && high[slot] === h && low[slot] === l) return false
    }
  }

  const grow = (): void => {
    const old = { high, low, blocks }
    capacity *= 2
    high = new Uint32Array(capacity)
    low = new Uint32Array(capacity)
    blocks = new Uint32Array(capacity).fill(emptySlot)
    for (let slot = 0; slot < old.blocks.length; slot++) {
      const block = old.blocks[slot] ?? emptySlot
      if (block !== emptySlot) insert(old.high[slot] ?? 0, old.low[slot] ?? 0, block)
    }
  }

  return {
    add: (pubkey, block) => {
      if (block >= emptySlot) throw new RangeError('a block number beyond 32 bits')
      if (size * 2 >= capacity) grow()
      const [h, l] = fingerprint(pubkey)
      if (inBase(h, l).includes(Number(block))) return
      if (insert(h, l, Number(block))) size += 1
    },
    find: (pubkey) => {
      const [h, l] = fingerprint(pubkey)
      const found: bigint[] = inBase(h, l).map(BigInt)
      for (let slot = start(h, l, capacity); blocks[slot] !== emptySlot; slot = (slot + 1) & (capacity - 1)) {
        if (high[slot] === h && low[slot] === l) found.push(BigInt(blocks[slot] ?? 0))
      }
      return found.sort((a, b) => (a < b ? -1 : 1))
    },
    get size() {
      return size + base.length / 3
    },
    sorted: () => {
      const all = new Uint32Array(base.length + size * 3)
      all.set(base)
      let at = base.length
      for (let slot = 0; slot < capacity; slot++) {
        const block = blocks[slot] ?? emptySlot
        if (block === emptySlot) continue
        all.set([high[slot] ?? 0, low[slot] ?? 0, block], at)
        at += 3
      }
      return sortTriples(all)
    },
  }
}

/** Whether the index takes two keys for one. */
export const looksLike = (a: Hex, b: Hex): boolean => a.slice(4, 20).toLowerCase() === b.slice(4, 20).toLowerCase()

/** Eight bytes of the key, without the first: that holds the point's flags. */
const fingerprint = (pubkey: Pubkey): readonly [number, number] => [
  Number.parseInt(pubkey.slice(4, 12), 16),
  Number.parseInt(pubkey.slice(12, 20), 16),
]

/** Mixed (xxHash32's primes), since keys may be chosen to share bits. */
const start = (h: number, l: number, capacity: number): number => {
  const mixed = Math.imul(h ^ (h >>> 15), 0x85eb_ca77) ^ Math.imul(l ^ (l >>> 13), 0xc2b2_ae3d)
  return (mixed ^ (mixed >>> 16)) & (capacity - 1)
}

/** Sorts `high, low, block` triples by an order of their positions: an array of triples would take many times the space. */
function sortTriples(all: Uint32Array): Uint32Array {
  const order = new Uint32Array(all.length / 3).map((_, position) => position)
  const word = (position: number, part: number): number => all[position * 3 + part] ?? 0
  order.sort((a, b) => word(a, 0) - word(b, 0) || word(a, 1) - word(b, 1) || word(a, 2) - word(b, 2))
  const sorted = new Uint32Array(all.length)
  for (const [to, from] of order.entries()) sorted.set(all.subarray(from * 3, from * 3 + 3), to * 3)
  return sorted
}
