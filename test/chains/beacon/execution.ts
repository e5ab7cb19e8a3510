import type { Hex } from '../../../src/chains/ethereum/chain.ts'
import type { Anvil } from '../anvil.ts'
import { DEPOSIT_CONTRACT, decodeDeposit, type RpcLog } from '../deposit-contract.ts'
import type { DepositRequest, WithdrawalRequest } from './state.ts'

/** EIP-7002. */
export const REQUEST_CONTRACT: Hex = '0x00000961Ef480Eb55e80D19ad83579A64c007002'

/** What a block of the execution layer asks of the consensus layer. */
export interface ExecutionBlock {
  readonly number: number
  readonly hash: Hex
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly deposits: readonly DepositRequest[]
  readonly withdrawalRequests: readonly WithdrawalRequest[]
}

export async function blockByNumber(
  anvil: Anvil,
  tag: number | 'latest',
): Promise<{ number: number; hash: Hex; timestamp: number } | undefined> {
  const at = tag === 'latest' ? tag : `0x${tag.toString(16)}`
  const block = await anvil.rpc<{ number: Hex; hash: Hex; timestamp: Hex } | null>('eth_getBlockByNumber', [at, false])
  return block === null ? undefined : { number: Number(block.number), hash: block.hash, timestamp: Number(block.timestamp) }
}

/** The blocks from one to another that ask for something, and the last one. */
export async function readBlocks(anvil: Anvil, from: number, to: number): Promise<readonly ExecutionBlock[]> {
  const logs = await anvil.rpc<readonly (RpcLog & { readonly address: Hex; readonly blockHash: Hex })[]>('eth_getLogs', [
    { address: [DEPOSIT_CONTRACT, REQUEST_CONTRACT], fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}` },
  ])
  const numbers = [...new Set([...logs.map(({ blockNumber }) => Number(blockNumber)), to])].toSorted((a, b) => a - b)
  const blocks: ExecutionBlock[] = []
  for (const number of numbers) {
    const block = await blockByNumber(anvil, number)
    if (block === undefined) throw new Error(`block ${number} is gone: reorganised meanwhile`)
    const own = logs.filter(({ blockNumber }) => Number(blockNumber) === number)
    if (own.some(({ blockHash }) => blockHash !== block.hash)) throw new Error(`block ${number} was replaced while it was read`)
    const of = (contract: Hex) => own.filter(({ address }) => address.toLowerCase() === contract.toLowerCase())
    blocks.push({
      ...block,
      deposits: of(DEPOSIT_CONTRACT).map((log) => {
        const { pubkey, withdrawalCredentials, amountGwei, signature } = decodeDeposit(log)
        return { pubkey, withdrawalCredentials, amount: amountGwei, signature }
      }),
      withdrawalRequests: of(REQUEST_CONTRACT).map(({ data }) => decodeRequest(data)),
    })
  }
  return blocks
}

/** EIP-7002's log: caller (20 bytes), pubkey (48), amount (8, the most significant byte first). */
const decodeRequest = (data: Hex): WithdrawalRequest => ({
  sourceAddress: data.slice(0, 42) as Hex,
  validatorPubkey: `0x${data.slice(42, 138)}`,
  amount: BigInt(`0x${data.slice(138, 154)}`),
})
