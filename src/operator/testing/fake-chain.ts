import { encodeAbiParameters, keccak256, parseTransaction, recoverTransactionAddress, toHex } from 'viem'
import {
  type Address,
  type BlockHash,
  ChainError,
  type ChainReceipt,
  type ChainTransaction,
  type ContractReads,
  type DepositLog,
  type EthereumChain,
  type Hash,
  type Hex,
  type Pubkey,
} from '../../chains/ethereum/chain.ts'
import { decodeDepositCalldata, depositDataRoot, depositEventTopic } from '../../chains/ethereum/deposit.ts'
import { decodeRequestCalldata, RequestEncodingError, withdrawalRequestContract } from '../../chains/ethereum/requests.ts'
import { fromAmsterdam } from '../../chains/ethereum/storage-gas.ts'
import { type Gwei, gwei, type Wei, wei } from '../../lib/amounts.ts'
import { createFakeNode, createFakeViews, type FakeNode, type PoolTransaction } from './fake-nodes.ts'

export type { FakeNode, PoolTransaction } from './fake-nodes.ts'

interface Mined {
  readonly transaction: PoolTransaction
  readonly success: boolean
  readonly deposit?: Omit<DepositLog, 'blockNumber' | 'transactionHash' | 'index'>
  /** Calldata of a request that the EIP-7002 contract took. */
  readonly request?: Hex
}
interface Block {
  readonly hash: BlockHash
  readonly mined: readonly Mined[]
}

const GAS_USED = 56_000n
const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

