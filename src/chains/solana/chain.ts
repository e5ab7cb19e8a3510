import type { Lamports } from '../../lib/amounts.ts'
import type { StakeArithmetic } from './activation.ts'
import type { Blockhash, SolanaAddress, SolanaSignature } from './addresses.ts'
import type { Commitment, LandingFacts, SignatureStatus } from './expiry.ts'
import type { SolanaClock, StakeHistory } from './sysvars.ts'
import type { FailureMeaning, TransactionFailure } from './transaction-error.ts'

export type { Blockhash, SolanaAddress, SolanaSignature } from './addresses.ts'
export type { Commitment, LandingFacts, SignatureStatus } from './expiry.ts'
export type { EpochRewards, SolanaClock, StakeHistory, StakeHistoryEntry } from './sysvars.ts'
export type { FailureMeaning, TransactionFailure } from './transaction-error.ts'

export interface EpochInfo {
  readonly epoch: bigint
  readonly slot: bigint
  readonly slotIndex: bigint
  readonly slotsInEpoch: bigint
  readonly blockHeight: bigint
}

export interface LatestBlockhash {
  readonly blockhash: Blockhash
  readonly lastValidBlockHeight: bigint
  /** Slot at which the node answered: `decideLanding` takes it as `preparedAtSlot`. */
  readonly slot: bigint
}

export interface ChainAccount {
  readonly lamports: Lamports
  readonly owner: SolanaAddress
  readonly data: Uint8Array
  readonly executable: boolean
}

/** Everything that a stake's status is computed from, read at one slot. */
export interface StakeView {
  readonly slot: bigint
  readonly account: ChainAccount | undefined
  readonly clock: SolanaClock
  readonly history: StakeHistory
  /** Rewards are being distributed: the stake program refuses every change. */
  readonly rewardsActive: boolean
  /** How the cluster reckons warm-up and cool-down: in integers once its feature is on. */
  readonly arithmetic: StakeArithmetic
}

export interface VoteAccount {
  readonly address: SolanaAddress
  readonly node: SolanaAddress
  /**
   * Percent of the rewards that the validator keeps, as its account says; over 100 is possible and means everything. Undefined when neither the account, of a
   * version that is not known here, nor the node tells.
   */
  readonly commission: number | undefined
  /** Percent of the block revenue that it keeps; undefined where its account has no such field (before version 4). */
  readonly blockRevenueCommission?: number | undefined
  /** Whether its account names a BLS key (SIMD-0387); undefined where it has no such field. */
  readonly blsKey?: boolean | undefined
  readonly activatedStake: Lamports
  /** It has not voted for about a minute (128 slots): don't delegate to it. */
  readonly delinquent: boolean
  /** The cluster admits validators by their BLS keys (SIMD-0357): one without is not admitted, and earns nothing. */
  readonly needsBlsKey?: boolean
}

/** What one node says in one look: nothing of it is older than its finalized height. */
export interface NodeLook {
  readonly finalizedBlockHeight: bigint
  /** Slot of the account, at finalized commitment: that of the height, or a later one. */
  readonly slot: bigint
  readonly account: ChainAccount | undefined
  /** One for each signature that was asked for; undefined where the node's whole history has none. */
  readonly statuses: readonly (SignatureStatus | undefined)[]
  /** First slot of the node's history: the present one where it keeps none. Undefined where it doesn't tell, or all signatures were found. */
  readonly historySince?: bigint
}

/** A final transaction that names an address. */
export interface PastTransaction {
  readonly signature: SolanaSignature
  readonly slot: bigint
  readonly failed: boolean
}

/** What a validator's vote account is; `not-voting`: it is a vote account without stake or votes, which the cluster does not list. */
export type VoteAccountAnswer =
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-a-vote-account' }
  | { readonly kind: 'not-voting' }
  | { readonly kind: 'vote-account'; readonly account: VoteAccount }

export interface Simulation {
  /** Absent when it would succeed. */
  readonly failure?: TransactionFailure
  readonly meaning?: FailureMeaning
  readonly unitsConsumed: bigint
  /** What the watched addresses would be afterwards, in order. */
  readonly accounts: readonly (ChainAccount | undefined)[]
}

export type SolanaErrorCode =
  | FailureMeaning
  /** An account has a layout that is not known here. */
  | 'unreadable'
  /** The node keeps no history of transactions (`--enable-rpc-transaction-history`). */
  | 'no-history'
  /** The node lags: others, or the same later, may know. */
  | 'node-behind'
  /** Time-out, reset, 5xx, HTML, rate limit, no URL answered: the outcome is unknown. */
  | 'unavailable'
  /** The node serves another genesis. */
  | 'wrong-cluster'
  /** The node lets us in for nothing: its URL's key is wrong or has ended, or nothing is served under its path. */
  | 'access-denied'
  /** The node refused for a reason not known here. */
  | 'rejected'

