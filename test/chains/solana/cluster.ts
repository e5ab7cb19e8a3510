import { Keypair, PublicKey, SystemProgram, Transaction } from '@solana/web3.js'
import type { StakeHistoryEntry } from '../../../src/chains/solana/sysvars.ts'
import { type Block, createLedger, type Fate, type Ledger, type LedgerOptions } from './ledger.ts'
import { type NodeServer, startNodeServer } from './node-server.ts'
import { createMethods, type NodeState } from './rpc-methods.ts'
import { createValidator, type Validator, type ValidatorOptions } from './vote-accounts.ts'

export type { Block } from './ledger.ts'
export type { Validator, ValidatorOptions } from './vote-accounts.ts'

export interface SolanaClusterOptions {
  /** Makes a block every so many ms; without it, blocks are made by hand. */
  readonly slotMs?: number
  /** Default 432. */
  readonly slotsPerEpoch?: number
  /** Default 600. */
  readonly startEpoch?: number
  /** Blocks on top that make a block confirmed and finalized. Default 1 and 4; the real cluster's 31 or so only take longer. */
  readonly lag?: { readonly confirmed: number; readonly finalized: number }
  /** The stake of everybody else, in lamports: what warm-up and cool-down are reckoned by. Default 380,000,000 SOL, of which little moves. */
  readonly clusterStake?: StakeHistoryEntry
  /** What `getStakeMinimumDelegation` tells; the stake program's own minimum is 1. Default 1. */
  readonly minimumDelegation?: bigint
}

/** One RPC node of the cluster, and what is wrong with it. */
export interface SolanaNode {
  readonly url: string
  readonly calls: NodeServer['calls']
  /** It sees the cluster as it was so many blocks ago. */
  lag(blocks: number): void
  /** It refuses preflights and health checks, and says that it is so many slots behind; undefined ends that. */
  unhealthy(slotsBehind: number | undefined): void
  /** Forgets every transaction up to now. With `silently`, `getFirstAvailableBlock` does not admit it. */
  loseHistory(options?: { readonly silently?: boolean }): void
  /** Answers a method late; the work is done at once. 0 ends that. */
  answerLate(method: string, ms: number): void
  /** Says that it serves another genesis; undefined ends that. */
  claimGenesis(hash: string | undefined): void
  /** What becomes of the next transactions that this node takes: each strikes once for every sending. */
  fate(fate: Fate, times?: number): void
  close(): Promise<void>
}

/**
 * A simulator of a Solana cluster: JSON-RPC, blocks, expiry, commitments and epochs are made here; the system, stake and vote programs that
 * execute every transaction are the real ones, by litesvm. There is no consensus, no leader, no rewards, and no WebSocket.
 */
export interface SolanaCluster {
  /** The first node's. */
  readonly url: string
  readonly node: SolanaNode
  readonly genesisHash: string
  readonly ledger: Ledger
  addNode(): Promise<SolanaNode>
  addValidator(options?: ValidatorOptions): Validator
  /** Adds lamports to an account, as if it always had had them. */
  fund(address: string, lamports: bigint): void
  /** Lamports at the newest block. */
  balance(address: string): bigint
  /** Makes blocks; default one. */
  produce(blocks?: number): Block
  /** Makes blocks until what is in the pool is final. */
  settle(): Block
  /** Enters the next epoch, with as many blocks as make it final. */
  nextEpoch(epochs?: number): Block
  setClusterStake(stake: StakeHistoryEntry): void
  setMinimumDelegation(lamports: bigint): void
  /** Micro-lamports a compute unit that `getRecentPrioritizationFees` tells. */
  setRecentPriorityFee(microLamports: bigint): void
  /** The period at an epoch's start in which the stake program refuses every change. */
  setEpochRewards(active: boolean): void
  close(): Promise<void>
}

const sol = 1_000_000_000n
const defaults = {
  slotsPerEpoch: 432,
  startEpoch: 600,
  lag: { confirmed: 1, finalized: 4 },
  clusterStake: { effective: 380_000_000n * sol, activating: 500_000n * sol, deactivating: 500_000n * sol },
}

