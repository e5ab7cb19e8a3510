import type { Address, Hex } from '../../src/chains/ethereum/chain.ts'
import { decodeRequestLog, type LoggedRequest, withdrawalRequestContract } from '../../src/chains/ethereum/requests.ts'
import { DEPOSIT_CONTRACT, decodeDeposit, littleEndian, type RpcLog, type SeenDeposit } from '../../test/chains/deposit-contract.ts'
import { callRpc } from '../../test/chains/json-rpc.ts'
import type { Stack } from '../../test/stack/stack.ts'

/** Money that the consensus layer has paid out, in gwei. */
export interface Payment {
  readonly validatorIndex: string
  readonly amountGwei: bigint
}

/** What the chain itself says, asked past the service and the operator. */
export interface DemoEthereum {
  depositCount(): Promise<number>
  deposits(): Promise<readonly SeenDeposit[]>
  /** Every EIP-7002 request that was mined. */
  requests(): Promise<readonly LoggedRequest[]>
  paymentsTo(address: Address): Promise<readonly Payment[]>
  /** In wei. */
  balance(address: Address): Promise<bigint>
  /** Wei that the address has given away: values and fees of its transactions. */
  spentBy(address: Address): Promise<bigint>
  /** Lets time pass: an epoch of the simulated beacon chain; on a real network, a moment. */
  timePasses(): Promise<void>
  readonly forkVersion: Hex
}

interface Block {
  readonly transactions: readonly { readonly hash: Hex; readonly from: Address; readonly value: Hex }[]
  readonly withdrawals?: readonly { readonly validatorIndex: Hex; readonly address: Address; readonly amount: Hex }[]
}

export function readEthereum(stack: Pick<Stack, 'ethereum' | 'beacon'>, simulated: boolean): DemoEthereum {
  const { url, genesisForkVersion } = stack.ethereum
  const logsOf = (address: Address) => callRpc<readonly RpcLog[]>(url, 'eth_getLogs', [{ address, fromBlock: '0x0', toBlock: 'latest' }])
  const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase()
  async function* blocks(): AsyncGenerator<Block> {
    const latest = Number(await callRpc<Hex>(url, 'eth_blockNumber'))
    for (let number = 0; number <= latest; number++) {
      const block = await callRpc<Block | null>(url, 'eth_getBlockByNumber', [`0x${number.toString(16)}`, true])
      if (block !== null) yield block
    }
  }
  return {
    forkVersion: genesisForkVersion,
    async depositCount() {
      // get_deposit_count() gives bytes: offset, length, eight bytes.
      const answer = await callRpc<Hex>(url, 'eth_call', [{ to: DEPOSIT_CONTRACT, data: '0x621fd130' }, 'latest'])
      return Number(littleEndian(`0x${answer.slice(2 + 128, 2 + 128 + 16)}`))
    },
    deposits: async () => (await logsOf(DEPOSIT_CONTRACT)).map(decodeDeposit),
    requests: async () => (await logsOf(withdrawalRequestContract)).map(decodeRequestLog),
    async paymentsTo(address) {
      if (simulated) {
        const paid = await stack.beacon.withdrawals()
        return paid
          .filter((payment) => same(payment.address, address))
          .map(({ validatorIndex, amount }) => ({ validatorIndex: String(validatorIndex), amountGwei: amount }))
      }
      const payments: Payment[] = []
      for await (const { withdrawals = [] } of blocks())
        for (const payment of withdrawals)
          if (same(payment.address, address))
            payments.push({ validatorIndex: String(Number(payment.validatorIndex)), amountGwei: BigInt(payment.amount) })
      return payments
    },
    balance: async (address) => BigInt(await callRpc<Hex>(url, 'eth_getBalance', [address, 'latest'])),
    async spentBy(address) {
      let spent = 0n
      for await (const { transactions } of blocks()) {
        for (const { hash, from, value } of transactions) {
          if (!same(from, address)) continue
          const receipt = await callRpc<{ gasUsed: Hex; effectiveGasPrice: Hex; status: Hex }>(url, 'eth_getTransactionReceipt', [hash])
          spent += BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice) + (receipt.status === '0x1' ? BigInt(value) : 0n)
        }
      }
      return spent
    },
    timePasses: async () => {
      if (simulated) await stack.beacon.advanceEpochs(1)
    },
  }
}
