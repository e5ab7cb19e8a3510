import type { Address, ContractReads, EthereumChain, Hash, Hex, Pubkey, UnsignedTransaction } from '../chains/ethereum/chain.ts'
import type { EthereumNetworkConfig } from '../chains/ethereum/networks.ts'
import type { SolanaAddress, SolanaChain, SolanaSignature } from '../chains/solana/chain.ts'
import type { SolanaNetworkConfig } from '../chains/solana/networks.ts'
import type { ExitRequestBody, WithdrawalCapacityBody, WithdrawalRequestBody } from '../contract/schemas/ethereum-requests.ts'
import type { EthereumStakeBody } from '../contract/schemas/ethereum-stake.ts'
import type { ChallengeBody, SolanaStakeBody, SolanaTransactionBody } from '../contract/schemas/solana.ts'
import type { Gwei, Lamports } from '../lib/amounts.ts'

export type { EthereumChain } from '../chains/ethereum/chain.ts'
export type { Clock } from '../lib/clock.ts'

/**
 * What is wrong with a key. `api-key`: of the staking API's, and no signer's. Of remote signers only: `unavailable` (it gives no useful answer now), `refused`
 * (it answers that it will not sign), `misbehaves` (what it has signed is not what was asked for).
 */
export type KeyErrorCode =
  | 'missing'
  | 'malformed'
  | 'wrong-password'
  | 'address-mismatch'
  | 'api-key'
  | 'unavailable'
  | 'refused'
  | 'misbehaves'