export async function startSolanaCluster(options: SolanaClusterOptions = {}): Promise<SolanaCluster> {
  const { slotMs, minimumDelegation: leastDelegation = 1n, ...rest } = options
  const ledgerOptions: LedgerOptions = { ...defaults, startHeight: 1000, startTime: new Date(), ...rest }
  const ledger = createLedger(ledgerOptions)
  const validators: Validator[] = []
  const faucet = Keypair.generate()
  ledger.fund(faucet.publicKey.toBase58(), 1_000_000_000n * sol)
  let minimumDelegation = leastDelegation
  let recentPriorityFee = 0n
  let airdrops = 0
  const nodes: SolanaNode[] = []

  /** A real transfer, which lands in the next block. */
  const airdrop = (address: string, lamports: bigint): string => {
    const transaction = new Transaction({
      feePayer: faucet.publicKey,
      blockhash: ledger.head().blockhash,
      lastValidBlockHeight: 0,
    })
    // One lamport to itself for each: two equal requests in one block are two transactions.
    airdrops += 1
    transaction.add(
      SystemProgram.transfer({ fromPubkey: faucet.publicKey, toPubkey: new PublicKey(address), lamports }),
      SystemProgram.transfer({ fromPubkey: faucet.publicKey, toPubkey: faucet.publicKey, lamports: airdrops }),
    )
    transaction.sign(faucet)
    return ledger.submit(transaction.serialize(), { kind: 'land' })
  }

  const addNode = async (): Promise<SolanaNode> => {
    const state: NodeState = { genesisHash: ledger.genesisHash, behind: 0, unhealthyBy: undefined, historyFrom: 0, admitsLoss: false }
    let fates: { readonly fate: Fate; left: number }[] = []
    const server = await startNodeServer(
      createMethods({
        ledger,
        state,
        validators,
        minimumDelegation: () => minimumDelegation,
        recentPriorityFee: () => recentPriorityFee,
        airdrop,
        fateOf: () => {
          const next = fates[0]
          if (next === undefined) return { kind: 'land' }
          next.left -= 1
          fates = fates.filter(({ left }) => left > 0)
          return next.fate
        },
      }),
    )
    const node: SolanaNode = {
      url: server.url,
      calls: server.calls,
      lag: (blocks) => {
        state.behind = blocks
      },
      unhealthy: (slotsBehind) => {
        state.unhealthyBy = slotsBehind
      },
      loseHistory: ({ silently = false } = {}) => {
        state.historyFrom = ledger.head().height + 1
        state.admitsLoss = !silently
      },
      answerLate: (method, ms) => server.delay(method, ms),
      claimGenesis: (hash) => {
        state.genesisHash = hash ?? ledger.genesisHash
      },
      fate: (fate, times = 1) => {
        fates.push({ fate, left: times })
      },
      close: server.close,
    }
    nodes.push(node)
    return node
  }

  const produce = (blocks = 1): Block => {
    for (let count = 0; count < blocks; count++) ledger.produce()
    return ledger.head()
  }
  const node = await addNode()
  const timer = slotMs === undefined ? undefined : setInterval(() => ledger.produce(), slotMs)

  return {
    url: node.url,
    node,
    genesisHash: ledger.genesisHash,
    ledger,
    addNode,
    addValidator: (validatorOptions = {}) => {
      const validator = createValidator(ledger, validatorOptions)
      validators.push(validator)
      return validator
    },
    fund: ledger.fund,
    balance: (address) => ledger.account(address, ledger.head().height)?.lamports ?? 0n,
    produce,
    settle: () => produce(ledgerOptions.lag.finalized + 1),
    nextEpoch: (epochs = 1) => {
      for (let count = 0; count < epochs; count++) {
        ledger.nextEpoch()
        produce(ledgerOptions.lag.finalized)
      }
      return ledger.head()
    },
    setClusterStake: ledger.setClusterStake,
    setMinimumDelegation: (lamports) => {
      minimumDelegation = lamports
    },
    setRecentPriorityFee: (microLamports) => {
      recentPriorityFee = microLamports
    },
    setEpochRewards: ledger.setEpochRewards,
    close: async () => {
      clearInterval(timer)
      await Promise.all(nodes.map((each) => each.close()))
    },
  }
}
