import type { StakingTransactionSpec, TransactionAttempt, TransactionOwner } from '../../resources/staking-transaction.ts'
import { attemptsOf } from './protocol.ts'
import { ownerKey, type RecordObject, recordOf } from './store.ts'

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

/**
 * What is noted of a record that passes on: whose it was, where something was signed for that one. ▸ An entry in whose generation nothing was signed, as an earlier
 * version noted some, goes: no record has more generations with an attempt than attempts, so that the list's bound never keeps one from passing on.
 */
export function notedOwner(record: RecordObject): Pick<StakingTransactionSpec, 'earlier'> {
  const { generation, owner, signer, from, network, earlier = [] } = record.spec
  const signed = new Set(attemptsOf(recordOf(record)).map((attempt) => generationOf(record.spec, attempt)))
  const isNoted = earlier.some((one) => one.generation === generation)
  if (isNoted || !signed.has(generation)) return {}
  return { earlier: [...earlier.filter((one) => signed.has(one.generation)), { generation, owner, signer, from, network }] }
}
