import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, hexToBytes } from 'viem'
import type { Hex } from './chain.ts'

/** The depth of the deposit contract's tree (consensus-specs, deposit contract: DEPOSIT_CONTRACT_TREE_DEPTH). */
const depth = 32

const pair = (left: Uint8Array, right: Uint8Array): Uint8Array => {
  const both = new Uint8Array(64)
  both.set(left)
  both.set(right, 32)
  return sha256(both)
}
const zeros: Uint8Array[] = [new Uint8Array(32)]
for (let level = 1; level < depth; level += 1) {
  const below = zeros[level - 1] ?? new Uint8Array(32)
  zeros.push(pair(below, below))
}

/** The right edge of the deposit contract's Merkle tree: with it, the root is known without the leaves. */
export interface DepositTree {
  readonly count: bigint
  /** One node a level. */
  readonly branch: readonly Hex[]
  /** @param leaf The deposit data root. */
  add(leaf: Hex): void
  /** As the contract's get_deposit_root() tells it. */
  root(): Hex
  copy(): DepositTree
}

/** As the deposit contract does it: deposit() and get_deposit_root(). */
export function createDepositTree(
  from: { readonly count: bigint; readonly branch: readonly Hex[] } = { count: 0n, branch: [] },
): DepositTree {
  let count = from.count
  const branch: Uint8Array[] = Array.from({ length: depth }, (_, level) => hexToBytes(from.branch[level] ?? `0x${'00'.repeat(32)}`))
  return {
    get count() {
      return count
    },
    get branch() {
      return branch.map((node) => bytesToHex(node))
    },
    add: (leaf) => {
      count += 1n
      let node: Uint8Array = hexToBytes(leaf)
      let size = count
      for (let level = 0; level < depth; level += 1) {
        if ((size & 1n) === 1n) {
          branch[level] = node
          return
        }
        node = pair(branch[level] ?? node, node)
        size >>= 1n
      }
      throw new RangeError('a deposit tree that is full')
    },
    root: () => {
      let node: Uint8Array = new Uint8Array(32)
      let size = count
      for (let level = 0; level < depth; level += 1) {
        const [own, zero] = [branch[level] ?? node, zeros[level] ?? node]
        node = (size & 1n) === 1n ? pair(own, node) : pair(node, zero)
        size >>= 1n
      }
      const tail = new Uint8Array(32)
      new DataView(tail.buffer).setBigUint64(0, count, true)
      return bytesToHex(pair(node, tail))
    },
    copy: () => createDepositTree({ count, branch: branch.map((node) => bytesToHex(node)) }),
  }
}
