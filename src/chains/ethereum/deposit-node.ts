import { decodeFunctionResult, encodeFunctionData } from 'viem'
import { z } from 'zod'
import { RpcFailure } from '../../lib/json-rpc.ts'
import type { BlockHash, Hex } from './chain.ts'
import { depositContractAbi, depositEventTopic } from './deposit-abi.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import { blockRef, type RawLog, rawLog, read, toHex } from './rpc-formats.ts'
import type { RpcNode } from './rpc-nodes.ts'

/** What the deposit history reads from one node. Ranges include both ends. All throw `RpcFailure`. */
export interface DepositNode {
  /** `settled`: blocks up to here do not change any more. */
  head(): Promise<{ readonly latest: bigint; readonly hash: BlockHash; readonly settled: bigint }>
  /** Every DepositEvent of the range, in order. */
  logs(from: bigint, to: bigint): Promise<readonly RawLog[]>
  /** The contract's own count of deposits at a block. */
  depositCount(at: bigint): Promise<bigint>
  /** The contract's own root of all its deposits at a block. */
  depositRoot(at: bigint): Promise<Hex>
  /** The hash of a canonical block; undefined where the node has none. */
  blockHash(number: bigint): Promise<Hex | undefined>
}

/** Where finality is a depth of the configuration's choice, the history still expects this many blocks to change (two epochs). */
const minimumDepth = 64n

const getDepositRoot = encodeFunctionData({ abi: depositContractAbi, functionName: 'get_deposit_root' })
const hash32 = z.string().regex(/^0x[0-9a-fA-F]{64}$/)
const getDepositCount = encodeFunctionData({ abi: depositContractAbi, functionName: 'get_deposit_count' })

export function depositNode({
  node,
  config,
  headOf,
  signal,
}: {
  readonly node: RpcNode
  readonly config: EthereumNetworkConfig
  readonly headOf: () => Promise<{ readonly latest: bigint; readonly final: bigint; readonly hash: BlockHash }>
  readonly signal: AbortSignal
}): DepositNode {
  const address = config.depositContractAddress
  return {
    head: async () => {
      const { latest, final, hash } = await headOf()
      const deep = latest > minimumDepth ? latest - minimumDepth : 0n
      return { latest, hash, settled: config.confirmations === 'finalized' || final < deep ? final : deep }
    },
    logs: async (from, to) => {
      const filter = { address, topics: [depositEventTopic], fromBlock: toHex(from), toBlock: toHex(to) }
      const logs = read(z.array(rawLog), await node.call('eth_getLogs', [filter], signal), 'eth_getLogs')
      const wrong = logs.some(
        (log) =>
          log.removed ||
          log.address.toLowerCase() !== address.toLowerCase() ||
          log.topics[0] !== depositEventTopic ||
          log.blockNumber < from ||
          log.blockNumber > to,
      )
      if (wrong) throw new RpcFailure('no-answer', 'the node answered eth_getLogs with logs that were not asked for')
      return logs
    },
    depositRoot: async (at) =>
      read(
        hash32,
        await node.call('eth_call', [{ to: address, data: getDepositRoot }, toHex(at)], signal),
        'get_deposit_root',
      ).toLowerCase() as Hex,
    blockHash: async (number) => {
      const answer = await node.call('eth_getBlockByNumber', [toHex(number), false], signal)
      return answer === null ? undefined : read(blockRef, answer, 'eth_getBlockByNumber').hash
    },
    depositCount: async (at) => {
      const result = await node.call('eth_call', [{ to: address, data: getDepositCount }, toHex(at)], signal)
      try {
        const bytes = decodeFunctionResult({
          abi: depositContractAbi,
          functionName: 'get_deposit_count',
          data: z.string().parse(result) as Hex,
        })
        return Buffer.from(bytes.slice(2), 'hex').readBigUInt64LE()
      } catch {
        throw new RpcFailure('no-answer', 'the node gave no deposit count: is the address that of a deposit contract?')
      }
    },
  }
}