/** The message names the file or the remote signer and the mend, and never quotes a content, a URL or a token. */
export class KeyError extends Error {
  override readonly name = 'KeyError'
  readonly code: KeyErrorCode
  /** When to ask again, in ms; of `unavailable` only. */
  readonly retryAfterMs: number | undefined
  constructor(code: KeyErrorCode, message: string, { retryAfterMs }: { readonly retryAfterMs?: number | undefined } = {}) {
    super(message)
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

/** A transaction as it is sent. */
export interface SignedTransaction {
  readonly raw: Hex
  readonly hash: Hash
  /** r, s and recovery id (65 bytes), where signing again may give other bytes: it must stand in the log before anything is sent. */
  readonly signature?: Hex
}

/** Keys in mounted Secrets, whose files are read per use, so that a rotated Secret counts at once; and keys of remote signers. All throw `KeyError`. */
export interface EthereumKeys {
  /** The address of the key `keyName`. */
  address(keyName: string, signal: AbortSignal): Promise<Address>
  /**
   * Signs. A mounted key does so deterministically (RFC 6979): the same transaction gives the same bytes. A remote one need not, and gives the signature with
   * it. Refuses with `address-mismatch` unless the key's address is `expected`.
   */
  signTransaction(keyName: string, expected: Address, transaction: UnsignedTransaction, signal: AbortSignal): Promise<SignedTransaction>
  /** Throws where a remote signer can't be asked to sign now, as far as can be told without a signature. Nothing for mounted keys. */
  probe?(keyName: string, signal: AbortSignal): Promise<void>
}

/** Solana keys in mounted Secrets, read per use, and of remote signers. Signing is deterministic (ed25519). All throw `KeyError`. */
export interface SolanaKeys {
  /** As of Ethereum. */
  probe?(keyName: string, signal: AbortSignal): Promise<void>
  /** The address of the key `keyName`. */
  address(keyName: string, signal: AbortSignal): Promise<SolanaAddress>
  /**
   * The 64 bytes of a signature of a transaction's message. Refuses with `address-mismatch` unless the key's address is `expected`; throws
   * `MessageError` for bytes that are no message, and RangeError unless `expected` is one of its signers.
   */
  signMessage(keyName: string, expected: SolanaAddress, message: Uint8Array, signal: AbortSignal): Promise<Uint8Array>
  /** A signature of the off-chain envelope of a text, which no cluster takes for a transaction. Throws `ChallengeError` unless it is plain ASCII. */
  signOffchainMessage(keyName: string, expected: SolanaAddress, text: string, signal: AbortSignal): Promise<SolanaSignature>
}

/** Sender and nonce of a transaction whose hash is reported before a node shows it. */
export interface SentBy {
  readonly from: Address
  readonly nonce: number
}

/** The staking API, as far as the operator uses it for Ethereum stakes. Throws the contract's `StakingApiError`. */
export interface StakingApi {
  createEthereumStake(
    request: {
      readonly idempotencyKey: string
      readonly network: string
      readonly amountGwei: Gwei
      readonly withdrawalAddress: Address
      readonly credentialsType: '0x01' | '0x02'
      readonly externalReference: string
    },
    signal: AbortSignal,
  ): Promise<EthereumStakeBody>
  ethereumStake(stakeId: string, signal: AbortSignal): Promise<EthereumStakeBody>
  /** Stakes that were made under an external reference, the newest first. None where the API does not list stakes, which is beyond the interface. */
  ethereumStakesNamed?(externalReference: string, signal: AbortSignal): Promise<readonly EthereumStakeBody[]>
  submitEthereumStake(stakeId: string, transactionHash: Hash, signal: AbortSignal, sentBy?: SentBy): Promise<EthereumStakeBody>
  /** Again and again: it stays cancelled. One that was reported or paid answers 409 `invalid-state`. */
  cancelEthereumStake(stakeId: string, signal: AbortSignal): Promise<EthereumStakeBody>
}

/** The staking API, as far as the operator uses it for validators' exits and withdrawals (EIP-7002). Throws the contract's `StakingApiError`. */
export interface ValidatorRequestsApi {
  createExitRequest(
    request: { readonly idempotencyKey: string; readonly pubkey: Pubkey; readonly externalReference: string },
    signal: AbortSignal,
  ): Promise<ExitRequestBody>
  exitRequest(pubkey: Pubkey, requestId: string, signal: AbortSignal): Promise<ExitRequestBody>
  /** Requests that were made under an external reference, the newest first. None where the API does not list requests, which is beyond the interface. */
  exitRequestsNamed?(pubkey: Pubkey, externalReference: string, signal: AbortSignal): Promise<readonly ExitRequestBody[]>
  /** The same of withdrawals. */
  withdrawalRequestsNamed?(pubkey: Pubkey, externalReference: string, signal: AbortSignal): Promise<readonly WithdrawalRequestBody[]>
  submitExitRequest(
    pubkey: Pubkey,
    requestId: string,
    transactionHash: Hash,
    signal: AbortSignal,
    sentBy?: SentBy,
  ): Promise<ExitRequestBody>
  /** Again and again: it stays cancelled. A request that was submitted answers 409 `invalid-state`. */
  cancelExitRequest(pubkey: Pubkey, requestId: string, signal: AbortSignal): Promise<ExitRequestBody>
  createWithdrawalRequest(
    request: { readonly idempotencyKey: string; readonly pubkey: Pubkey; readonly amountGwei: Gwei; readonly externalReference: string },
    signal: AbortSignal,
  ): Promise<WithdrawalRequestBody>
  withdrawalRequest(pubkey: Pubkey, requestId: string, signal: AbortSignal): Promise<WithdrawalRequestBody>
  /** `retryAfterMs` when the service's node doesn't see the transaction yet (202): report it again after that. */
  submitWithdrawalRequest(
    pubkey: Pubkey,
    requestId: string,
    transactionHash: Hash,
    signal: AbortSignal,
    sentBy?: SentBy,
  ): Promise<{ readonly body: WithdrawalRequestBody; readonly retryAfterMs: number | undefined }>
  /** The same of a withdrawal; beyond the interface, so that an API may answer 404, 405 or 501. */
  cancelWithdrawalRequest(pubkey: Pubkey, requestId: string, signal: AbortSignal): Promise<WithdrawalRequestBody>
  withdrawalCapacity(pubkey: Pubkey, signal: AbortSignal): Promise<WithdrawalCapacityBody>
  /**
   * Has the API tell when a request shows another state than it did when it was last read: `onChange` is called once, or never. Returns at once.
   * @returns false where the API offers no such thing, or as much is followed as may be: whoever waits goes on asking.
   */
  follow?(requestId: string, onChange: () => void, signal: AbortSignal): boolean
}

/** The staking API, as far as the operator uses it for Solana stakes. Throws the contract's `StakingApiError`. */
/** The most that a transaction may offer on top of its base fee, in lamports. */
export interface SolanaFeeCap {
  readonly maxPriorityFeeLamports: Lamports
}

export interface SolanaStakingApi {
  /** By how much the API's clock was ahead of the operator's at its last answer, in ms; undefined where its answers tell no time. */
  readonly clockAheadMs: number | undefined
  createSolanaStake(
    request: {
      readonly idempotencyKey: string
      readonly network: string
      readonly amountLamports: Lamports
      readonly stakeAuthority: SolanaAddress
      readonly withdrawAuthority: SolanaAddress
      /** Pays for all transactions. Left out, a withdrawal would be paid by the withdraw authority alone, which is better kept without funds. */
      readonly feePayer: SolanaAddress
      readonly voteAccount?: SolanaAddress
      readonly externalReference: string
    },
    signal: AbortSignal,
  ): Promise<SolanaStakeBody>
  solanaStake(stakeId: string, signal: AbortSignal): Promise<SolanaStakeBody>
  /** Stakes that were made under an external reference, the newest first. None where the API does not list stakes, which is beyond the interface. */
  solanaStakesNamed?(externalReference: string, signal: AbortSignal): Promise<readonly SolanaStakeBody[]>
  /**
   * Again and again: it stays cancelled. One that was paid answers 409 `invalid-state`, and with Retry-After one that may be paid yet. Beyond the interface: an
   * API without it answers 404, or 405.
   */
  cancelSolanaStake(stakeId: string, signal: AbortSignal): Promise<SolanaStakeBody>
  renewChallenge(stakeId: string, signal: AbortSignal): Promise<ChallengeBody>
  createStakeTransaction(
    stakeId: string,
    request: { readonly idempotencyKey: string; readonly challengeId: string; readonly signature: SolanaSignature } & SolanaFeeCap,
    signal: AbortSignal,
  ): Promise<SolanaTransactionBody>
  createDeactivationTransaction(
    stakeId: string,
    request: { readonly idempotencyKey: string } & SolanaFeeCap,
    signal: AbortSignal,
  ): Promise<SolanaTransactionBody>
  createWithdrawalTransaction(
    stakeId: string,
    request: {
      readonly idempotencyKey: string
      readonly destination?: SolanaAddress
      /** The destination is a program's account, and meant. */
      readonly destinationException?: true
      /** Who pays, where it isn't the stake's fee payer. */
      readonly feePayer?: SolanaAddress
    } & SolanaFeeCap,
    signal: AbortSignal,
  ): Promise<SolanaTransactionBody>
  /** A new blockhash for a transaction that can't land any more. One that still could answers 409 `invalid-state`. */
  refreshTransaction(stakeId: string, txId: string, cap: SolanaFeeCap, signal: AbortSignal): Promise<SolanaTransactionBody>
  submitTransaction(stakeId: string, txId: string, signature: SolanaSignature, signal: AbortSignal): Promise<SolanaTransactionBody>
}

/** One Ethereum network of the operator's configuration with what reaches it. */
export interface EthereumNetwork {
  readonly config: EthereumNetworkConfig
  readonly chain: EthereumChain & ContractReads
  readonly api: StakingApi
  readonly requests: ValidatorRequestsApi
  /** A transaction that has waited this long is looked at for a fee bump, in ms. */
  readonly bumpAfterMs: number
}

/** One Solana network of the operator's configuration with what reaches it. */
export interface SolanaNetwork {
  readonly config: SolanaNetworkConfig
  readonly chain: SolanaChain
  readonly api: SolanaStakingApi
  /** The domain that a challenge must name: the staking API's host, with its port where the URL has one, unless configured otherwise. */
  readonly challengeDomain: string
}

/** The networks of the current configuration, which is reloaded when its file changes. */
export interface Networks {
  ethereum(name: string): EthereumNetwork | undefined
  solana(name: string): SolanaNetwork | undefined
  names(chain: 'Ethereum' | 'Solana'): readonly string[]
}

/** Since when the API server proves what approvals rest on, Unix ms. */
export interface PoliciesInForce {
  /** …that an approval is made by whom it names. */
  readonly approvalsSinceMs: number
  /** …that a resource says who has asked for it. */
  readonly requestersSinceMs: number
}

/** What the API server says of approvals, past all caches. All throw a `KubeError`. */
export interface ApprovalChecks {
  /** Whether the admission policies are there as they should be; otherwise what is missing, as a clause. */
  policies(signal: AbortSignal): Promise<PoliciesInForce | { readonly missing: string }>
  /** Whether a user may approve a resource now: has the verb `approve` on it. */
  mayApprove(
    who: { readonly user: string; readonly groups: readonly string[] },
    resource: { readonly kind: string; readonly namespace: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<boolean>
}
