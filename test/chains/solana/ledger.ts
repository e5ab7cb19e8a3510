import { createHash } from 'node:crypto'
import { VersionedTransaction } from '@solana/web3.js'
import { activationAt } from '../../../src/chains/solana/activation.ts'
import { encodeBase58 } from '../../../src/chains/solana/base58.ts'
import type { Commitment } from '../../../src/chains/solana/chain.ts'
import { clockSysvar, epochRewardsSysvar, stakeHistorySysvar, stakeProgram, systemProgram } from '../../../src/chains/solana/programs.ts'
import { decodeStakeAccount } from '../../../src/chains/solana/stake-account.ts'
import type { StakeHistoryEntry } from '../../../src/chains/solana/sysvars.ts'
import { landsWithFee, type TransactionErrorJson } from './error-json.ts'
import { type Account, createSvm, type Execution, type Svm } from './svm.ts'

/** How old a blockhash may be, in blocks (MAX_PROCESSING_AGE). */
export const maxBlockhashAge = 150

export interface LandedTransaction {
  readonly signature: string
  readonly bytes: Uint8Array
  readonly slot: bigint
  readonly err: TransactionErrorJson | null
  readonly fee: bigint
  readonly accounts: readonly string[]
  readonly preBalances: readonly bigint[]
  readonly postBalances: readonly bigint[]
  readonly logs: readonly string[]
  readonly unitsConsumed: bigint
}

export interface Block {
  readonly slot: bigint
  readonly height: number
  readonly parentSlot: bigint
  readonly epoch: bigint
  readonly blockhash: string
  /** Seconds since 1970. */
  readonly time: bigint
  readonly transactions: readonly LandedTransaction[]
}

export interface LedgerOptions {
  readonly slotsPerEpoch: number
  readonly startEpoch: number
  /** Block height at the start. */
  readonly startHeight: number
  /** How many blocks on top make a block confirmed, and finalized. */
  readonly lag: { readonly confirmed: number; readonly finalized: number }
  /** The stake of everybody else, by which warm-up and cool-down are reckoned. Lamports. */
  readonly clusterStake: StakeHistoryEntry
  readonly startTime: Date
}

/** What becomes of a transaction that a node took. */
export type Fate = { readonly kind: 'land' } | { readonly kind: 'drop' } | { readonly kind: 'late'; readonly blocks: number }

/**
 * Blocks, blockhashes that expire, commitment levels, epochs with their StakeHistory, around the real programs. Every account's past is
 * kept by block, so that each commitment, a node that lags and a fork read their own state.
 */
export interface Ledger {
  readonly genesisHash: string
  readonly slotsPerEpoch: bigint
  head(): Block
  /** The newest block of a commitment, `behind` blocks earlier for a node that lags. */
  at(commitment: Commitment, behind?: number): Block
  block(height: number): Block | undefined
  /** An account at a block's end; undefined when it is not there. */
  account(address: string, height: number): Account | undefined
  programAccounts(program: string, height: number): readonly (readonly [string, Account])[]
  rentExemption(bytes: number): bigint
  /** Whether a transaction with this blockhash could come into the block after `height`. */
  blockhashLives(blockhash: string, height: number): boolean
  heightOf(blockhash: string): number | undefined
  landed(signature: string): { readonly transaction: LandedTransaction; readonly block: Block } | undefined
  simulate(transaction: Uint8Array): Execution
  /** Puts a transaction into the pool. */
  submit(transaction: Uint8Array, fate: Fate): string
  pooled(): number
  /** Makes one block, after `skippedSlots` slots without one. */
  produce(skippedSlots?: number): Block
  /** Makes the first block of the epoch after the newest block's. */
  nextEpoch(): Block
  setClusterStake(stake: StakeHistoryEntry): void
  setEpochRewards(active: boolean): void
  /** Lamports that always were there. */
  fund(address: string, lamports: bigint): void
  /** Writes an account as if it had always been so. */
  plant(address: string, account: Account): void
  /** Throws the newest blocks away (never finalized ones); their transactions go back to the pool, or are lost. */
  reorg(blocks: number, transactions: 'again' | 'lost'): void
}

