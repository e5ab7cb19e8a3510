import type { StakingTransactionSpec, TransactionAttempt } from './staking-transaction.ts'

/** Whose a record was when something of a generation was signed. */
export type SignedFor = NonNullable<StakingTransactionSpec['earlier']>[number]

/** What says none is from a version that wrote none for Solana: it counts as of the first generation that the record tells of. */
export const signedGeneration = ({ generation, earlier = [] }: StakingTransactionSpec, attempt: TransactionAttempt): number =>
  attempt.generation ?? Math.min(generation, ...earlier.map((one) => one.generation))

/** Who an attempt was signed for, and by whom: a record may have passed to another resource and signer since. */
export function signedFor(spec: StakingTransactionSpec, attempt: TransactionAttempt): SignedFor {
  const generation = signedGeneration(spec, attempt)
  return spec.earlier?.find((one) => one.generation === generation) ?? spec
}
