import type { BeaconFacts, Counts, EthereumFacts, Sent } from './ethereum.ts'
import type { KubernetesObject } from './kubernetes.ts'
import type { SolanaFacts } from './solana.ts'
import type { Wish } from './wishes.ts'

/** What the oracle was set up with. */
export interface Terms {
  /** The signer's address, in lower case. */
  readonly signer: string
  readonly depositContract: string
  readonly requestContract: string
  /** The signer's caps, at their highest. */
  readonly maxFeePerGasWei: bigint
  readonly maxRequestFeeWei: bigint
  /** At its highest: how many deposits, exits and withdrawals may be signed within so many seconds. */
  readonly limit: {
    readonly count: number
    readonly seconds: number /** Unix time in s, by the chain: from then on there is none. */
    readonly until?: number
  }
}

/** What can be judged at any moment. Objects were read before the chains: what they claim must be there. */
export interface Evidence {
  readonly terms: Terms
  readonly wishes: readonly Wish[]
  readonly objects: readonly KubernetesObject[]
  readonly ethereum: EthereumFacts
  readonly solana: SolanaFacts
}

/** And what can be judged when the faults are over. */
export interface LastEvidence extends Evidence {
  readonly sent: readonly Sent[]
  readonly counts: Counts
  readonly beacon: BeaconFacts
}
