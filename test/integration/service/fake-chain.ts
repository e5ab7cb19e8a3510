import {
  ChainError,
  type ChainErrorCode,
  type ChainReceipt,
  type ChainTransaction,
  type DepositLog,
  type EthereumChain,
  type Hex,
} from '../../../src/chains/ethereum/chain.ts'
import { wei } from '../../../src/lib/amounts.ts'

/** A chain as the tests say it is. */
export interface FakeChain extends EthereumChain {
  latest: bigint
  final: bigint
  readonly transactions: Map<Hex, ChainTransaction>
  readonly receipts: Map<Hex, ChainReceipt>
  /** The transaction that used a nonce, of whoever asks. Every test shares the chain: it is named, not found. */
  readonly usedBy: Map<number, Hex>
  /** Public keys that have a deposit already, of somebody else. */
  readonly deposited: Set<Hex>
  /** Deposits by public key. */
  readonly deposits: Map<Hex, readonly DepositLog[]>
  /** Every call fails with it, while set. */
  failing: ChainErrorCode | undefined
  /** Every call waits for it. */
  hold: Promise<void>
  /** Addresses of contracts, in lower case. */
  readonly contracts: Set<string>
  /** Public keys that were asked for. */
  readonly asked: Hex[]
  calls: number
}

export function createFakeChain(network: string): FakeChain {
  const deposit = (pubkey: Hex): DepositLog => ({
    pubkey,
    withdrawalCredentials: '0x',
    amountGwei: 0n as DepositLog['amountGwei'],
    signature: '0x',
    index: 0n,
    transactionHash: `0x${'d'.repeat(64)}` as const,
    blockNumber: 1n,
  })
  const unused = () => Promise.reject(new Error('the service does not call this'))
  async function answer<T>(make: () => T): Promise<T> {
    chain.calls++
    await chain.hold
    if (chain.failing !== undefined) throw new ChainError(chain.failing, 'the fake chain fails', 2_000)
    return make()
  }
  const chain: FakeChain = {
    network,
    latest: 10n,
    final: 8n,
    transactions: new Map(),
    receipts: new Map(),
    usedBy: new Map(),
    deposited: new Set(),
    contracts: new Set(),
    deposits: new Map(),
    failing: undefined,
    hold: Promise.resolve(),
    asked: [],
    calls: 0,
    head: () => answer(() => ({ latest: chain.latest, final: chain.final, baseFeePerGas: wei(1n) })),
    transaction: (hash) => answer(() => chain.transactions.get(hash)),
    receipt: (hash) => answer(() => chain.receipts.get(hash)),
    depositsFor: (pubkey) =>
      answer(() => {
        chain.asked.push(pubkey)
        return [...(chain.deposits.get(pubkey) ?? []), ...(chain.deposited.has(pubkey) ? [deposit(pubkey)] : [])]
      }),
    transactionCount: unused,
    balance: unused,
    priorityFee: unused,
    estimateGas: unused,
    code: (address) => answer(() => (chain.contracts.has(address.toLowerCase()) ? '0x60' : '0x') as Hex),
    storageGas: unused,
    broadcast: unused,
    genesisHash: unused,
    laneCounts: unused,
    trace: (hashes) =>
      answer(() => {
        const receipt = hashes.map((hash) => chain.receipts.get(hash)).find((one) => one !== undefined)
        const landed = receipt === undefined ? {} : receipt.blockNumber <= chain.final ? { final: receipt } : { mined: receipt }
        return { ...landed, lackedBy: new Map(), known: new Set(), silent: [] }
      }),
    finalEverywhere: unused,
    nonceUse: (_address, nonce) =>
      answer(() => {
        const hash = chain.usedBy.get(nonce)
        const [transaction, receipt] = hash === undefined ? [] : [chain.transactions.get(hash), chain.receipts.get(hash)]
        if (transaction === undefined || receipt === undefined || receipt.blockNumber > chain.final) return { is: 'unused' as const }
        return { is: 'used' as const, transaction, receipt }
      }),
    send: unused,
    requestLogs: unused,
    view: unused,
  }
  return chain
}
