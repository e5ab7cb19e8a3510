import type { Gwei, Wei } from '../../lib/amounts.ts'

/** Hex text with `0x`. Addresses are 20 bytes in EIP-55 form; hashes, roots and credentials 32 bytes; public keys 48; signatures 96. */
export type Hex = `0x${string}`
export type Address = `0x${string}`

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
  readonly hash: Hex
  readonly from: Address
  readonly to: Address | undefined
  readonly nonce: number
  readonly data: Hex
  readonly valueWei: Wei
  /** Absent while it waits in the node's pool. */
  readonly blockNumber?: bigint
}

export interface ChainReceipt {
  readonly hash: Hex
  readonly from: Address
  readonly success: boolean
  readonly blockNumber: bigint
  readonly blockHash: Hex
  readonly gasUsed: bigint
  readonly effectiveGasPrice: Wei
  readonly logs: readonly { readonly address: Address; readonly topics: readonly Hex[]; readonly data: Hex }[]
}

/** One DepositEvent of the deposit contract. */
export interface DepositLog {
  readonly pubkey: Hex
  readonly withdrawalCredentials: Hex
  readonly amountGwei: Gwei
  readonly signature: Hex
  readonly index: bigint
  readonly transactionHash: Hex
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
  /** The node refused for a reason not known here. */
  | 'rejected'

/** An error of the chain. Its message never holds an RPC URL (which often is a credential) nor a response body. */
export class ChainError extends Error {
  override readonly name = 'ChainError'
  readonly code: ChainErrorCode
  readonly retryAfterMs: number | undefined
  constructor(code: ChainErrorCode, message: string, retryAfterMs?: number) {
    super(message)
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

/**
 * One Ethereum network, as the operator and the service see it: the first configured RPC URL that answers, on the right chain.
 * Every call throws `ChainError`; none retries a broadcast by itself.
 */
export interface EthereumChain {
  readonly network: string
  head(signal: AbortSignal): Promise<ChainHead>
  /** Number of transactions sent from an address: `pending` counts the node's pool, `final` counts up to `ChainHead.final`. */
  transactionCount(address: Address, at: 'latest' | 'pending' | 'final', signal: AbortSignal): Promise<number>
  balance(address: Address, signal: AbortSignal): Promise<Wei>
  /** The node's suggestion for a tip. */
  priorityFee(signal: AbortSignal): Promise<Wei>
  /** Units of gas. Throws `reverted` when the call would fail. */
  estimateGas(call: { from: Address; to: Address; data: Hex; valueWei: Wei }, signal: AbortSignal): Promise<bigint>
  /** Sends signed bytes to every configured URL; succeeds when one takes them. Returns the hash. */
  broadcast(raw: Hex, signal: AbortSignal): Promise<Hex>
  transaction(hash: Hex, signal: AbortSignal): Promise<ChainTransaction | undefined>
  receipt(hash: Hex, signal: AbortSignal): Promise<ChainReceipt | undefined>
  /** Every deposit ever made for this public key, up to the latest block, in order. Throws `history-syncing` until the history was read. */
  depositsFor(pubkey: Hex, signal: AbortSignal): Promise<readonly DepositLog[]>
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
