import { signedGeneration } from '../../resources/signed-for.ts'
import type { StakingTransactionSpec, TransactionOwner } from '../../resources/staking-transaction.ts'
import { attemptsOf } from './protocol.ts'
import { ownerKey, type RecordObject, recordOf } from './store.ts'

export const isSameOwner = (a: TransactionOwner, b: TransactionOwner): boolean => ownerKey(a) === ownerKey(b) && a.originUid === b.originUid

/**
 * What is noted of a record that passes on: whose it was, where something was signed for that one. ▸ An entry in whose generation nothing was signed, as an earlier
 * version noted some, goes: no record has more generations with an attempt than attempts, so that the list's bound never keeps one from passing on.
 */
export function notedOwner(record: RecordObject): Pick<StakingTransactionSpec, 'earlier'> {
  const { generation, owner, signer, from, network, earlier = [] } = record.spec
  const signed = new Set(attemptsOf(recordOf(record)).map((attempt) => signedGeneration(record.spec, attempt)))
  const isNoted = earlier.some((one) => one.generation === generation)
  if (isNoted || !signed.has(generation)) return {}
  return { earlier: [...earlier.filter((one) => signed.has(one.generation)), { generation, owner, signer, from, network }] }
}
