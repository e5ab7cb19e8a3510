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
  /** All that came to and went from an address since `since`, in wei, up to one block: it must add up. */
  account(address: Address, since: Opening): Promise<Account>
  /** What the address holds now, to be told from later. */
  open(address: Address): Promise<Opening>
  /** Lets time pass: an epoch of the simulated beacon chain; on a real network, a moment. */
  timePasses(): Promise<void>
  readonly forkVersion: Hex
}

/** Wei at the end of a block. */
export interface Opening {
  readonly block: number
  readonly balance: bigint
}
export interface Account {
  readonly paid: bigint
  /** Values and fees of its transactions. */
  readonly spent: bigint
  readonly balance: bigint
}

interface Block {
  readonly transactions: readonly { readonly hash: Hex; readonly from: Address; readonly value: Hex }[]
  readonly withdrawals?: readonly { readonly validatorIndex: Hex; readonly address: Address; readonly amount: Hex }[]
}

export function readEthereum(stack: Pick<Stack, 'ethereum' | 'beacon'>, simulated: boolean): DemoEthereum {
  const { url, genesisForkVersion } = stack.ethereum
  const logsOf = (address: Address) => callRpc<readonly RpcLog[]>(url, 'eth_getLogs', [{ address, fromBlock: '0x0', toBlock: 'latest' }])
  const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase()
  const hexOf = (block: number) => `0x${block.toString(16)}`
  const latestBlock = async () => Number(await callRpc<Hex>(url, 'eth_blockNumber'))
  const balanceAt = async (address: Address, block: number) => BigInt(await callRpc<Hex>(url, 'eth_getBalance', [address, hexOf(block)]))
  async function* blocks(from: number, to: number): AsyncGenerator<Block> {
    for (let number = from; number <= to; number++) {
      const block = await callRpc<Block | null>(url, 'eth_getBlockByNumber', [hexOf(number), true])
      if (block !== null) yield block
    }
  }
  async function paymentsIn(address: Address, from: number, to: number): Promise<readonly Payment[]> {
    if (simulated) {
      // It pays past the blocks, from its genesis on, which is before anything is asked here.
      const paid = await stack.beacon.withdrawals()
      return paid
        .filter((payment) => same(payment.address, address))
        .map(({ validatorIndex, amount }) => ({ validatorIndex: String(validatorIndex), amountGwei: amount }))
    }
    const payments: Payment[] = []
    for await (const { withdrawals = [] } of blocks(from, to))
      for (const payment of withdrawals)
        if (same(payment.address, address))
          payments.push({ validatorIndex: String(Number(payment.validatorIndex)), amountGwei: BigInt(payment.amount) })
    return payments
  }
  async function spentIn(address: Address, from: number, to: number): Promise<bigint> {
    let spent = 0n
    for await (const { transactions } of blocks(from, to)) {
      for (const { hash, from: sender, value } of transactions) {
        if (!same(sender, address)) continue
        const receipt = await callRpc<{ gasUsed: Hex; effectiveGasPrice: Hex; status: Hex }>(url, 'eth_getTransactionReceipt', [hash])
        spent += BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice) + (receipt.status === '0x1' ? BigInt(value) : 0n)
      }
    }
    return spent
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
    paymentsTo: async (address) => paymentsIn(address, 0, await latestBlock()),
    async open(address) {
      const block = await latestBlock()
      return { block, balance: await balanceAt(address, block) }
    },
    async account(address, since) {
      const to = await latestBlock()
      const payments = await paymentsIn(address, since.block + 1, to)
      return {
        paid: payments.reduce((sum, { amountGwei }) => sum + amountGwei, 0n) * 1_000_000_000n,
        spent: await spentIn(address, since.block + 1, to),
        balance: await balanceAt(address, to),
      }
    },
    timePasses: async () => {
      if (simulated) await stack.beacon.advanceEpochs(1)
    },
  }
}
