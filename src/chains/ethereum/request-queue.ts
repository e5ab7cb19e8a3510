import { getAddress } from 'viem'
import type { Gwei } from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import { type Address, type BlockHash, ChainError, type Hash, type Hex } from './chain.ts'
import { decodeRequestCalldata, decodeRequestLog, type LoggedRequest, maxRequestsPerBlock, withdrawalRequestContract } from './requests.ts'

/*
 * Where a request stands in the queue of the EIP-7002 contract. A request waits there until a block's system call hands it on to the consensus layer:
 * 16 a block at most, in order, so one behind many others is judged many blocks later than the block that logged it.
 */

/** EIP-7002, Constants: WITHDRAWAL_REQUEST_QUEUE_HEAD_STORAGE_SLOT, …_QUEUE_TAIL_STORAGE_SLOT, …_QUEUE_STORAGE_OFFSET. An entry takes three slots. */
const headSlot = 2n
const tailSlot = 3n
const queueOffset = 4n
const slotsPerEntry = 3n
const perBlock = BigInt(maxRequestsPerBlock)
/** So far back the logs of the contract are counted: two days of mainnet, in which 230,000 requests are handed on. */
export const maxBlocksBack = 14_400n

export interface ChainBlock {
  readonly number: bigint
  readonly hash: BlockHash
  readonly parentHash: BlockHash
  /** Seconds since 1970. */
  readonly timestamp: number
  /** What the consensus layer pays in this block (EIP-4895); absent from chains without it. */
  readonly withdrawals?: readonly { readonly validatorIndex: number; readonly amountGwei: Gwei }[] | undefined
}

/** What the queue needs of the execution layer; `createEthereumChain` gives it. Every call throws `ChainError`. */
export interface QueueReads {
  /** A block of the canonical chain by its number, or a block by its hash; undefined when the node has none. */
  blockAt(at: bigint | Hex, signal: AbortSignal): Promise<ChainBlock | undefined>
  /**
   * Words of a contract's storage in the state after a canonical block (EIP-1898), in the order of `slots`. Undefined when no node keeps that state
   * any more, or no node serves the method.
   */
  storageAt(address: Address, slots: readonly bigint[], blockHash: BlockHash, signal: AbortSignal): Promise<readonly bigint[] | undefined>
  /** A contract's logs in a block, in order. */
  logsIn(
    address: Address,
    blockHash: BlockHash,
    signal: AbortSignal,
  ): Promise<readonly { readonly topics: readonly Hex[]; readonly data: Hex; readonly transactionHash: Hash }[]>
  /** How many logs of a contract canonical blocks have, both ends included. */
  countLogs(address: Address, from: bigint, to: bigint, signal: AbortSignal): Promise<number>
}

/** Whether a block that something was judged by is still in the chain. */
export interface BlockWitness {
  /** By all nodes; those that are behind the others count only where there are no others. Never throws for nodes that fail. */
  standing(block: { readonly number: bigint; readonly hash: BlockHash }, signal: AbortSignal): Promise<Standing>
}
export type Standing =
  /** Every node that has come that far has it. */
  | 'stands'
  /** One has it and another doesn't: one of them is on a fork. */
  | 'disputed'
  /** Every node has another one. */
  | 'left'
  | 'unknown'

/** Where a request stands in the queue, and the block whose turn it then is. It holds as long as the block that logged it is canonical. */
export interface KnownPlace {
  readonly position: bigint
  readonly turn: bigint
}

/** The block that handed a request on, and what else of this validator it handed on. */
export interface HandedOn {
  readonly is: 'handed on'
  readonly block: ChainBlock
  /** The validator's requests that the same block handed on, in order; this one is at `index`. */
  readonly batch: readonly LoggedRequest[]
  readonly index: number
}
export type QueuePlace =
  | HandedOn
  /** `turn`: the block that will hand it on. */
  | ({ readonly is: 'waiting' } & KnownPlace)
  /** No node has the block that logged it, or not the one that is canonical: look again. */
  | { readonly is: 'reorganised' }
  /** No node keeps the contract's storage of then. `passed`: it is not in the queue any more. `block`: the one whose turn it was, where that is known. */
  | { readonly is: 'not kept'; readonly passed: boolean; readonly block?: ChainBlock }
  /** The chain makes no system calls: the contract's queue never moves. A development chain such as anvil. */
  | { readonly is: 'no queue' }
  /** The queue has not moved as EIP-7002 says. */
  | { readonly is: 'unexpected' }

