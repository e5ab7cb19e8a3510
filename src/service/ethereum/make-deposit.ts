import type { Address } from '../../chains/ethereum/chain.ts'
import { type CredentialsType, encodeDepositCalldata, signDepositMessage, withdrawalCredentials } from '../../chains/ethereum/deposit.ts'
import type { EthereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import { verifyDeposit } from '../../chains/ethereum/verify-deposit.ts'
import type { EthereumStakeBody } from '../../contract/schemas/ethereum-stake.ts'
import { type Gwei, gweiToWei } from '../../lib/amounts.ts'

export interface DepositOrder {
  /** 32 bytes. */
  readonly secretKey: Uint8Array
  readonly network: Pick<EthereumNetworkConfig, 'name' | 'chainId' | 'depositContractAddress' | 'genesisForkVersion'>
  readonly amountGwei: Gwei
  readonly credentialsType: CredentialsType
  readonly withdrawalAddress: Address
}

/**
 * Signed deposit data and the call that pays it, verified by the rules that the operator verifies them by: what is handed out here costs
 * somebody 32 ETH or more.
 * @throws Error when it doesn't hold; nothing may be handed out then.
 */
export function makeDeposit(order: DepositOrder): Pick<EthereumStakeBody, 'depositData' | 'unsignedTransaction'> {
  const { network, amountGwei, credentialsType, withdrawalAddress } = order
  const { genesisForkVersion, depositContractAddress, chainId } = network
  const signed = signDepositMessage(order.secretKey, {
    withdrawalCredentials: withdrawalCredentials(credentialsType, withdrawalAddress),
    amountGwei,
    genesisForkVersion,
  })
  const depositData = { ...signed, forkVersion: genesisForkVersion, networkName: network.name, depositContractAddress, chainId }
  const unsignedTransaction = { chainId, to: depositContractAddress, data: encodeDepositCalldata(signed), valueWei: gweiToWei(amountGwei) }
  const broken = verifyDeposit({ expected: { withdrawalAddress, credentialsType, amountGwei, network }, depositData, unsignedTransaction })
  if (broken.length > 0) throw new Error(`the deposit that was made is not valid: ${broken.map(({ message }) => message).join('; ')}`)
  return { depositData, unsignedTransaction }
}
