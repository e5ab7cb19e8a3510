import type { Address, Pubkey } from '../../chains/ethereum/chain.ts'
import type { CredentialsType } from '../../chains/ethereum/deposit.ts'
import type { EthereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import type { EthereumStakeBody } from '../../contract/schemas/ethereum-stake.ts'
import type { Gwei } from '../../lib/amounts.ts'
import type { ValidatorKeys } from '../seed.ts'
import { makeDeposit } from './make-deposit.ts'

/** What a deposit is for. It can be sent to a worker: plain values, and of the network no more than its constants. */
export interface DepositTerms {
  readonly network: Pick<EthereumNetworkConfig, 'name' | 'chainId' | 'depositContractAddress' | 'genesisForkVersion'>
  readonly amountGwei: Gwei
  readonly credentialsType: CredentialsType
  readonly withdrawalAddress: Address
}

export interface MadeDeposit extends Pick<EthereumStakeBody, 'depositData' | 'unsignedTransaction'> {
  readonly pubkey: Pubkey
}

/** Derives the key of an index, and makes and verifies its signed deposit: some milliseconds of BLS. */
export interface DepositMaker {
  /** @throws Error when the deposit doesn't hold; nothing may be handed out then. */
  make(index: bigint, terms: DepositTerms, signal: AbortSignal): Promise<MadeDeposit>
  close(): Promise<void>
}

export function depositFor(keys: Pick<ValidatorKeys, 'derive'>, index: bigint, terms: DepositTerms): MadeDeposit {
  const { publicKey: pubkey, secretKey } = keys.derive(index)
  const made = makeDeposit({ ...terms, secretKey })
  if (made.depositData.pubkey !== pubkey) throw new Error('the deposit data was made for another key')
  return { ...made, pubkey }
}

/** In this thread. */
export const createDepositMaker = (keys: Pick<ValidatorKeys, 'derive'>): DepositMaker => ({
  make: async (index, terms) => depositFor(keys, index, terms),
  close: async () => undefined,
})