/** Who signed which bytes: to recover that costs more than all else of a sending, and a life that is lived again and again sends the same. */
const senders = new Map<Hex, Promise<Address>>()
const MOST_SENDERS = 5_000
function senderOf(raw: Hex): Promise<Address> {
  const known = senders.get(raw)
  if (known !== undefined) return known
  if (senders.size >= MOST_SENDERS) senders.clear()
  const recovered = recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` }).then((address) => address as Address)
  senders.set(raw, recovered)
  return recovered
}

/**
 * An Ethereum network in memory: nonces, balances, a pool with the nodes' rules for replacements, blocks, finality at a depth, reorgs, the deposit
 * contract and the EIP-7002 contract. What was ever sent may still be mined: `mine` can choose a version that the pool has replaced, as another node's would.
 * It is shown by one node or more, each of which a test can make behave badly (see fake-nodes.ts).
 */
export function createFakeChain(options: {
  readonly chainId: number
  readonly contract: Address
  readonly depth: number
  /** Default 1. */
  readonly nodes?: number
  /** Time of the latest block, in seconds since 1970; by default twelve for each. */
  readonly blockSeconds?: () => number
}) {
  const { chainId, contract } = options
  const blocks: Block[] = [{ hash: keccak256('0x00'), mined: [] }]
  const pool = new Map<string, PoolTransaction>()
  const nodes = Array.from({ length: options.nodes ?? 1 }, createFakeNode)
  const everSent = new Map<string, PoolTransaction>()
  const funds = new Map<string, bigint>()
  const violations: string[] = []
  const state = {
    depth: options.depth,
    baseFee: 10_000_000_000n,
    tip: 1_000_000_000n,
    minTip: 1n,
    /** By how much the time of the latest block is behind. */
    behindSeconds: 0,
    wrongChain: false,
    historySyncing: false,
    contractReverts: false,
    /** The pool takes nothing: what is sent is forgotten, though other nodes may have it. */
    forgetful: false,
    estimate: 60_000n,
    /** What the EIP-7002 contract asks for, in wei. */
    /** Contracts, by their address in lower case. */
    code: new Map<string, Hex>(),
    requestFee: 1n,
    /** A request that carries too little is mined all the same, and reverts. */
    requestsRevert: false,
  }
  let salt = 0

  const all = (): readonly Mined[] => blocks.flatMap((block) => block.mined)
  const upTo = (number: number): readonly Mined[] => blocks.slice(0, number + 1).flatMap((block) => block.mined)
  const latest = (): number => blocks.length - 1
  const final = (): number => Math.max(0, latest() - state.depth)
  const countAt = (address: string, number: number): number =>
    upTo(number).filter(({ transaction }) => same(transaction.from, address)).length
  const spentBy = (address: string): bigint =>
    all()
      .filter(({ transaction }) => same(transaction.from, address))
      .reduce((sum, { transaction, success }) => sum + (success ? transaction.valueWei : 0n) + GAS_USED * state.baseFee, 0n)
  const balanceOf = (address: string): bigint => (funds.get(address.toLowerCase()) ?? 0n) - spentBy(address)
  const heldBy = (node: FakeNode): readonly PoolTransaction[] => [...pool.values(), ...node.own.values()]
  const everywhere = (): readonly Map<string, PoolTransaction>[] => [pool, ...nodes.map(({ own }) => own)]
  const forgetNonce = (from: string, nonce: number): void => {
    for (const held of everywhere())
      for (const entry of [...held.values()]) if (same(entry.from, from) && entry.nonce === nonce) held.delete(entry.hash)
  }
  const findMined = (hash: string) => {
    for (const [number, block] of blocks.entries())
      for (const [position, mined] of block.mined.entries())
        if (same(mined.transaction.hash, hash)) return { number, position, block, mined }
    return undefined
  }
  const depositsOf = (pubkey: string): DepositLog[] => {
    let index = 0n
    return blocks
      .flatMap((block, number) =>
        block.mined.flatMap(({ transaction, deposit }) =>
          deposit === undefined ? [] : [{ ...deposit, index: index++, transactionHash: transaction.hash, blockNumber: BigInt(number) }],
        ),
      )
      .filter((deposit) => same(deposit.pubkey, pubkey))
  }

  function execute(transaction: PoolTransaction): Mined {
    if (same(transaction.to, withdrawalRequestContract)) {
      const success = isRequest(transaction.data) && transaction.valueWei >= state.requestFee && !state.requestsRevert
      return success ? { transaction, success, request: transaction.data } : { transaction, success }
    }
    if (state.contractReverts || !same(transaction.to, contract)) return { transaction, success: !same(transaction.to, contract) }
    try {
      const call = decodeDepositCalldata(transaction.data)
      const data = { ...call, amountGwei: gwei(transaction.valueWei / 1_000_000_000n) }
      if (depositDataRoot(data) !== call.depositDataRoot.toLowerCase()) return { transaction, success: false }
      const { depositDataRoot: _root, ...deposit } = data
      return { transaction, success: true, deposit }
    } catch {
      return { transaction, success: false }
    }
  }

  const pubkeyOf = (transaction: PoolTransaction): string | undefined => {
    try {
      return decodeDepositCalldata(transaction.data).pubkey.toLowerCase()
    } catch {
      return undefined
    }
  }
  /** A transaction that may still land beside this one, and would pay the same validator or ask for the same once more. */
  function watchForTwins(transaction: PoolTransaction): void {
    if (same(transaction.to, withdrawalRequestContract)) {
      for (const other of everSent.values()) {
        if (other.hash === transaction.hash || !same(other.to, transaction.to) || !same(other.data, transaction.data)) continue
        const mined = findMined(other.hash)
        const sameSlot = same(other.from, transaction.from) && other.nonce === transaction.nonce
        const lost = other.nonce < countAt(other.from, final()) && (mined === undefined || !mined.mined.success)
        if (!sameSlot && !lost)
          violations.push(`${transaction.data} can be asked twice: by nonce ${other.nonce} and by nonce ${transaction.nonce}`)
      }
      return
    }
    const pubkey = pubkeyOf(transaction)
    if (pubkey === undefined) return
    for (const other of everSent.values()) {
      if (other.hash === transaction.hash || pubkeyOf(other) !== pubkey) continue
      const sameSlot = same(other.from, transaction.from) && other.nonce === transaction.nonce
      const lost = other.nonce < countAt(other.from, final()) && findMined(other.hash) === undefined
      if (!sameSlot && !lost) violations.push(`${pubkey} can be paid twice: by nonce ${other.nonce} and by nonce ${transaction.nonce}`)
    }
  }

  const guard = (): void => {
    if (state.wrongChain) throw new ChainError('wrong-chain', 'the node serves chain id 5')
  }

  /** Throws what a node says to bytes that it does not take. */
  async function accept(raw: Hex, node: FakeNode): Promise<Hex> {
    const parsed = parseTransaction(raw)
    if (parsed.type !== 'eip1559' || parsed.to == null) throw new ChainError('rejected', 'not a transaction that this project makes')
    if (parsed.chainId !== chainId) throw new ChainError('wrong-chain', 'another chain id')
    const from = await senderOf(raw)
    const transaction: PoolTransaction = {
      hash: keccak256(raw),
      from,
      to: parsed.to,
      nonce: parsed.nonce ?? 0,
      data: parsed.data ?? '0x',
      valueWei: wei(parsed.value ?? 0n),
      gas: parsed.gas ?? 0n,
      maxFeePerGas: parsed.maxFeePerGas ?? 0n,
      maxPriorityFeePerGas: parsed.maxPriorityFeePerGas ?? 0n,
    }
    const held = heldBy(node)
    if (held.some(({ hash }) => hash === transaction.hash)) throw new ChainError('already-known', 'already known')
    if (transaction.nonce < views.minedBy(node, from, views.heightOf(node))) throw new ChainError('nonce-too-low', 'nonce too low')
    if (transaction.maxPriorityFeePerGas < state.minTip) throw new ChainError('underpriced', 'transaction underpriced')
    if (balanceOf(from) < transaction.valueWei + transaction.gas * transaction.maxFeePerGas)
      throw new ChainError('insufficient-funds', 'insufficient funds')
    const rival = held.find((entry) => same(entry.from, from) && entry.nonce === transaction.nonce)
    const enough = (next: bigint, old: bigint) => next * 100n >= old * 110n
    if (
      rival !== undefined &&
      !(enough(transaction.maxFeePerGas, rival.maxFeePerGas) && enough(transaction.maxPriorityFeePerGas, rival.maxPriorityFeePerGas))
    )
      throw new ChainError('replacement-underpriced', 'replacement transaction underpriced')
    watchForTwins(transaction)
    everSent.set(transaction.hash, transaction)
    if (!state.forgetful && !node.forgetful) {
      const takenBy = node.keepsToItself ? node.own : pool
      if (rival !== undefined) {
        takenBy.delete(rival.hash)
        node.own.delete(rival.hash)
      }
      takenBy.set(transaction.hash, transaction)
    }
    return transaction.hash
  }

  const receiptOf = (hash: Hash): ChainReceipt | undefined => {
    const found = findMined(hash)
    if (found === undefined) return undefined
    const { mined, block, number } = found
    const { transaction, success, deposit, request } = mined
    return {
      hash: transaction.hash,
      from: transaction.from,
      success,
      blockNumber: BigInt(number),
      blockHash: block.hash,
      gasUsed: GAS_USED,
      effectiveGasPrice: wei(state.baseFee),
      logs: [
        ...(deposit === undefined ? [] : [{ address: contract, topics: [depositEventTopic], data: depositEventData(deposit) }]),
        ...(request === undefined
          ? []
          : [{ address: withdrawalRequestContract, topics: [], data: `${transaction.from.toLowerCase()}${request.slice(2)}` as Hex }]),
      ],
    }
  }

  const requestsOf = (sender: Address, pubkey: Pubkey) =>
    blocks.flatMap(({ mined }, number) =>
      mined.flatMap(({ transaction, request }) => {
        const decoded = request === undefined ? undefined : decodeRequestCalldata(request)
        if (decoded === undefined || !same(transaction.from, sender) || !same(decoded.pubkey, pubkey)) return []
        const amountGwei: bigint = decoded.kind === 'exit' ? 0n : decoded.amountGwei
        return [{ amountGwei, transactionHash: transaction.hash, blockNumber: BigInt(number) }]
      }),
    )

  const views = createFakeViews(nodes, {
    latest,
    depth: () => state.depth,
    blockHash: (number) => blocks[number]?.hash ?? '0x',
    countAt,
    pool: () => pool.values(),
    minedAt: (hash) => findMined(hash)?.number,
    transaction: (hash) => findMined(hash)?.mined.transaction,
    receipt: receiptOf,
    foundBy: (address, nonce) =>
      all().find(({ transaction }) => same(transaction.from, address) && transaction.nonce === nonce)?.transaction.hash,
    requests: requestsOf,
    baseFee: () => wei(state.baseFee),
    blockSeconds: () => (options.blockSeconds?.() ?? latest() * 12) - state.behindSeconds,
    accept,
  })
  /** Every question fails while the configuration is that of another chain. */
  const guarded =
    <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      guard()
      return ask(...args)
    }
  const { port } = views

  const chain: EthereumChain & ContractReads = {
    network: 'hoodi',
    async genesisHash() {
      guard()
      return blocks[0]?.hash ?? '0x'
    },
    laneCounts: guarded(port.laneCounts),
    trace: guarded(port.trace),
    finalEverywhere: guarded(port.finalEverywhere),
    nonceUse: guarded(port.nonceUse),
    send: guarded(port.send),
    requestLogs: guarded(port.requestLogs),
    view: guarded(port.view),
    async head() {
      guard()
      const node = views.first()
      return { latest: BigInt(views.heightOf(node)), final: BigInt(views.finalOf(node)), baseFeePerGas: wei(state.baseFee) }
    },
    async transactionCount(address, at) {
      guard()
      if (at !== 'final') return views.countOn(views.first('eth_getTransactionCount'), address, at)
      const counts = nodes.map((node) => views.saneCounts(node, address)).find((one) => one !== undefined)
      if (counts === undefined) throw new ChainError('unavailable', 'no node counts sanely')
      return counts.final
    },
    async balance(address) {
      guard()
      views.first()
      return wei(balanceOf(address))
    },
    async priorityFee() {
      return wei(state.tip)
    },
    async estimateGas(call) {
      guard()
      views.first('eth_estimateGas')
      if (balanceOf(call.from) < call.valueWei) throw new ChainError('insufficient-funds', 'the sender does not hold enough')
      if (state.contractReverts) throw new ChainError('reverted', 'the call would be reverted by the contract')
      return state.estimate
    },
    async code(address) {
      guard()
      return state.code.get(address.toLowerCase()) ?? '0x'
    },
    async storageGas() {
      return fromAmsterdam
    },
    async broadcast(raw) {
      guard()
      const able = nodes.filter((node) => views.answers(node, 'eth_sendRawTransaction'))
      if (able.length === 0) throw new ChainError('unavailable', 'no node answers')
      const taken: Hex[] = []
      const errors: unknown[] = []
      for (const node of able) {
        try {
          taken.push(await accept(raw, node))
        } catch (error) {
          errors.push(error)
        }
      }
      const [hash] = taken
      if (hash === undefined) throw errors[0]
      return hash
    },
    async transaction(hash): Promise<ChainTransaction | undefined> {
      guard()
      views.first('eth_getTransactionByHash')
      return nodes.flatMap((node) => (node.silent ? [] : (views.transactionOn(node, hash) ?? [])))[0]
    },
    async receipt(hash): Promise<ChainReceipt | undefined> {
      guard()
      views.first('eth_getTransactionReceipt')
      return nodes.flatMap((node) => (node.silent ? [] : (views.receiptOn(node, hash) ?? [])))[0]
    },
    async call({ to, data }) {
      guard()
      if (!same(to, withdrawalRequestContract) || data !== '0x') return '0x'
      return `0x${state.requestFee.toString(16).padStart(64, '0')}`
    },
    async blockTime(blockNumber) {
      guard()
      return Number(blockNumber) * 12
    },
    async depositsFor(pubkey) {
      guard()
      if (state.historySyncing) throw new ChainError('history-syncing', 'the deposit history is being read', 5_000)
      const height = BigInt(views.heightOf(views.first('eth_getLogs')))
      return depositsOf(pubkey).filter(({ blockNumber }) => blockNumber <= height)
    },
  }

  return {
    chain,
    /** In the order of the configuration; the first is index 0. */
    nodes,
    state,
    violations,
    pool: () => [...pool.values()],
    everSent: () => [...everSent.values()],
    deposits: () =>
      all().flatMap(({ transaction, deposit, success }) =>
        deposit === undefined || !success ? [] : [{ ...deposit, from: transaction.from, nonce: transaction.nonce, hash: transaction.hash }],
      ),
    depositsFor: depositsOf,
    /** Requests that the EIP-7002 contract took. */
    requests: () =>
      all().flatMap(({ transaction, request }) =>
        request === undefined
          ? []
          : [
              {
                ...decodeRequestCalldata(request),
                from: transaction.from,
                nonce: transaction.nonce,
                valueWei: transaction.valueWei,
                hash: transaction.hash,
              },
            ],
      ),
    /** What became of a transaction, as the service's node sees it. */
    outcome(hash: string) {
      const found = findMined(hash)
      return found === undefined ? undefined : { success: found.mined.success, final: found.number <= final() }
    },
    height: latest,
    nonce: (address: string) => countAt(address, latest()),
    balance: balanceOf,
    spent: (address: string) => (funds.get(address.toLowerCase()) ?? 0n) - balanceOf(address),
    fund(address: string, amount: bigint) {
      funds.set(address.toLowerCase(), (funds.get(address.toLowerCase()) ?? 0n) + amount)
    },
    /** The pool forgets a transaction, as nodes do. */
    forget(hash?: string) {
      for (const held of everywhere()) {
        if (hash === undefined) held.clear()
        else held.delete(hash.toLowerCase())
      }
    },
    /** Mines blocks. `choose` picks among the versions of one nonce that were ever sent; by default the pool's own. */
    mine(
      count = 1,
      choose: (versions: readonly PoolTransaction[]) => PoolTransaction | undefined = (versions) =>
        versions.find(({ hash }) => pool.has(hash)),
    ) {
      for (let n = 0; n < count; n++) {
        const mined: Mined[] = []
        const block = { hash: keccak256(toHex(`block ${blocks.length} ${salt}`)), mined }
        blocks.push(block)
        const senders = new Set([...everSent.values()].map(({ from }) => from))
        for (const from of senders) {
          for (;;) {
            const nonce = countAt(from, latest())
            const versions = [...everSent.values()].filter(
              (entry) => same(entry.from, from) && entry.nonce === nonce && entry.maxFeePerGas >= state.baseFee,
            )
            const chosen = versions.length === 0 ? undefined : choose(versions)
            if (chosen === undefined || balanceOf(from) < chosen.valueWei) break
            mined.push(execute(chosen))
            forgetNonce(from, nonce)
          }
        }
      }
    },
    /** Takes blocks back. Their transactions return to the pool, or are forgotten. */
    reorg(count: number, forget = false) {
      salt += 1
      for (const block of blocks.splice(-count))
        if (!forget) for (const { transaction } of block.mined) pool.set(transaction.hash, transaction)
    },
    /** A transaction of somebody else, or of this key elsewhere, mined at once. */
    mineForeign(transaction: { from: Address; to?: Address; data?: Hex; valueWei?: bigint }) {
      const nonce = countAt(transaction.from, latest())
      const made: PoolTransaction = {
        hash: keccak256(toHex(`foreign ${blocks.length} ${nonce} ${transaction.from} ${salt++}`)),
        from: transaction.from,
        to: transaction.to ?? '0x00000000000000000000000000000000000000aa',
        nonce,
        data: transaction.data ?? '0x',
        valueWei: (transaction.valueWei ?? 0n) as Wei,
        gas: 100_000n,
        maxFeePerGas: state.baseFee,
        maxPriorityFeePerGas: 1n,
      }
      forgetNonce(made.from, nonce)
      blocks.push({ hash: keccak256(toHex(`foreign block ${blocks.length} ${salt}`)), mined: [execute(made)] })
      return made.hash
    },
  }
}
export type FakeChain = ReturnType<typeof createFakeChain>

function isRequest(data: Hex): boolean {
  try {
    decodeRequestCalldata(data)
    return true
  } catch (error) {
    if (error instanceof RequestEncodingError) return false
    throw error
  }
}

function depositEventData({
  pubkey,
  withdrawalCredentials,
  amountGwei,
  signature,
}: {
  pubkey: Pubkey
  withdrawalCredentials: Hex
  amountGwei: Gwei
  signature: Hex
}): Hex {
  const littleEndian = (value: bigint): Hex => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64LE(value)
    return `0x${bytes.toString('hex')}`
  }
  return encodeAbiParameters(
    [{ type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }, { type: 'bytes' }],
    [pubkey, withdrawalCredentials, littleEndian(amountGwei), signature, littleEndian(0n)],
  )
}