/**
 * Finds the block that hands a mined request on. The storage of a block is that after its system call, so a request in block B stands at
 * tail(B − 1) + (its number among the requests of B), and each block moves the head on by 16, or empties the queue and sets head and tail to 0.
 * That the head has passed the request is read from the state of the block whose turn it is, and not believed of arithmetic.
 *
 * However long the queue is: its place is told with `waiting`, to be handed in again, since nodes keep states for some 128 blocks only and more than
 * 2,000 requests take longer. Where it was not seen in time, what was logged after it tells the place.
 * @throws ChainError
 */
export async function placeInQueue(
  reads: QueueReads,
  mined: {
    readonly logged: LoggedRequest
    readonly blockHash: BlockHash
    readonly transactionHash: Hash
    /** The latest block that is known. */
    readonly latest: bigint
    /** As it was told before, of this very block. */
    readonly known?: KnownPlace | undefined
  },
  signal: AbortSignal,
): Promise<QueuePlace> {
  const { logged, blockHash, transactionHash } = mined
  const bounds = async (hash: BlockHash): Promise<Bounds | undefined> => {
    const words = await reads.storageAt(withdrawalRequestContract, [headSlot, tailSlot], hash, signal)
    return words === undefined ? undefined : { head: words[0] ?? 0n, tail: words[1] ?? 0n }
  }
  const own = await reads.blockAt(blockHash, signal)
  if (own === undefined) return { is: 'reorganised' }
  /** What was logged after it, up to the latest block, stands behind it: so its place is told from the queue's end now. */
  const notKept = async (known?: KnownPlace): Promise<QueuePlace> => {
    const latest = await reads.blockAt(mined.latest, signal)
    const now = latest === undefined ? undefined : await bounds(latest.hash)
    const turn = known === undefined || known.turn > mined.latest ? undefined : await reads.blockAt(known.turn, signal)
    const block = turn === undefined ? {} : { block: turn }
    if (latest === undefined || now === undefined || latest.number < own.number || latest.number - own.number > maxBlocksBack)
      return { is: 'not kept', passed: false, ...block }
    if (now.tail === 0n) return { is: 'not kept', passed: true, ...block }
    const { number, logs } = await numberIn(own)
    const later =
      latest.number === own.number ? 0 : await reads.countLogs(withdrawalRequestContract, own.number + 1n, latest.number, signal)
    const position = now.tail - 1n - BigInt(logs.length - 1 - number) - BigInt(later)
    // Before the head, or from a queue that was emptied since.
    if (position < now.head) return { is: 'not kept', passed: true, ...block }
    const words = await reads.storageAt(withdrawalRequestContract, slotsOf(position), latest.hash, signal)
    if (words === undefined || !isSame(decodeEntry(words), logged)) return { is: 'not kept', passed: false, ...block }
    return { is: 'waiting', position, turn: latest.number + 1n + (position - now.head) / perBlock }
  }
  const numberIn = async ({ number: block, hash }: ChainBlock) => {
    const logs = await reads.logsIn(withdrawalRequestContract, hash, signal)
    const number = logs.findIndex((log) => sameHex(log.transactionHash, transactionHash) && isSame(decodeRequestLog(log), logged))
    if (number === -1) throw new ChainError('unavailable', `a node left out a log of the EIP-7002 contract in block ${block}`)
    return { number, logs }
  }
  const before = mined.known === undefined ? await bounds(own.parentHash) : undefined
  if (before === undefined && mined.known === undefined) return notKept()
  if (before !== undefined && neverMoves(before)) return { is: 'no queue' }
  const { number, logs } = before === undefined ? { number: 0, logs: [] } : await numberIn(own)
  const position = before === undefined ? (mined.known?.position ?? 0n) : before.tail + BigInt(number)
  const turn = before === undefined ? (mined.known?.turn ?? 0n) : own.number + (position - before.head) / perBlock

  const block = await reads.blockAt(turn, signal)
  if (block === undefined) {
    // On a chain without system calls, the queue of the block itself tells.
    const now = await bounds(blockHash)
    return now !== undefined && neverMoves(now) ? { is: 'no queue' } : { is: 'waiting', position, turn }
  }
  if (turn === own.number && !sameHex(block.hash, blockHash)) return { is: 'reorganised' }
  const [from, to] = [turn === own.number ? before : await bounds(block.parentHash), await bounds(block.hash)]
  if (from === undefined || to === undefined) return notKept({ position, turn })
  if (neverMoves(to)) return { is: 'no queue' }
  const wasThere = turn === own.number || (from.head <= position && position < from.tail)
  const emptied = to.head === 0n && to.tail === 0n
  if (!wasThere || !(emptied || to.head > position)) return { is: 'unexpected' }

  const added = turn === own.number ? logs : emptied ? await reads.logsIn(withdrawalRequestContract, block.hash, signal) : []
  const end = emptied ? from.tail + BigInt(added.length) : to.head
  if (end <= position || end - from.head > perBlock) return { is: 'unexpected' }
  return readBatch(reads, { logged, block, from: from.head, end, position }, signal)
}

