import type { Gwei, Wei } from '../../lib/amounts.ts'
import type { Address, BlockHash, Hash, Hex, Pubkey } from '../../lib/chain-types.ts'
import type { StorageGas } from './storage-gas.ts'

export type { Address, BlockHash, Hash, Hex, Pubkey } from '../../lib/chain-types.ts'

/** An EIP-1559 transaction as it is signed. Every field of what is signed stands here; nothing is filled in later. */
export interface UnsignedTransaction {
  readonly chainId: number
  readonly nonce: number
  readonly to: Address
  readonly data: Hex
  readonly valueWei: Wei
  readonly gas: bigint
  readonly maxFeePerGas: Wei
  readonly maxPriorityFeePerGas: Wei
}

export interface ChainTransaction {
  readonly hash: Hash
  readonly from: Address
  readonly to: Address | undefined
  readonly nonce: number
  readonly data: Hex
  readonly valueWei: Wei
  /** Absent while it waits in the node's pool. */
  readonly blockNumber?: bigint
  readonly blockHash?: BlockHash
}

export interface ChainReceipt {
  readonly hash: Hash
  readonly from: Address
  readonly success: boolean
  readonly blockNumber: bigint
  readonly blockHash: BlockHash
  readonly gasUsed: bigint
  readonly effectiveGasPrice: Wei
  readonly logs: readonly { readonly address: Address; readonly topics: readonly Hex[]; readonly data: Hex }[]
}

/** One DepositEvent of the deposit contract. */
export interface DepositLog {
  readonly pubkey: Pubkey
  readonly withdrawalCredentials: Hex
  readonly amountGwei: Gwei
  readonly signature: Hex
  readonly index: bigint
  readonly transactionHash: Hash
  readonly blockNumber: bigint
}

export interface ChainHead {
  readonly latest: bigint
  /** The highest block that counts as final: the node's `finalized`, or latest − N where the network's configuration gives a depth. */
  readonly final: bigint
  /** Base fee of the latest block. */
  readonly baseFeePerGas: Wei
}

/** What a node's answer means; rpc-errors.ts reads it from the node's own message. */
export type ChainErrorCode =
  /** The node holds this very transaction: success. */
  | 'already-known'
  /** The nonce is used by a mined transaction. */
  | 'nonce-too-low'
  /** Another version of this nonce is in the pool and ours pays less than 10 % more. */
  | 'replacement-underpriced'
  /** Under the node's own minimum, or the fee cap is below the base fee. */
  | 'underpriced'
  | 'insufficient-funds'
  /** The call would revert. */
  | 'reverted'
  /** The node serves another chain id, or another genesis. */
  | 'wrong-chain'
  /** Time-out, reset, 5xx, HTML, rate limit, no URL answered: the outcome is unknown. */
  | 'unavailable'
  /** The deposit history is still being read: wait. */
  | 'history-syncing'
  /** The node lets us in for nothing: its URL's key is wrong or has ended, or nothing is served under its path. */
  | 'access-denied'
  /** The node refused for a reason not known here. */
  | 'rejected'

/** An error of the chain. Its message never holds an RPC URL (which often is a credential) nor a response body. */
export class ChainError extends Error {
  override readonly name = 'ChainError'
  readonly code: ChainErrorCode
  readonly retryAfterMs: number | undefined
  /** Of `rejected`: the node doesn't serve the method, or not with these parameters, and would say so again. */
  readonly isLasting: boolean
  /** The message names each node of the network, with what is wrong with it: they don't fail alike. */
  readonly isOfEach: boolean
  constructor(code: ChainErrorCode, message: string, retryAfterMs?: number, isLasting = false, isOfEach = false) {
    super(message)
    this.code = code
    this.retryAfterMs = retryAfterMs
    this.isLasting = isLasting
    this.isOfEach = isOfEach
  }
}

/** Numbers of transactions sent from an address, by all nodes that answered sanely: final ≤ latest ≤ pending. */
export interface LaneCounts {
  /** Highest final count that any node gives. */
  readonly final: number
  /** Lowest final count over all configured nodes; undefined while one of them gives no sane answer. */
  readonly finalEverywhere: number | undefined
  /** Highest. */
  readonly latest: number
  /** Highest. */
  readonly pending: number
  /** By node, in the order of the configuration; undefined for one that gave no sane answer. */
  readonly nodes: readonly ({ readonly final: number; readonly latest: number; readonly pending: number } | undefined)[]
}

/** What all nodes say of a set of transactions that exclude one another: versions under one nonce, or all attempts of one purpose. */
export interface Trace {
  /** Landed for good: receipt, the block of that number and the final block come from one node's view with equal hashes, and no other node that has that height says otherwise. */
  readonly final?: ChainReceipt
  /** Mined on the canonical chain of a healthy node (block hash compared), not final yet, or final but contradicted. */
  readonly mined?: ChainReceipt
  /** Two nodes have different blocks at a height that matters, or one shows a receipt of a block that is not in its own chain. Node numbers count from 1. */
  readonly disagreement?: { readonly height: bigint; readonly nodes: readonly number[] }
  /** For each hash, in lower case: indexes (from 0) of nodes that answered and have it neither in the pool nor in their chain. */
  readonly lackedBy: ReadonlyMap<Hash, readonly number[]>
  /** Hashes, in lower case, that any node has in its pool or chain. */
  readonly known: ReadonlySet<Hash>
  /** Indexes (from 0) of nodes that did not answer. */
  readonly silent: readonly number[]
}