/** An error of the chain. Its message never holds an RPC URL (which often is a credential) nor a response body. */
export class SolanaError extends Error {
  override readonly name = 'SolanaError'
  readonly code: SolanaErrorCode
  readonly retryAfterMs: number | undefined
  /** Of a transaction that was executed, or would have been. */
  readonly failure: TransactionFailure | undefined
  /** Of `rejected`: the node doesn't serve the method, or not with these parameters, and would say so again. */
  readonly isLasting: boolean
  /** The message names each node of the cluster, with what is wrong with it: they don't fail alike. */
  readonly isOfEach: boolean
  constructor(
    code: SolanaErrorCode,
    message: string,
    more: { retryAfterMs?: number | undefined; failure?: TransactionFailure; isLasting?: boolean; isOfEach?: boolean } = {},
  ) {
    super(message)
    this.code = code
    this.isLasting = more.isLasting === true
    this.isOfEach = more.isOfEach === true
    this.retryAfterMs = more.retryAfterMs
    this.failure = more.failure
  }
}

/**
 * One Solana cluster, as the operator and the service see it: the first configured RPC URL that answers, on the right genesis.
 * Every call throws `SolanaError`; none retries a broadcast by itself. `commitment` defaults to `confirmed`.
 */
export interface SolanaChain {
  readonly network: string
  epochInfo(commitment: Commitment, signal: AbortSignal): Promise<EpochInfo>
  blockHeight(commitment: Commitment, signal: AbortSignal): Promise<bigint>
  latestBlockhash(signal: AbortSignal): Promise<LatestBlockhash>
  account(address: SolanaAddress, commitment: Commitment, signal: AbortSignal): Promise<ChainAccount | undefined>
  balance(address: SolanaAddress, commitment: Commitment, signal: AbortSignal): Promise<Lamports>
  /** Least lamports of a stake account besides what it delegates. */
  rentExemption(bytes: number, signal: AbortSignal): Promise<Lamports>
  /** Least lamports that may be delegated. */
  minimumDelegation(signal: AbortSignal): Promise<Lamports>
  /** A stake account with the sysvars that its status follows from. */
  stakeView(address: SolanaAddress, commitment: Commitment, signal: AbortSignal): Promise<StakeView>
  voteAccount(address: SolanaAddress, signal: AbortSignal): Promise<VoteAccountAnswer>
  /**
   * What each configured node knows of a transaction's signatures (at most 256; none: its finalized height only), searching the whole history; feed it
   * to `decideLanding`. One may have what another has lost. Undefined for a node that did not answer; at least one has.
   */
  landingFacts(signatures: readonly SolanaSignature[], signal: AbortSignal): Promise<readonly (LandingFacts | undefined)[]>
  /**
   * An account and what became of signatures (at most 256), by every configured node in their order; undefined for one that gave no answer or is
   * behind itself. For what only all of them together can prove. Throws when none has answered.
   */
  looks(address: SolanaAddress, signatures: readonly SolanaSignature[], signal: AbortSignal): Promise<readonly (NodeLook | undefined)[]>
  /**
   * Final transactions that name an address, newest first, as far as any node's history reaches (at most 1000 of each). `atSlot`: a node that has not come
   * that far gives no answer. Throws when none has answered.
   */
  past(address: SolanaAddress, atSlot: bigint, signal: AbortSignal): Promise<readonly PastTransaction[]>
  /** The message of a final transaction; undefined where no node has it. */
  message(signature: SolanaSignature, signal: AbortSignal): Promise<Uint8Array | undefined>
  /** Lamports that the fee payer will pay for this message; undefined when its blockhash has expired. */
  feeFor(message: Uint8Array, signal: AbortSignal): Promise<Lamports | undefined>
  /**
   * Millionths of a lamport a unit that lately were enough to write these accounts in three of four blocks: the 75th percentile over the last blocks. 0 where no
   * node tells.
   */
  recentPriorityFee(writable: readonly SolanaAddress[], signal: AbortSignal): Promise<bigint>
  /** Runs the message without signatures, on a state not before `minContextSlot`. A transaction that would fail is an answer here, no error. */
  simulate(
    message: Uint8Array,
    options: { readonly watch?: readonly SolanaAddress[]; readonly replaceBlockhash?: boolean; readonly minContextSlot?: bigint },
    signal: AbortSignal,
  ): Promise<Simulation>
  /**
   * Sends signed bytes to every configured URL; succeeds when one takes them. Returns the signature, computed from the bytes. With
   * `skipPreflight`, the nodes forward it without a simulation: for bytes that were sent before.
   */
  sendTransaction(raw: Uint8Array, options: { readonly skipPreflight: boolean }, signal: AbortSignal): Promise<SolanaSignature>
}
