import type { ChainTransaction } from '../../../chains/ethereum/chain.ts'
import type { StakingTransactionSpec, TransactionOwner } from '../../../resources/staking-transaction.ts'
import type { Origin } from '../../engine/origin.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { EthereumNetwork } from '../../ports.ts'

/** What a record must say, as far as it can be known without a tenant's word. */
export interface LegacyRecord {
  readonly name: string
  readonly spec: StakingTransactionSpec
}

/** Who sends it: the StakingSigner as it stands, or what is known of one that is gone. */
export interface LegacySigner {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly address: string }
}

/** What a kind knows of transactions that the version before the log has signed for its resources. */
export interface LegacyKind {
  readonly kind: string
  /** Its records are named by their resource: a status that claims what is another's can take nothing from that one. */
  readonly isNamedByOwner: boolean
  /** The network that a resource's transaction was sent on. */
  networkOf(resource: KubeObject): string | undefined
  /**
   * What the record of a resource must say: by its spec and what the staking API has for it. Its status tells where to look and is not believed.
   * @returns undefined where the staking API has nothing that is this resource's
   * @throws a port's error where that can't be known now
   */
  find(resource: KubeObject, origin: Origin, signer: LegacySigner, signal: AbortSignal): Promise<LegacyRecord | undefined>
  /** The same from a transaction that a node shows, for a resource that is gone. Undefined where it is not one of this kind's. */
  ofCall(owner: TransactionOwner, call: ChainTransaction, network: EthereumNetwork, signer: LegacySigner): LegacyRecord | undefined
}
