import { definitionOf } from '../operator/saga-collection.ts'
import { type SignerNonce, signerNonce } from '../resources/signer-nonce.ts'
import { type StakingTransaction, stakingTransaction } from '../resources/staking-transaction.ts'
import { type AuditEntry, auditTrail } from './audit-trail.ts'
import type { Cluster } from './cluster.ts'
import { InspectError } from './error.ts'

export interface AuditFilter {
  readonly signer?: string
  readonly network?: string
  readonly namespace?: string
  readonly since?: Date
}

/** @throws InspectError where whoever looks may not read the transaction log */
export async function readAuditTrail(cluster: Cluster, filter: AuditFilter, signal: AbortSignal): Promise<readonly AuditEntry[]> {
  // Places first: one that is taken and named meanwhile is named by the records that are read after it.
  const places = await cluster.list<SignerNonce>(definitionOf(signerNonce), {}, signal)
  const records = await cluster.list<StakingTransaction>(definitionOf(stakingTransaction), {}, signal)
  if (records === 'forbidden' || places === 'forbidden')
    throw new InspectError(
      'you may not list StakingTransactions and SignerNonces: the chart’s ClusterRole staking-operator-signers allows it; a tenant sees the transactions of one resource in its status',
    )
  const { signer, network, namespace, since } = filter
  return auditTrail(records, places).filter(
    (entry) =>
      (signer === undefined || entry.signer === signer) &&
      (network === undefined || entry.network === network) &&
      (namespace === undefined || entry.namespace === namespace) &&
      (since === undefined || Date.parse(entry.at) >= since.getTime()),
  )
}
