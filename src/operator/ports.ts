import type { Address, EthereumChain, Hex, UnsignedTransaction } from '../chains/ethereum/chain.ts'

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
  signTransaction(keyName: string, expected: Address, transaction: UnsignedTransaction, signal: AbortSignal): Promise<{ raw: Hex; hash: Hex }>
}

/** The networks of the current configuration. */
export type ChainsByNetwork = ReadonlyMap<string, EthereumChain>
