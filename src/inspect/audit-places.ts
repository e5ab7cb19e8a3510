import type { SignerNonce } from '../resources/signer-nonce.ts'
import type { StakingTransaction } from '../resources/staking-transaction.ts'
import type { AuditEntry } from './audit-trail.ts'

/**
 * Nonces that were given out and that no version of a transaction names: fillers, and places that were taken for a transaction which then went on with
 * another one, or never was signed. The log says of none of them what used it: a place has no status.
 */
export function unnamedPlaces(records: readonly StakingTransaction[], places: readonly SignerNonce[]): readonly AuditEntry[] {
  const networks = new Map(records.map(({ spec }) => [spec.chainId, spec.network]))
  const signers = new Map(records.map(({ spec }) => [spec.from.toLowerCase(), spec.signer]))
  const byUid = new Map(records.map((record) => [record.metadata.uid, record]))
  const inUse = new Set(
    records.flatMap((record) => noncesOf(record).map((nonce) => laneNonce({ ...record.spec, address: record.spec.from, nonce }))),
  )
  return places.flatMap(({ spec, metadata }): readonly AuditEntry[] => {
    const { chainId, address, nonce, transaction } = spec
    const record = transaction && byUid.get(transaction.uid)
    // A transaction may be followed under a place that was taken for another, where a witness knew of it.
    if (inUse.has(laneNonce(spec)) || (record !== undefined && isNamed(record, nonce, transaction?.generation))) return []
    // Its record is not in the log any more, and with it what was signed.
    const isGone = transaction !== undefined && record === undefined
    return [
      {
        at: metadata.creationTimestamp ?? '',
        network: networks.get(chainId) ?? `chain id ${chainId}`,
        signer: signers.get(address.toLowerCase()) ?? '',
        from: address,
        purpose: '',
        namespace: '',
        resource: '',
        resourceKind: '',
        amount: isGone ? '' : '0 ETH',
        to: isGone ? undefined : address,
        nonce,
        action: isGone ? 'Unknown' : 'Filler',
        hash: undefined,
        maxFeePerGasGwei: undefined,
        result: 'NotRecorded',
        block: undefined,
        transaction: transaction?.name,
      },
    ]
  })
}

const laneNonce = ({
  chainId,
  address,
  nonce,
}: {
  readonly chainId?: number | undefined
  readonly address: string
  readonly nonce: number
}): string => `${chainId}/${address.toLowerCase()}/${nonce}`

/** Those that a record uses or has used since it has its present owner and signer: earlier ones may be of another lane. */
const noncesOf = ({ spec, status }: StakingTransaction): readonly number[] =>
  [
    status?.place,
    status?.outcome?.nonce,
    ...(status?.attempts ?? []).map(({ nonce, generation }) => ((generation ?? spec.generation) === spec.generation ? nonce : undefined)),
  ].filter((nonce) => nonce !== undefined)

/** Whether a record accounts for a nonce that was taken for it. What has no generation was written before there was any hand-over. */
function isNamed({ spec, status }: StakingTransaction, nonce: number, generation: number | undefined): boolean {
  const { place, outcome, attempts = [], closed = [] } = status ?? {}
  if (generation === spec.generation && (place === nonce || outcome?.nonce === nonce)) return true
  return [...attempts, ...closed].some((one) => one.nonce === nonce && (one.generation ?? generation) === generation)
}
