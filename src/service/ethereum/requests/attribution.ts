import type { Hash } from '../../../chains/ethereum/chain.ts'

/** A transaction that has made a request, which no stored request alike knows. */
export interface SentRequest {
  readonly hash: Hash
  readonly blockNumber: bigint
}

/** A stored request that asks for the very same and may have made it. */
export interface Claimant {
  readonly id: string
  /** It was made after this block: no earlier transaction is its own. */
  readonly quotedAtBlock: bigint
  /** It is to be sent, as far as anybody has said. Nothing is to be sent for a cancelled one, and nothing more for a failed one. */
  readonly isOpen: boolean
}

export interface Attribution {
  readonly found: readonly { readonly id: string; readonly hash: Hash }[]
  /** Several may have made it, and as many transactions are not there. */
  readonly unclear: readonly { readonly hash: Hash; readonly ids: readonly string[] }[]
}

/**
 * Whose the transactions are, of requests that the chain can't tell apart. One is given to a request only where no other may have made it, or where there is one for
 * each: open requests come first, and those that are closed only account for what those don't. Nothing is guessed: who is told that its request was sent does not
 * send it. Pure.
 * @param sent In the order of their blocks.
 * @param claimants The oldest first.
 */
export function attribute(sent: readonly SentRequest[], claimants: readonly Claimant[]): Attribution {
  const found: { id: string; hash: Hash }[] = []
  const unclear: { hash: Hash; ids: readonly string[] }[] = []
  const left = new Set(claimants)
  for (const [number, { hash, blockNumber }] of sent.entries()) {
    const possible = [...left].filter(({ quotedAtBlock }) => quotedAtBlock <= blockNumber)
    const open = possible.filter(({ isOpen }) => isOpen)
    const among = open.length > 0 ? open : possible
    const [first] = among
    if (first === undefined) continue
    if (among.length <= sent.length - number) {
      found.push({ id: first.id, hash })
      left.delete(first)
    } else unclear.push({ hash, ids: among.map(({ id }) => id) })
  }
  return { found, unclear }
}