/** Which transaction used a nonce, named and proven: every configured node has its block as final, with the same hash. */
export type NonceUse =
  /** Some node's final count is not beyond the nonce. */
  | { readonly is: 'unused' }
  | { readonly is: 'used'; readonly transaction: ChainTransaction; readonly receipt: ChainReceipt }
  /** A node is silent, behind, or disagrees, or none can name the transaction. `why` is in plain words, without a URL. */
  | { readonly is: 'unproven'; readonly why: string }

/** One node's answer to a broadcast. `node` is its index, from 0. */
export type Sent = { readonly node: number } & (
  | { readonly is: 'taken' }
  | {
      readonly is: 'refused'
      readonly code: ChainErrorCode /** Of `rejected`: what the node said, as far as it may be shown. */
      readonly said?: string
    }
)

/** An EIP-7002 request that its contract logged. */
export interface RequestLog {
  readonly amountGwei: bigint
  readonly transactionHash: Hash
  readonly blockNumber: bigint
  readonly blockHash: BlockHash
}

/** A block that is said to be final. */
export interface FinalBlock {
  readonly number: bigint
  readonly hash: BlockHash
  /**
   * The transaction that it is said to hold. A node that lists the block's transactions without it disagrees. `receipt`: what came of it, where that matters;
   * every node must show the same.
   */
  readonly holds?: { readonly hash: Hash; readonly receipt?: ChainReceipt }
}

/** Head and final block of one node, in one look. */
export interface ChainView {
  /** `timestamp` in seconds since 1970. */
  readonly latest: { readonly number: bigint; readonly hash: BlockHash; readonly timestamp: number }
  readonly final: { readonly number: bigint; readonly hash: BlockHash }
  readonly baseFeePerGas: Wei
}

/**
 * One Ethereum network, as the operator and the service see it, over all its configured nodes. What is for people and timing comes from the first
 * healthy node; what decides about money asks all of them. Every call throws `ChainError`; none retries a broadcast by itself.
 */
export interface EthereumChain {
  readonly network: string
  /** Hash of block 0: with the chain id it names a chain for good. All nodes that are used have the same. */
  genesisHash(signal: AbortSignal): Promise<BlockHash>
  head(signal: AbortSignal): Promise<ChainHead>
  /** Number of transactions sent from an address: `pending` counts the node's pool, `final` counts up to `ChainHead.final`. */
  transactionCount(address: Address, at: 'latest' | 'pending' | 'final', signal: AbortSignal): Promise<number>
  balance(address: Address, signal: AbortSignal): Promise<Wei>
  /** The code of an account at the latest block; `0x` for one without. */
  code(address: Address, signal: AbortSignal): Promise<Hex>
  /** The node's suggestion for a tip. */
  priorityFee(signal: AbortSignal): Promise<Wei>
  /** Units of gas. Throws `reverted` when the call would fail. */
  estimateGas(call: { from: Address; to: Address; data: Hex; valueWei: Wei }, signal: AbortSignal): Promise<bigint>
  /** What a new storage slot costs under the fork in force, as the first node measures it, and never less than under the dearest fork that is known. Never throws for nodes that fail. */
  storageGas(signal: AbortSignal): Promise<StorageGas>
  /** Sends signed bytes to every configured URL; succeeds when one takes them. Returns the hash. */
  broadcast(raw: Hex, signal: AbortSignal): Promise<Hash>
  transaction(hash: Hash, signal: AbortSignal): Promise<ChainTransaction | undefined>
  receipt(hash: Hash, signal: AbortSignal): Promise<ChainReceipt | undefined>
  /** Every deposit ever made for this public key, up to the latest block, in order. Throws `history-syncing` until the history was read. */
  depositsFor(pubkey: Pubkey, signal: AbortSignal): Promise<readonly DepositLog[]>
  /** Asks all nodes. @throws ChainError when none answers sanely */
  laneCounts(address: Address, signal: AbortSignal): Promise<LaneCounts>
  /** Asks all nodes. @throws ChainError when none answers */
  trace(hashes: readonly Hash[], signal: AbortSignal): Promise<Trace>
  /** Whether a block, with what it is said to hold, is in the final chain of every configured node. `unknown`: one is silent or behind. Never throws for nodes that fail. */
  finalEverywhere(block: FinalBlock, signal: AbortSignal): Promise<'agreed' | 'disagreed' | 'unknown'>
  /** Which transaction used this nonce of this address. Never throws for nodes that fail: that is `unproven`. */
  nonceUse(address: Address, nonce: number, signal: AbortSignal): Promise<NonceUse>
  /** Sends signed bytes to nodes by index (from 0) and waits for all their answers. Never throws for a refusal; a node that has the bytes has taken them. */
  send(raw: Hex, nodes: readonly number[] | 'all', signal: AbortSignal): Promise<readonly Sent[]>
  /** EIP-7002 requests that this sender made for this key, from a block on, as the contract logged them: all that any healthy node shows. */
  requestLogs(
    query: { readonly sender: Address; readonly pubkey: Pubkey; readonly fromBlock: bigint },
    signal: AbortSignal,
  ): Promise<readonly RequestLog[]>
  /** Head and final block of the first healthy node. */
  view(signal: AbortSignal): Promise<ChainView>
}

/**
 * What EIP-7002 requests need of a network besides: `createEthereumChain` gives both ports. Every call throws `ChainError`.
 */
export interface ContractReads {
  /** What a contract answers, at the latest block or at one that is given. Throws `reverted` when the call would fail. */
  call(call: { readonly to: Address; readonly data: Hex; readonly blockNumber?: bigint }, signal: AbortSignal): Promise<Hex>
  /** When a block was made, in seconds since 1970: with the beacon chain's genesis time it tells the slot. Throws `unavailable` for a block that no node has yet. */
  blockTime(blockNumber: bigint, signal: AbortSignal): Promise<number>
}
