import { gwei } from '../../lib/amounts.ts'
import { ChainError, type DepositLog } from './chain.ts'
import { depositDataRoot } from './deposit.ts'
import { decodeDepositLog } from './deposit-abi.ts'
import type { DepositCheckpoint } from './deposit-checkpoint.ts'
import type { DepositNode } from './deposit-node.ts'
import { createDepositTree } from './deposit-tree.ts'
import type { LogReader } from './log-reader.ts'
import type { RawLog } from './rpc-formats.ts'

/** @throws ChainError `unavailable` */
export function decode(raw: RawLog) {
  try {
    return decodeDepositLog(raw)
  } catch {
    throw new ChainError('unavailable', 'a node answered with a DepositEvent that cannot be read')
  }
}

export function toDepositLog(raw: RawLog): DepositLog {
  const deposit = decode(raw)
  return { ...deposit, amountGwei: gwei(deposit.amountGwei), transactionHash: raw.transactionHash, blockNumber: raw.blockNumber }
}

/** The contract's tree of all deposits up to a block, as one node shows them, on top of those of a checkpoint. */
async function treeTo(
  node: DepositNode,
  reader: LogReader,
  range: { readonly from: bigint; readonly to: bigint },
  signal: AbortSignal,
  checkpoint?: DepositCheckpoint,
) {
  const tree = createDepositTree(checkpoint)
  for await (const { logs } of reader.read(node, range.from, range.to, range.to)) {
    signal.throwIfAborted()
    for (const raw of logs) {
      const deposit = decode(raw)
      if (deposit.index === tree.count) tree.add(depositDataRoot({ ...deposit, amountGwei: gwei(deposit.amountGwei) }))
    }
  }
  return tree
}

/**
 * A checkpoint is proven when its block is in the chain, and its tree with all deposits since then has the root that the contract itself has now: no other
 * deposits than the contract's, and none less, give that. @returns why it is not
 */
export async function disproof(
  node: DepositNode,
  reader: LogReader,
  latest: bigint,
  checkpoint: DepositCheckpoint,
  signal: AbortSignal,
): Promise<string | undefined> {
  if ((await node.blockHash(checkpoint.block)) !== checkpoint.blockHash) return `block ${checkpoint.block} of the chain is another one`
  const tree = await treeTo(node, reader, { from: checkpoint.block + 1n, to: latest }, signal, checkpoint)
  return tree.root() === (await node.depositRoot(latest)) ? undefined : 'the contract has another deposit root'
}

/**
 * The tree of all deposits up to a block, and that block's hash, once the contract has the same root there.
 * @param given `count`: how many deposits the history has when they were read @throws ChainError `unavailable`
 */
export async function provenTree(
  node: DepositNode,
  reader: LogReader,
  given: { readonly network: string; readonly from: bigint; readonly block: bigint; readonly count: () => bigint },
  signal: AbortSignal,
): Promise<Pick<DepositCheckpoint, 'blockHash' | 'count' | 'branch'>> {
  const { network, from, block } = given
  const blockHash = await node.blockHash(block)
  if (blockHash === undefined) throw new ChainError('unavailable', `a node of ${network} does not have block ${block}`)
  const tree = await treeTo(node, reader, { from, to: block }, signal)
  if (tree.count !== given.count() || tree.root() !== (await node.depositRoot(block)))
    throw new ChainError('unavailable', `the deposits that a node of ${network} shows are not those that the contract counts`)
  const { count, branch } = tree
  return { blockHash, count, branch }
}
