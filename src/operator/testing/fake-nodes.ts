import { keccak256, toHex } from 'viem'
import {
  type Address,
  type BlockHash,
  ChainError,
  type ChainErrorCode,
  type ChainReceipt,
  type ChainTransaction,
  type EthereumChain,
  type FinalBlock,
  type Hash,
  type Hex,
  type Pubkey,
  type RequestLog,
  type Sent,
} from '../../chains/ethereum/chain.ts'
import { laneCountsOf } from '../../chains/ethereum/lane-counts.ts'
import { heightsOf, isSameResult, type NodeLook, traceOf } from '../../chains/ethereum/trace.ts'
import type { Wei } from '../../lib/amounts.ts'

/** How one node of the fake chain behaves; a test sets what it wants, at any time. All healthy at first. */
export interface FakeNode {
  /** It does not answer. */
  silent: boolean
  /** It stands still at this height: old head, old counts. */
  stillAt: number | undefined
  /** So many blocks behind. */
  lag: number
  /** Its blocks have other hashes from this height on; `without`: hashes of transactions that its fork does not hold, nor counts. */
  fork: { readonly from: number; readonly without?: readonly Hex[] } | undefined
  /** Answers for a final block as for the pool. */
  liesAboutFinal: boolean
  /** Takes what is sent and forgets it. */
  forgetful: boolean
  /** Keeps what is sent to it in its own pool and tells nobody. */
  keepsToItself: boolean
  /** JSON-RPC methods that it refuses. */
  readonly refuses: Set<string>
  /** What it says to bytes that it takes, such as `replacement-underpriced`. */
  answersTaken: ChainErrorCode | undefined
  /** Receipts of blocks that left the chain, which it still shows, by hash in lower case. */
  readonly stale: Map<string, ChainReceipt>
  /** What it says of receipts instead of the truth, by hash in lower case. */
  readonly distorts: Map<string, Partial<ChainReceipt>>
  /** What it alone holds, by hash. */
  readonly own: Map<string, PoolTransaction>
}
export interface PoolTransaction extends ChainTransaction {
  readonly to: Address
  readonly gas: bigint
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

export const createFakeNode = (): FakeNode => ({
  silent: false,
  stillAt: undefined,
  lag: 0,
  fork: undefined,
  liesAboutFinal: false,
  forgetful: false,
  keepsToItself: false,
  refuses: new Set(),
  answersTaken: undefined,
  stale: new Map(),
  distorts: new Map(),
  own: new Map(),
})

/** The truth that the nodes show, each in its way. */
export interface Truth {
  readonly latest: () => number
  readonly depth: () => number
  readonly blockHash: (number: number) => BlockHash
  readonly countAt: (address: string, number: number) => number
  readonly pool: () => Iterable<PoolTransaction>
  readonly minedAt: (hash: Hash) => number | undefined
  readonly transaction: (hash: Hash) => ChainTransaction | undefined
  readonly receipt: (hash: Hash) => ChainReceipt | undefined
  readonly foundBy: (address: Address, nonce: number) => Hash | undefined
  readonly requests: (sender: Address, pubkey: Pubkey) => readonly Omit<RequestLog, 'blockHash'>[]
  readonly baseFee: () => Wei
  /** Time of the latest block, in seconds since 1970. */
  readonly blockSeconds: () => number
  readonly accept: (raw: Hex, node: FakeNode) => Promise<Hash>
}

/** A few blocks behind the highest is no illness. */
const allowedLag = 3
const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

/** What the nodes of the fake chain show, and the port's questions to all of them, judged by the same rules as those of a real chain. */
export function createFakeViews(nodes: readonly FakeNode[], truth: Truth) {
  const heightOf = (node: FakeNode): number => Math.max(0, Math.min(node.stillAt ?? Number.POSITIVE_INFINITY, truth.latest() - node.lag))
  const finalOf = (node: FakeNode): number => Math.max(0, heightOf(node) - truth.depth())
  const best = (): number => Math.max(...nodes.filter(({ silent }) => !silent).map(heightOf))
  const isHealthy = (node: FakeNode): boolean => !node.silent && heightOf(node) >= best() - allowedLag
  const answers = (node: FakeNode, ...methods: readonly string[]): boolean =>
    !node.silent && !methods.some((method) => node.refuses.has(method))
  const unavailable = () => new ChainError('unavailable', 'no node answers')

  const isForked = ({ fork }: FakeNode, number: number): boolean => fork !== undefined && number >= fork.from
  const hashOn = (node: FakeNode, number: number): Hex => {
    const hash = truth.blockHash(number)
    return isForked(node, number) ? keccak256(toHex(`a fork of ${hash}`)) : hash
  }
  const poolOf = (node: FakeNode): readonly PoolTransaction[] => [...truth.pool(), ...node.own.values()]
  /** The block that holds it on this node. */
  const minedOn = (node: FakeNode, hash: Hash): number | undefined => {
    const number = truth.minedAt(hash)
    if (number === undefined || number > heightOf(node)) return undefined
    return isForked(node, number) && node.fork?.without?.some((one) => same(one, hash)) ? undefined : number
  }
  /** Mined as the node has it: a fork does not count what it does not hold. */
  const minedBy = (node: FakeNode, address: string, number: number): number => {
    const left = (node.fork?.without ?? []).filter((hash) => {
      const at = truth.minedAt(hash)
      return at !== undefined && at <= number && isForked(node, at) && same(truth.transaction(hash)?.from ?? '', address)
    })
    return truth.countAt(address, number) - left.length
  }
  const countOn = (node: FakeNode, address: string, at: 'final' | 'latest' | 'pending'): number => {
    if (at === 'final' && !node.liesAboutFinal) return minedBy(node, address, finalOf(node))
    let count = minedBy(node, address, heightOf(node))
    const pool = poolOf(node)
    if (at !== 'latest') while (pool.some((one) => same(one.from, address) && one.nonce === count)) count++
    return count
  }
  const saneCounts = (node: FakeNode, address: string) => {
    if (!answers(node, 'eth_getTransactionCount')) return undefined
    const counts = {
      final: countOn(node, address, 'final'),
      latest: countOn(node, address, 'latest'),
      pending: countOn(node, address, 'pending'),
    }
    return counts.final <= counts.latest && counts.latest <= counts.pending ? counts : undefined
  }
  const receiptOn = (node: FakeNode, hash: Hash): ChainReceipt | undefined => {
    const stale = node.stale.get(hash.toLowerCase())
    if (stale !== undefined) return stale
    const number = minedOn(node, hash)
    const receipt = truth.receipt(hash)
    return number === undefined || receipt === undefined
      ? undefined
      : { ...receipt, blockHash: hashOn(node, number), ...node.distorts.get(hash.toLowerCase()) }
  }
  const transactionOn = (node: FakeNode, hash: Hash): ChainTransaction | undefined => {
    const number = minedOn(node, hash)
    const mined = truth.transaction(hash)
    if (number !== undefined && mined !== undefined) return { ...mined, blockNumber: BigInt(number), blockHash: hashOn(node, number) }
    return poolOf(node).find((one) => same(one.hash, hash))
  }
  const lookOf = (node: FakeNode, index: number, hashes: readonly Hex[]): NodeLook => {
    const found = new Map(hashes.map((hash) => [hash, { transaction: transactionOn(node, hash), receipt: receiptOn(node, hash) }] as const))
    const everywhere = nodes.map((one) => ({
      found: new Map(hashes.map((hash) => [hash, { transaction: transactionOn(one, hash), receipt: receiptOn(one, hash) }] as const)),
    }))
    const heights = heightsOf(everywhere).filter((height) => height <= BigInt(heightOf(node)))
    const blocks = new Map(heights.map((height) => [height, { hash: hashOn(node, Number(height)) }] as const))
    return { index, healthy: isHealthy(node), latest: BigInt(heightOf(node)), final: BigInt(finalOf(node)), found, blocks }
  }

  const finalEverywhere = (block: FinalBlock): 'agreed' | 'disagreed' | 'unknown' => {
    const number = Number(block.number)
    const { hash, receipt } = block.holds ?? {}
    const seen = nodes.map((node) => {
      if (!answers(node, 'eth_getBlockByNumber') || number > heightOf(node)) return 'unknown'
      if (!same(hashOn(node, number), block.hash)) return 'disagreed'
      if (hash !== undefined && minedOn(node, hash) !== number) return 'disagreed'
      const its = receipt && receiptOn(node, receipt.hash)
      if (its !== undefined && receipt !== undefined && !isSameResult(its, receipt)) return 'disagreed'
      return number > finalOf(node) ? 'unknown' : 'agreed'
    })
    return seen.includes('disagreed') ? 'disagreed' : seen.includes('unknown') ? 'unknown' : 'agreed'
  }

  /** The first healthy one that answers, else the first that answers. */
  const first = (...methods: readonly string[]): FakeNode => {
    const able = nodes.filter((node) => answers(node, ...methods))
    const node = able.find(isHealthy) ?? able[0]
    if (node === undefined) throw unavailable()
    return node
  }

  const port: Pick<EthereumChain, 'laneCounts' | 'trace' | 'finalEverywhere' | 'nonceUse' | 'send' | 'requestLogs' | 'view'> = {
    async laneCounts(address) {
      const counts = nodes.map((node) => saneCounts(node, address))
      if (counts.every((one) => one === undefined)) throw unavailable()
      return laneCountsOf(counts)
    },
    async trace(given) {
      const hashes = [...new Set(given.map((hash) => hash.toLowerCase() as Hex))]
      const able = nodes.map((node) => answers(node, 'eth_getTransactionByHash', 'eth_getTransactionReceipt', 'eth_getBlockByNumber'))
      const looks = nodes.flatMap((node, index) => (able[index] ? [lookOf(node, index, hashes)] : []))
      if (looks.length === 0) throw unavailable()
      const silent = nodes.flatMap((_, index) => (able[index] ? [] : [index]))
      return traceOf(hashes, looks, silent)
    },
    async finalEverywhere(block) {
      return finalEverywhere(block)
    },
    async nonceUse(address, nonce) {
      const counts = nodes.map((node) => saneCounts(node, address))
      if (counts.some((one) => one !== undefined && one.final <= nonce)) return { is: 'unused' }
      if (counts.includes(undefined)) return { is: 'unproven', why: 'a node did not answer sanely' }
      const hash = truth.foundBy(address, nonce)
      const able = nodes.filter((node) => answers(node, 'eth_getBlockByNumber', 'eth_getTransactionReceipt'))
      const node = hash === undefined ? undefined : able.find((one) => receiptOn(one, hash) !== undefined)
      const transaction = node === undefined || hash === undefined ? undefined : transactionOn(node, hash)
      const receipt = node === undefined || hash === undefined ? undefined : receiptOn(node, hash)
      if (transaction === undefined || receipt === undefined)
        return { is: 'unproven', why: 'no node can name the transaction that used the nonce' }
      const verdict = finalEverywhere({ number: receipt.blockNumber, hash: receipt.blockHash, holds: { hash: transaction.hash } })
      if (verdict === 'agreed') return { is: 'used', transaction, receipt }
      return {
        is: 'unproven',
        why: verdict === 'disagreed' ? 'the nodes have different blocks there' : 'not every node shows the block as final',
      }
    },
    async send(raw, chosen) {
      const sent: Sent[] = []
      for (const [index, node] of nodes.entries()) {
        if (chosen !== 'all' && !chosen.includes(index)) continue
        if (!answers(node, 'eth_sendRawTransaction')) {
          sent.push({ node: index, is: 'refused', code: node.silent ? 'unavailable' : 'rejected' })
          continue
        }
        const code = await truth.accept(raw, node).then(
          () => node.answersTaken,
          (error: unknown) => {
            if (!(error instanceof ChainError)) throw error
            return error.code === 'already-known' ? undefined : error.code
          },
        )
        sent.push(code === undefined ? { node: index, is: 'taken' } : { node: index, is: 'refused', code })
      }
      return sent
    },
    async requestLogs({ sender, pubkey, fromBlock }) {
      const able = nodes.filter((node) => isHealthy(node) && answers(node, 'eth_getLogs'))
      if (able.length === 0) throw unavailable()
      return truth.requests(sender, pubkey).flatMap((log) => {
        const node = able.find((one) => minedOn(one, log.transactionHash) !== undefined)
        if (node === undefined || log.blockNumber < fromBlock) return []
        return [{ ...log, blockHash: hashOn(node, Number(log.blockNumber)) }]
      })
    },
    async view() {
      const node = first('eth_getBlockByNumber')
      const number = heightOf(node)
      const final = finalOf(node)
      return {
        latest: { number: BigInt(number), hash: hashOn(node, number), timestamp: truth.blockSeconds() },
        final: { number: BigInt(final), hash: hashOn(node, final) },
        baseFeePerGas: truth.baseFee(),
      }
    },
  }
  return { port, first, heightOf, finalOf, minedBy, countOn, saneCounts, poolOf, receiptOn, transactionOn, answers, isHealthy }
}
