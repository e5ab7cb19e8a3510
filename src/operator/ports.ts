import type { Address, EthereumChain, Hex, UnsignedTransaction } from '../chains/ethereum/chain.ts'
import type { EthereumNetworkConfig } from '../chains/ethereum/networks.ts'
import type { SolanaAddress, SolanaSignature } from '../chains/solana/chain.ts'
import type { EthereumStakeBody } from '../contract/schemas/ethereum-stake.ts'
import type { Gwei } from '../lib/amounts.ts'

export type { EthereumChain } from '../chains/ethereum/chain.ts'
export type { Clock } from '../lib/clock.ts'

/** What is wrong with a key file. The message names the file and the mend, and never quotes its content. */
export type KeyErrorCode = 'missing' | 'malformed' | 'wrong-password' | 'address-mismatch'
export class KeyError extends Error {
  override readonly name = 'KeyError'
  readonly code: KeyErrorCode
  constructor(code: KeyErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** Keys in mounted Secrets. Files are read per use, so a rotated Secret counts at once. All throw `KeyError`. */
export interface EthereumKeys {
  /** The address of the key in the folder `keyName`. */
  address(keyName: string, signal: AbortSignal): Promise<Address>
  /** Signs deterministically (RFC 6979): the same transaction gives the same bytes. Refuses with `address-mismatch` unless the key's address is `expected`. */
  signTransaction(
    keyName: string,
    expected: Address,
    transaction: UnsignedTransaction,
    signal: AbortSignal,
  ): Promise<{ raw: Hex; hash: Hex }>
}

/** Solana keys in mounted Secrets, read per use. Signing is deterministic (ed25519). All throw `KeyError`. */
export interface SolanaKeys {
  /** The address of the key in the folder `keyName`. */
  address(keyName: string, signal: AbortSignal): Promise<SolanaAddress>
  /**
   * The 64 bytes of a signature of a transaction's message. Refuses with `address-mismatch` unless the key's address is `expected`; throws
   * `MessageError` for bytes that are no message, and RangeError unless `expected` is one of its signers.
   */
  signMessage(keyName: string, expected: SolanaAddress, message: Uint8Array, signal: AbortSignal): Promise<Uint8Array>
  /** A signature of the off-chain envelope of a text, which no cluster takes for a transaction. Throws `ChallengeError` unless it is plain ASCII. */
  signOffchainMessage(keyName: string, expected: SolanaAddress, text: string, signal: AbortSignal): Promise<SolanaSignature>
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
  submitEthereumStake(stakeId: string, transactionHash: Hex, signal: AbortSignal): Promise<EthereumStakeBody>
}

/** One Ethereum network of the operator's configuration with what reaches it. */
export interface EthereumNetwork {
  readonly config: EthereumNetworkConfig
  readonly chain: EthereumChain
  readonly api: StakingApi
  /** A transaction that has waited this long is looked at for a fee bump, in ms. */
  readonly bumpAfterMs: number
}

/** The networks of the current configuration, which is reloaded when its file changes. */
export interface Networks {
  ethereum(name: string): EthereumNetwork | undefined
  names(): readonly string[]
}