interface Bounds {
  readonly head: bigint
  readonly tail: bigint
}

/** A system call takes from the head whatever is there, so a block never ends with entries and a head of 0. */
const neverMoves = ({ head, tail }: Bounds): boolean => head === 0n && tail > 0n

/** The entries stay in storage after they were handed on, until others take their slots in a later block. */
async function readBatch(
  reads: QueueReads,
  given: {
    readonly logged: LoggedRequest
    readonly block: ChainBlock
    readonly from: bigint
    readonly end: bigint
    readonly position: bigint
  },
  signal: AbortSignal,
): Promise<QueuePlace> {
  const { logged, block, from, end, position } = given
  if (end - from === 1n) return { is: 'handed on', block, batch: [logged], index: 0 }
  const positions = Array.from({ length: Number(end - from) }, (_, number) => from + BigInt(number))
  const slots = positions.flatMap(slotsOf)
  const words = await reads.storageAt(withdrawalRequestContract, slots, block.hash, signal)
  if (words === undefined) return { is: 'not kept', passed: true, block }
  const entries = positions.map((at, number) => ({ at, request: decodeEntry(words.slice(number * 3, number * 3 + 3)) }))
  const batch = entries.filter(({ request }) => sameHex(request.request.pubkey, logged.request.pubkey))
  const index = batch.findIndex(({ at }) => at === position)
  const found = batch[index]
  if (found === undefined || !isSame(found.request, logged)) return { is: 'unexpected' }
  return { is: 'handed on', block, batch: batch.map(({ request }) => request), index }
}

const slotsOf = (position: bigint): readonly bigint[] => [0n, 1n, 2n].map((part) => queueOffset + slotsPerEntry * position + part)

/** An entry: the caller in the last 20 bytes of the first word; the calldata's 56 bytes in the other two. */
function decodeEntry([source = 0n, first = 0n, second = 0n]: readonly bigint[]): LoggedRequest {
  const text = (word: bigint): string => word.toString(16).padStart(64, '0')
  return {
    source: getAddress(`0x${text(source).slice(24)}`).toLowerCase() as Address,
    request: decodeRequestCalldata(`0x${text(first)}${text(second).slice(0, 48)}`),
  }
}

const amountOf = ({ request }: LoggedRequest): bigint => (request.kind === 'exit' ? 0n : request.amountGwei)
const isSame = (a: LoggedRequest, b: LoggedRequest): boolean =>
  sameHex(a.source, b.source) && sameHex(a.request.pubkey, b.request.pubkey) && amountOf(a) === amountOf(b)
