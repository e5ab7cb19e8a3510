import { createPublicClient, createWalletClient, defineChain, http, type PrivateKeyAccount } from 'viem'
import type { Address, Hex } from '../../../src/chains/ethereum/chain.ts'
import {
  type CredentialsType,
  encodeDepositCalldata,
  signDepositMessage,
  withdrawalCredentials,
} from '../../../src/chains/ethereum/deposit.ts'
import {
  decodeRequestLog,
  encodeRequestCalldata,
  type ValidatorRequest,
  withdrawalRequestContract,
} from '../../../src/chains/ethereum/requests.ts'
import { type Gwei, gwei, gweiToWei } from '../../../src/lib/amounts.ts'

export interface SentRequest {
  readonly hash: Hex
  readonly blockNumber: bigint
  /** Of its block, in seconds since 1970. */
  readonly timestamp: number
  readonly logged: ReturnType<typeof decodeRequestLog>
}

/** Pays deposits and sends EIP-7002 requests by plain transactions, on any network. */
export function createSender(network: {
  readonly url: string
  readonly chainId: number
  readonly depositContract: Address
  readonly genesisForkVersion: Hex
}) {
  const { url, chainId, depositContract, genesisForkVersion } = network
  const chain = defineChain({
    id: chainId,
    name: 'test',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  })
  const client = createPublicClient({ chain, transport: http(url), pollingInterval: 100 })
  const send = async (account: PrivateKeyAccount, to: Address, data: Hex, value: bigint) => {
    const wallet = createWalletClient({ account, chain, transport: http(url) })
    const hash = await wallet.sendTransaction({ to, data, value, gas: 400_000n })
    const receipt = await client.waitForTransactionReceipt({ hash, timeout: 60_000 })
    if (receipt.status !== 'success') throw new Error(`transaction ${hash} was reverted`)
    return receipt
  }
  return {
    client,
    /** Any transaction. Resolves with its receipt; @throws when it is reverted. */
    send,
    balance: (address: Address) => client.getBalance({ address }),
    /** A deposit by our own signature; `sign` may spoil it. */
    deposit: async (
      account: PrivateKeyAccount,
      secretKey: Uint8Array,
      options: { readonly amountGwei?: bigint; readonly type?: CredentialsType; readonly to?: Address; readonly forkVersion?: Hex } = {},
    ) => {
      const deposit = signDepositMessage(secretKey, {
        withdrawalCredentials: withdrawalCredentials(options.type ?? '0x02', options.to ?? account.address),
        amountGwei: gwei(options.amountGwei ?? 32_000_000_000n),
        genesisForkVersion: options.forkVersion ?? genesisForkVersion,
      })
      await send(account, depositContract, encodeDepositCalldata(deposit), gweiToWei(deposit.amountGwei))
      return deposit
    },
    request: async (account: PrivateKeyAccount, request: ValidatorRequest, valueWei = 1_000n): Promise<SentRequest> => {
      const receipt = await send(account, withdrawalRequestContract, encodeRequestCalldata(request), valueWei)
      const [log] = receipt.logs
      if (log === undefined) throw new Error('the EIP-7002 contract logged nothing')
      const { timestamp } = await client.getBlock({ blockNumber: receipt.blockNumber })
      return {
        hash: receipt.transactionHash,
        blockNumber: receipt.blockNumber,
        timestamp: Number(timestamp),
        logged: decodeRequestLog({ topics: log.topics, data: log.data }),
      }
    },
  }
}
export type Sender = ReturnType<typeof createSender>

export const exitOf = (pubkey: Hex): ValidatorRequest => ({ kind: 'exit', pubkey })
export const withdrawalOf = (pubkey: Hex, amountGwei: bigint): ValidatorRequest => ({
  kind: 'withdrawal',
  pubkey,
  amountGwei: amountGwei as Gwei,
})
