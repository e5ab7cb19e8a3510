import { gwei } from '../../lib/amounts.ts'
import { ChainError, type DepositLog } from './chain.ts'
import { decodeDepositLog } from './deposit-abi.ts'
import type { DepositNode } from './deposit-node.ts'
import { createLogReader } from './log-reader.ts'
import type { RawLog } from './rpc-formats.ts'

/** How far the deposit contract's logs were read: up to this block, which does not change any more, it had made `count` deposits. */
export interface DepositMark {
  readonly block: bigint
  readonly count: bigint
}

export interface DepositScan {
  /** Where the contract stands now, at the last block that does not change any more. @throws ChainError */
  depositMark(signal: AbortSignal): Promise<DepositMark>
  /**
   * The deposits of the blocks after a mark that do not change any more, in order, and the mark after them; of a long way, a part. None is left out: the contract
   * numbers them, and says how many it has. @throws ChainError
   */
  depositsAfter(mark: DepositMark, signal: AbortSignal): Promise<{ readonly mark: DepositMark; readonly deposits: readonly DepositLog[] }>
}

/** About a week. */
const maxBlocks = 50_000n

/** Goes through the deposits of everybody, from a mark that somebody keeps. */
export function createDepositScan(options: {
  /** Does something on the first node that can. */
  readonly first: <T>(use: (node: DepositNode) => Promise<T>, signal: AbortSignal) => Promise<T>
  readonly network: string
  readonly maxBlocks?: bigint
}): DepositScan {
  const { first, network } = options
  const reader = createLogReader()
  const incomplete = () =>
    new ChainError('unavailable', `the deposits of ${network} have a gap on this node: it left out logs of the deposit contract`)

  /** Deposits of a range, which the contract numbers from `count` on. */
  async function read(node: DepositNode, range: { from: bigint; to: bigint; boundary: bigint }, count: bigint, signal: AbortSignal) {
    const deposits: DepositLog[] = []
    for await (const { logs } of reader.read(node, range.from, range.to, range.boundary)) {
      signal.throwIfAborted()
      for (const raw of logs) {
        const deposit = depositOf(raw)
        if (deposit.index !== count + BigInt(deposits.length)) throw incomplete()
        deposits.push(deposit)
      }
    }
    return deposits
  }

  return {
    depositMark: (signal) =>
      first(async (node) => {
        const { settled } = await node.head()
        return { block: settled, count: await node.depositCount(settled) }
      }, signal),

    depositsAfter: (mark, signal) =>
      first(async (node) => {
        const { latest, settled } = await node.head()
        if (settled <= mark.block) return { mark, deposits: [] }
        const end = mark.block + (options.maxBlocks ?? maxBlocks)
        // What the contract counts, every node tells of its latest block: up to there it is read, and what may still change is left for the next time.
        const to = end < settled ? end : latest
        const deposits = await read(node, { from: mark.block + 1n, to, boundary: settled }, mark.count, signal)
        if (to === latest && (await node.depositCount(latest)) !== mark.count + BigInt(deposits.length)) throw incomplete()
        const block = to === latest ? settled : to
        const kept = deposits.filter(({ blockNumber }) => blockNumber <= block)
        return { mark: { block, count: mark.count + BigInt(kept.length) }, deposits: kept }
      }, signal),
  }
}

/** @throws ChainError */
function depositOf(raw: RawLog): DepositLog {
  try {
    const deposit = decodeDepositLog(raw)
    return { ...deposit, amountGwei: gwei(deposit.amountGwei), transactionHash: raw.transactionHash, blockNumber: raw.blockNumber }
  } catch {
    throw new ChainError('unavailable', 'a node answered with a DepositEvent that cannot be read')
  }
}
