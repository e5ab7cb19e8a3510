import type { StakingTransactionSpec, TransactionAttempt, TransactionOwner } from '../../resources/staking-transaction.ts'
import { ownerKey } from './store.ts'

/** Whose a record was when something of a generation was signed. */
export type SignedFor = NonNullable<StakingTransactionSpec['earlier']>[number]

export const isSameOwner = (a: TransactionOwner, b: TransactionOwner): boolean => ownerKey(a) === ownerKey(b) && a.originUid === b.originUid

/** What says none is from a version that wrote none for Solana: it counts as of the first generation that the record tells of. */
const generationOf = ({ generation, earlier = [] }: StakingTransactionSpec, attempt: TransactionAttempt): number =>
  attempt.generation ?? Math.min(generation, ...earlier.map((one) => one.generation))

/** Who an attempt was signed for, and by whom: a record may have passed to another resource and signer since. */
export function signedFor(spec: StakingTransactionSpec, attempt: TransactionAttempt): SignedFor {
  const generation = generationOf(spec, attempt)
  return spec.earlier?.find((one) => one.generation === generation) ?? spec
}
