import type { TransactionFailure } from './transaction-error.ts'

export type Commitment = 'processed' | 'confirmed' | 'finalized'

export interface SignatureStatus {
  readonly slot: bigint
  readonly commitment: Commitment
  /** The transaction is in a block, and it failed: only the fee was paid. */
  readonly failure?: TransactionFailure
}

/** What one node says of a transaction's signatures. The height was read first, so that the history reaches at least as far. */
export interface LandingFacts {
  readonly finalizedBlockHeight: bigint
  /** One for each signature that the transaction ever had; undefined where the searched history has none. */
  readonly statuses: readonly (SignatureStatus | undefined)[]
  /** First slot that the node's ledger holds. */
  readonly historySince?: bigint
}

export type Landing =
  /** In a block; for good only when `final`. `index` is the signature's. */
  | { readonly kind: 'landed'; readonly index: number; readonly final: boolean; readonly status: SignatureStatus }
  /** The blockhash lives still, or the blocks up to its end are not final on every node: send the same bytes again and wait. */
  | { readonly kind: 'may-land'; readonly blocksLeft: bigint }
  /** It is in no block and can't come into one: only now may it be made anew. */
  | { readonly kind: 'expired' }
  /** The blockhash is dead, but the node's history does not reach back far enough to say that it never landed. */
  | { readonly kind: 'unknown' }

/**
 * Whether a transaction landed, may land, or has expired. A block may hold it up to one height beyond `lastValidBlockHeight` (a blockhash's
 * age is counted at the block's parent), and a block that isn't final may be replaced: so only a *finalized* height beyond it decides,
 * together with a searched history without any of the signatures. One node alone must know both; what any node has found counts. Since another one may
 * then be made, every configured node must be beyond it: one that is silent or behind may hold it in a block yet. Wall time is never asked.
 */
export function decideLanding(given: {
  readonly lastValidBlockHeight: bigint
  /** By configured node; undefined for one that did not answer. None: nobody answered, and it may land. */
  readonly facts: readonly (LandingFacts | undefined)[]
  /** A slot at or before the one in which the blockhash was read, if it was kept. */
  readonly preparedAtSlot?: bigint | undefined
}): Landing {
  const { lastValidBlockHeight, preparedAtSlot } = given
  const facts = given.facts.filter((fact) => fact !== undefined)
  const found = facts.flatMap(({ statuses }) => statuses.flatMap((status, index) => (status === undefined ? [] : [{ index, status }])))
  const best = found.toSorted((a, b) => rank[b.status.commitment] - rank[a.status.commitment])[0]
  if (best !== undefined) return { kind: 'landed', index: best.index, final: best.status.commitment === 'finalized', status: best.status }
  const beyond = facts.filter(({ finalizedBlockHeight }) => finalizedBlockHeight > lastValidBlockHeight)
  if (beyond.length === 0) {
    const highest = facts.reduce((height, { finalizedBlockHeight }) => (finalizedBlockHeight > height ? finalizedBlockHeight : height), 0n)
    return { kind: 'may-land', blocksLeft: lastValidBlockHeight - highest + 1n }
  }
  const reachesBack = ({ historySince }: LandingFacts) =>
    historySince === undefined || preparedAtSlot === undefined || historySince <= preparedAtSlot
  if (!beyond.some(reachesBack)) return { kind: 'unknown' }
  return beyond.length === given.facts.length ? { kind: 'expired' } : { kind: 'may-land', blocksLeft: 1n }
}

const rank: Readonly<Record<Commitment, number>> = { processed: 0, confirmed: 1, finalized: 2 }