export function createLedger(options: LedgerOptions): Ledger {
  const { lag } = options
  const svm = createSvm()
  const slotsPerEpoch = BigInt(options.slotsPerEpoch)
  const startSlot = BigInt(options.startEpoch) * slotsPerEpoch
  const startSeconds = BigInt(Math.floor(options.startTime.getTime() / 1000))
  const genesisHash = encodeBase58(
    createHash('sha256').update(`simulated cluster ${options.startTime.toISOString()} ${Math.random()}`).digest(),
  )
  const epochOf = (slot: bigint): bigint => slot / slotsPerEpoch
  /** 400 ms a slot. */
  const timeOf = (slot: bigint): bigint => startSeconds + ((slot - startSlot) * 2n) / 5n

  const blocks: Block[] = []
  /** Each account's states, by the height of the block that wrote them, in order. Accounts that were never written are the runtime's own. */
  const versions = new Map<string, { readonly height: number; readonly account: Account | undefined }[]>()
  const landed = new Map<string, { readonly transaction: LandedTransaction; readonly height: number }>()
  const heights = new Map<string, number>()
  let pool: { readonly bytes: Uint8Array; readonly signature: string; readonly notBefore: number }[] = []
  let clusterStake = options.clusterStake
  let history = new Map<bigint, StakeHistoryEntry>()
  let forks = 0

  const head = (): Block => {
    const last = blocks.at(-1)
    if (last === undefined) throw new Error('the ledger has no block')
    return last
  }
  const blockhashOf = (height: number): string => encodeBase58(createHash('sha256').update(`${genesisHash} ${height} ${forks}`).digest())
  const record = (address: string, height: number): void => {
    const list = versions.get(address) ?? []
    versions.set(address, list)
    if (list.at(-1)?.height === height) list.pop()
    const account = svm.account(address)
    list.push({ height, account: account === undefined || account.lamports === 0n ? undefined : account })
  }
  const accountAt = (address: string, height: number): Account | undefined => {
    const list = versions.get(address)
    if (list === undefined) return svm.account(address)
    return list.findLast((version) => version.height <= height)?.account
  }
  const addBlock = (block: Block): Block => {
    blocks.push(block)
    heights.set(block.blockhash, block.height)
    return block
  }
  const setSysvars = (slot: bigint, height: number): void => {
    const epoch = epochOf(slot)
    svm.setClock({ slot, epoch, epochStart: timeOf(epoch * slotsPerEpoch), unixTimestamp: timeOf(slot) })
    record(clockSysvar, height)
  }
  const setHistory = (height: number): void => {
    const newest = [...history].toSorted(([a], [b]) => Number(b - a)).slice(0, 512)
    history = new Map(newest)
    svm.setStakeHistory(history)
    record(stakeHistorySysvar, height)
  }
  const delegations = (height: number) =>
    programAccounts(stakeProgram, height).flatMap(([, account]) => {
      const state = account.data.length === 200 ? decodeStakeAccount(account) : undefined
      return state?.kind === 'stake' ? [state.delegation] : []
    })
  const programAccounts = (program: string, height: number) =>
    [...versions.keys()].flatMap((address) => {
      const account = accountAt(address, height)
      return account?.owner === program ? [[address, account] as const] : []
    })
  /** As the bank does when it enters an epoch: the cluster's sums at the epoch that ended. */
  const closeEpoch = (epoch: bigint, height: number): void => {
    const sums = delegations(height).map((delegation) => activationAt(delegation, epoch, history, 'float'))
    const sum = (key: keyof StakeHistoryEntry): bigint => sums.reduce((total, status) => total + status[key], clusterStake[key])
    history.set(epoch, { effective: sum('effective'), activating: sum('activating'), deactivating: sum('deactivating') })
  }

  const blockhashLives = (blockhash: string, height: number): boolean => {
    const made = heights.get(blockhash)
    return made !== undefined && made <= height && height - made <= maxBlockhashAge
  }

  /** Executes one transaction at the end of the newest state; undefined when it does not come into the block. */
  const execute = (bytes: Uint8Array, signature: string, slot: bigint, height: number): LandedTransaction | undefined => {
    const { message } = VersionedTransaction.deserialize(bytes)
    if (landed.has(signature) || !blockhashLives(message.recentBlockhash, height - 1)) return undefined
    const accounts = message.staticAccountKeys.map((key) => key.toBase58())
    const balances = () => accounts.map((address) => svm.account(address)?.lamports ?? 0n)
    const preBalances = balances()
    const before = accounts.map((address) => [address, svm.account(address)] as const)
    const { err, logs, unitsConsumed } = svm.execute(bytes)
    if (!landsWithFee(err)) {
      for (const [address, account] of before)
        if (account !== undefined && message.isAccountWritable(accounts.indexOf(address))) svm.setAccount(address, account)
      return undefined
    }
    const postBalances = balances()
    accounts.forEach((address, index) => {
      if (!message.isAccountWritable(index)) return
      // What a first write replaces was there from the beginning.
      const known = before[index]?.[1]
      if (!versions.has(address)) versions.set(address, [{ height: 0, account: known }])
      record(address, height)
    })
    const sum = (list: readonly bigint[]) => list.reduce((total, value) => total + value, 0n)
    // Fees are burnt; everything else only moves.
    const fee = sum(preBalances) - sum(postBalances)
    return { signature, bytes, slot, err, fee, accounts, preBalances, postBalances, logs, unitsConsumed }
  }

  const produceAt = (slot: bigint): Block => {
    const parent = head()
    const height = parent.height + 1
    if (epochOf(slot) > parent.epoch) {
      for (let epoch = parent.epoch; epoch < epochOf(slot); epoch++) closeEpoch(epoch, parent.height)
      setHistory(height)
    }
    setSysvars(slot, height)
    const due = pool.filter(({ notBefore }) => notBefore <= height)
    pool = pool.filter(({ notBefore }) => notBefore > height)
    const transactions = due.flatMap(({ bytes, signature }) => {
      const transaction = execute(bytes, signature, slot, height)
      if (transaction === undefined) return []
      landed.set(signature, { transaction, height })
      return [transaction]
    })
    return addBlock({
      slot,
      height,
      parentSlot: parent.slot,
      epoch: epochOf(slot),
      blockhash: blockhashOf(height),
      time: timeOf(slot),
      transactions,
    })
  }

  const startHeight = options.startHeight
  svm.setEpochSchedule(slotsPerEpoch)
  for (let epoch = epochOf(startSlot) - 10n; epoch < epochOf(startSlot); epoch++) if (epoch >= 0n) history.set(epoch, clusterStake)
  setHistory(0)
  setSysvars(startSlot, 0)
  record(epochRewardsSysvar, 0)
  addBlock({
    slot: startSlot,
    height: startHeight,
    parentSlot: startSlot - 1n,
    epoch: epochOf(startSlot),
    blockhash: blockhashOf(startHeight),
    time: timeOf(startSlot),
    transactions: [],
  })
  // So that every commitment has a block from the start.
  for (let count = 0; count < lag.finalized; count++) produceAt(head().slot + 1n)

  const at = (commitment: Commitment, behind = 0): Block => {
    const depth = commitment === 'processed' ? 0 : commitment === 'confirmed' ? lag.confirmed : lag.finalized
    return blocks[Math.max(blocks.length - 1 - depth - behind, 0)] ?? head()
  }

  return {
    genesisHash,
    slotsPerEpoch,
    head,
    at,
    block: (height) => blocks[height - startHeight],
    account: accountAt,
    programAccounts,
    rentExemption: (bytes) => svm.rentExemption(bytes),
    blockhashLives,
    heightOf: (blockhash) => heights.get(blockhash),
    landed: (signature) => {
      const found = landed.get(signature)
      const block = found === undefined ? undefined : blocks[found.height - startHeight]
      return found === undefined || block === undefined ? undefined : { transaction: found.transaction, block }
    },
    simulate: (transaction) => svm.simulate(transaction),
    submit: (bytes, fate) => {
      const [first] = VersionedTransaction.deserialize(bytes).signatures
      const signature = encodeBase58(first ?? new Uint8Array(64))
      if (fate.kind === 'drop' || pool.some((pooled) => pooled.signature === signature)) return signature
      pool.push({ bytes, signature, notBefore: head().height + 1 + (fate.kind === 'late' ? fate.blocks : 0) })
      return signature
    },
    pooled: () => pool.length,
    produce: (skippedSlots = 0) => produceAt(head().slot + 1n + BigInt(skippedSlots)),
    nextEpoch: () => produceAt((head().epoch + 1n) * slotsPerEpoch),
    setClusterStake: (stake) => {
      clusterStake = stake
    },
    setEpochRewards: (active) => {
      svm.setEpochRewards(active)
      record(epochRewardsSysvar, head().height)
    },
    fund: (address, lamports) => {
      const list = versions.get(address) ?? [{ height: 0, account: svm.account(address) }]
      versions.set(
        address,
        list.map(({ height, account }) => ({ height, account: richer(account, lamports) })),
      )
      svm.setAccount(address, richer(svm.account(address), lamports))
    },
    plant: (address, account) => {
      svm.setAccount(address, account)
      versions.set(address, [{ height: 0, account }])
    },
    reorg: (count, fate) => {
      const removed = blocks.splice(Math.max(blocks.length - Math.min(count, lag.finalized), 1))
      const { height } = head()
      forks += 1
      for (const block of removed) heights.delete(block.blockhash)
      for (const [address, list] of versions) {
        const kept = list.filter((version) => version.height <= height)
        if (kept.length === list.length) continue
        versions.set(address, kept)
        restore(svm, address, kept.at(-1)?.account)
      }
      history = new Map([...history].filter(([epoch]) => epoch < head().epoch))
      setHistory(height)
      setSysvars(head().slot, height)
      for (const { signature, bytes } of removed.flatMap((block) => block.transactions)) {
        landed.delete(signature)
        if (fate === 'again') pool.push({ bytes, signature, notBefore: 0 })
      }
    },
  }
}

/** Sysvars follow the clock and are set by it. */
function restore(svm: Svm, address: string, account: Account | undefined): void {
  if (address !== clockSysvar && address !== stakeHistorySysvar) svm.setAccount(address, account)
}

const richer = (account: Account | undefined, lamports: bigint): Account => ({
  owner: account?.owner ?? systemProgram,
  data: account?.data ?? new Uint8Array(),
  executable: account?.executable ?? false,
  lamports: (account?.lamports ?? 0n) + lamports,
})
