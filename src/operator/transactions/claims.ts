import type { StakingTransactionStatus, TransactionClaim } from '../../resources/staking-transaction.ts'
import { stall } from '../engine/verdict.ts'
import { attemptsOf, closedOf, type TransactionRecord } from './protocol.ts'

/** Claims of one record, at most: the schema's bound. A resource's status has at most 36 of them, a signer's ledger every nonce that it gave out. */
export const MOST_CLAIMS = 1_024

/** Hashes of transactions that the record itself accounts for, lower case. */
function accounted(record: Pick<TransactionRecord, 'status'>): ReadonlySet<string> {
  const { outcome } = record.status
  return new Set(
    [...attemptsOf(record), ...closedOf(record), ...(outcome === undefined ? [] : [outcome])].map(({ hash }) => hash.toLowerCase()),
  )
}

/**
 * ▸ What an earlier version may have sent for this and the record does not account for. A hash stays one until it is found or a person says that it never
 * lands: that no node knows it proves nothing.
 */
export function openClaims(record: Pick<TransactionRecord, 'status'>, disregarded: readonly string[]): readonly TransactionClaim[] {
  const known = accounted(record)
  return (record.status.claims ?? []).filter(
    ({ hash }) => hash === undefined || !(known.has(hash.toLowerCase()) || disregarded.includes(hash.toLowerCase())),
  )
}

/** The nonce of such a claim is used up on every node, so that history shows what it did. ▸ Only a nonce from the operator's own records counts. */
export const isOver = ({ nonce }: TransactionClaim, finalEverywhere: number | undefined): boolean =>
  nonce !== undefined && finalEverywhere !== undefined && nonce < finalEverywhere

/** The status with claims added. None is doubled, and what the record accounts for is none. ▸ None is left out. @throws Halt where they are too many to keep */
export function withClaims(record: TransactionRecord, claims: readonly TransactionClaim[]): StakingTransactionStatus {
  const known = accounted(record)
  const before = record.status.claims ?? []
  const key = ({ hash, nonce }: TransactionClaim): string => `${hash?.toLowerCase()} ${nonce}`
  const seen = new Set(before.map(key))
  const added = claims.filter((claim) => {
    if (seen.has(key(claim)) || (claim.hash !== undefined && known.has(claim.hash.toLowerCase()))) return false
    seen.add(key(claim))
    return true
  })
  const all = [...before, ...added]
  if (all.length > MOST_CLAIMS)
    throw stall(
      'Importing',
      `An earlier version of the operator may have sent ${all.length} transactions for one purpose, more than the ${MOST_CLAIMS} that its record can hold. Nothing is signed with this key, since none of them may be forgotten: go back to that version, and let it end what is in flight.`,
    )
  return added.length === 0 ? record.status : { ...record.status, claims: all }
}
