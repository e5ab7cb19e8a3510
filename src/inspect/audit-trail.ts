import { formatWeiAsGwei, wei } from '../lib/amounts.ts'
import { signedFor } from '../resources/signed-for.ts'
import type { SignerNonce } from '../resources/signer-nonce.ts'
import type { ClosedPlace, StakingTransaction, TransactionAttempt } from '../resources/staking-transaction.ts'
import { unnamedPlaces } from './audit-places.ts'
import type { Column } from './output.ts'

/** One signed transaction, or a nonce that none names. */
export interface AuditEntry {
  /** When it was written down, which was before it was signed: RFC 3339. */
  readonly at: string
  readonly network: string
  readonly signer: string
  /** The address that signed. */
  readonly from: string
  readonly purpose: string
  /** Of the resource that it was signed for. */
  readonly namespace: string
  /** That resource; empty where the record has passed to one of another namespace since, and does not say which it was. */
  readonly resource: string
  readonly resourceKind: string
  /** In words, such as `32 ETH`. A cancel moves nothing. */
  readonly amount: string
  /** The contract that is called; of a hand-over of authorities, who gets the withdraw authority, or else the stake authority. */
  readonly to: string | undefined
  readonly nonce: number | undefined
  /**
   * Call: does what it is for. Cancel and Filler: 0 wei to the signer itself; a Filler, under a nonce that no transaction names. Unknown: the transaction that
   * the nonce was taken for is not in the log any more.
   */
  readonly action: 'Call' | 'Cancel' | 'Filler' | 'Unknown'
  readonly hash: string | undefined
  readonly maxFeePerGasGwei: string | undefined
  readonly result: AuditResult
  /** Block, or slot, where the chain has it. */
  readonly block: number | undefined
  /** The StakingTransaction. */
  readonly transaction: string | undefined
}

export type AuditResult =
  | 'Open'
  | 'Landed'
  | 'Reverted'
  | 'FrontRun'
  | 'Cancelled'
  | 'Dropped'
  | 'Expired'
  | 'Unrelated'
  /** Another version took the nonce. */
  | 'Replaced'
  /** A transaction that the log does not know took the nonce. */
  | 'NonceUsedElsewhere'
  /** The log does not say what came of it, nor whether it was sent yet: of a nonce that no transaction names. */
  | 'NotRecorded'

const closedAs = {
  Cancel: 'Cancelled',
  Revert: 'Reverted',
  Foreign: 'NonceUsedElsewhere',
  Dropped: 'Dropped',
  Expired: 'Expired',
  Unrelated: 'Unrelated',
} as const satisfies Readonly<Record<ClosedPlace['by'], AuditResult>>

/** All that was signed, and every nonce that was given out, as far as the transaction log still has it: the oldest first. */
export function auditTrail(records: readonly StakingTransaction[], places: readonly SignerNonce[]): readonly AuditEntry[] {
  const entries = [...records.flatMap(entriesOf), ...unnamedPlaces(records, places)]
  return entries.sort((a, b) => a.at.localeCompare(b.at) || (a.nonce ?? 0) - (b.nonce ?? 0))
}

function entriesOf(record: StakingTransaction): readonly AuditEntry[] {
  const { spec, metadata, status } = record
  return (status?.attempts ?? []).map((attempt): AuditEntry => {
    const { result, block } = resultOf(record, attempt)
    // A record may have passed to another resource and signer since.
    const { owner, signer, from, network } = signedFor(spec, attempt)
    // Earlier versions of the operator did not note from whom.
    const isOwners = attempt.namespace === undefined || attempt.namespace === owner.namespace
    return {
      at: attempt.at,
      network,
      signer,
      from,
      purpose: spec.purpose,
      namespace: attempt.namespace ?? owner.namespace,
      resource: isOwners ? owner.name : '',
      resourceKind: owner.kind,
      amount: attempt.kind === 'Cancel' ? '0 ETH' : spec.amount,
      to: attempt.kind === 'Cancel' ? from : (spec.call?.to ?? successorOf(spec)),
      nonce: attempt.nonce,
      action: attempt.kind,
      hash: attempt.hash,
      maxFeePerGasGwei: attempt.maxFeePerGasWei === undefined ? undefined : formatWeiAsGwei(wei(BigInt(attempt.maxFeePerGasWei))),
      result,
      block,
      transaction: metadata.name,
    }
  })
}

const successorOf = ({ handOver }: StakingTransaction['spec']): string | undefined =>
  (handOver?.to.withdrawAuthority ?? handOver?.to.stakeAuthority)?.address

/** What came of one version: by its hash, or else by what used its nonce. */
export function resultOf(
  { status }: StakingTransaction,
  attempt: TransactionAttempt,
): { readonly result: AuditResult; readonly block: number | undefined } {
  const { outcome, closed = [], attempts = [] } = status ?? {}
  if (outcome?.hash === attempt.hash) return { result: outcome.is, block: outcome.blockNumber }
  const own = closed.find(({ hash }) => hash === attempt.hash)
  if (own !== undefined) return { result: closedAs[own.by], block: own.blockNumber }
  if (attempt.nonce === undefined) return { result: outcome === undefined ? 'Open' : 'Replaced', block: undefined }
  const taker =
    outcome?.nonce === attempt.nonce
      ? outcome
      : closed.find(({ nonce, generation }) => nonce === attempt.nonce && (generation ?? attempt.generation) === attempt.generation)
  if (taker === undefined) return { result: 'Open', block: undefined }
  return { result: attempts.some(({ hash }) => hash === taker.hash) ? 'Replaced' : 'NonceUsedElsewhere', block: undefined }
}

export const auditColumns: readonly Column<AuditEntry>[] = [
  { title: 'TIME', cell: ({ at }) => at },
  { title: 'NETWORK', cell: ({ network }) => network, yields: 3 },
  { title: 'SIGNER', cell: ({ signer }) => signer, yields: 6 },
  { title: 'NONCE', cell: ({ nonce }) => nonce, yields: 5 },
  { title: 'ACTION', cell: ({ action, purpose }) => (action === 'Call' ? purpose : action) },
  { title: 'AMOUNT', cell: ({ amount }) => amount },
  { title: 'NAMESPACE', cell: ({ namespace }) => namespace, yields: 4 },
  { title: 'RESOURCE', cell: ({ resource }) => resource },
  { title: 'RESULT', cell: ({ result }) => result },
  { title: 'BLOCK', cell: ({ block }) => block, yields: 2 },
  { title: 'HASH', cell: ({ hash }) => hash, yields: 1 },
  { title: 'MAX FEE (GWEI)', cell: ({ maxFeePerGasGwei }) => maxFeePerGasGwei, wide: true },
  { title: 'FROM', cell: ({ from }) => from, wide: true },
  { title: 'TO', cell: ({ to }) => to, wide: true },
  { title: 'KIND', cell: ({ resourceKind }) => resourceKind, wide: true },
  { title: 'TRANSACTION', cell: ({ transaction }) => transaction, wide: true },
]
