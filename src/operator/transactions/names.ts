import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { getAddress, isAddress } from 'viem'
import type { Address, Pubkey } from '../../lib/chain-types.ts'
import type { StakingTransactionSpec, TransactionOwner, TransactionPurpose } from '../../resources/staking-transaction.ts'

/** What a StakingTransaction is for. Two that are for the same thing have the same name, so that one of them can be created. */
export type Purpose =
  | { readonly purpose: 'Deposit' | 'Exit'; readonly chainId: number; readonly pubkey: Pubkey }
  /** A validator may be withdrawn from many times: each resource once. */
  | { readonly purpose: 'Withdrawal'; readonly chainId: number; readonly owner: Pick<TransactionOwner, 'kind' | 'namespace' | 'name'> }
  | {
      readonly purpose: 'SolanaStake' | 'SolanaDeactivation' | 'SolanaWithdrawal'
      readonly genesisHash: string
      readonly stakeAccount: string
    }
  /** Authorities may change hands many times: each resource does it once. */
  | {
      readonly purpose: 'SolanaAuthorization'
      readonly genesisHash: string
      readonly stakeAccount: string
      readonly owner: Pick<TransactionOwner, 'kind' | 'namespace' | 'name' | 'originUid'>
    }

const words: Readonly<Record<TransactionPurpose, string>> = {
  Deposit: 'deposit',
  Exit: 'exit',
  Withdrawal: 'withdrawal',
  SolanaStake: 'stake',
  SolanaDeactivation: 'deactivation',
  SolanaWithdrawal: 'solana-withdrawal',
  SolanaAuthorization: 'authorization',
}

const digest = (...parts: readonly string[]): string => bytesToHex(sha256(utf8ToBytes(parts.join('\0')))).slice(0, 32)

/**
 * The name of the StakingTransaction of a purpose, the same for ever: `deposit-560048-<the key's first 12 digits>-<128 bits of a hash of all>`.
 * The name is the guard: whoever creates it second gets a conflict.
 */
export function transactionName(of: Purpose): string {
  switch (of.purpose) {
    case 'Deposit':
    case 'Exit': {
      const pubkey = of.pubkey.toLowerCase()
      return `${words[of.purpose]}-${of.chainId}-${pubkey.slice(2, 14)}-${digest(of.purpose, String(of.chainId), pubkey)}`
    }
    case 'Withdrawal': {
      const { kind, namespace, name } = of.owner
      const readable = `${namespace}-${name}`.replace(/[^a-z0-9-]/g, '-').slice(0, 100)
      return `${words.Withdrawal}-${of.chainId}-${readable}-${digest(of.purpose, String(of.chainId), kind, namespace, name)}`
    }
    case 'SolanaStake':
    case 'SolanaDeactivation':
    case 'SolanaWithdrawal':
      return `${words[of.purpose]}-${digest(of.purpose, of.genesisHash, of.stakeAccount)}`
    case 'SolanaAuthorization': {
      const { kind, namespace, name, originUid } = of.owner
      return `${words[of.purpose]}-${digest(of.purpose, of.genesisHash, of.stakeAccount, kind, namespace, name, originUid)}`
    }
  }
}

/** The name that a record must have, by what it says that it is for. */
export function nameBySpec({ purpose, chainId = 0, genesisHash = '', subject, owner }: StakingTransactionSpec): string {
  switch (purpose) {
    case 'Deposit':
    case 'Exit':
      return transactionName({ purpose, chainId, pubkey: subject as Pubkey })
    case 'Withdrawal':
      return transactionName({ purpose, chainId, owner })
    case 'SolanaStake':
    case 'SolanaDeactivation':
    case 'SolanaWithdrawal':
      return transactionName({ purpose, genesisHash, stakeAccount: subject })
    case 'SolanaAuthorization':
      return transactionName({ purpose, genesisHash, stakeAccount: subject, owner })
  }
}

/** The sequence of nonces of an address on a chain. */
export interface LaneId {
  readonly chainId: number
  readonly address: Address
}
export const laneKey = ({ chainId, address }: LaneId): string => `${chainId}/${address.toLowerCase()}`
/** @returns the address with its checksum (EIP-55), as people are told of it */
export function parseLaneKey(key: string): LaneId {
  const [chainId = '', address = ''] = key.split('/')
  return { chainId: Number(chainId), address: isAddress(address, { strict: false }) ? getAddress(address) : (address as Address) }
}

/** The name of a SignerNonce: chain, address and number, so that none is given out twice. */
export const placeName = ({ chainId, address }: LaneId, nonce: number): string => `${chainId}-${address.toLowerCase().slice(2)}-${nonce}`
