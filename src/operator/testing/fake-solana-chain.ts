import { createHash } from 'node:crypto'
import { addressOf } from '../../chains/solana/addresses.ts'
import {
  type ChainAccount,
  type Commitment,
  type NodeLook,
  type SolanaAddress,
  type SolanaChain,
  SolanaError,
  type VoteAccount,
} from '../../chains/solana/chain.ts'
import type { SignatureStatus } from '../../chains/solana/expiry.ts'
import { decodeInstruction } from '../../chains/solana/instructions.ts'
import { type DecodedMessage, decodeMessage, splitTransaction, transactionSignature, verifySignature } from '../../chains/solana/message.ts'
import { clockSysvar, systemProgram, sysvarOwner, voteProgram } from '../../chains/solana/programs.ts'
import { transactionFee } from '../../chains/solana/stake.ts'
import { meaningOf, type TransactionFailure } from '../../chains/solana/transaction-error.ts'
import { lamports } from '../../lib/amounts.ts'
import { type Accounts, execute, MINIMUM_DELEGATION, RENT } from './fake-solana-program.ts'

/** How many blocks a blockhash lives (MAX_PROCESSING_AGE). */
const LIFE = 150
/** Blocks on top that make one final. */
const DEPTH = 2

export interface LandedSolana {
  readonly signature: string
  readonly message: DecodedMessage
  readonly bytes: Uint8Array
  readonly height: number
  readonly fee: bigint
  readonly failure?: TransactionFailure
}
interface Block {
  readonly blockhash: string
  readonly epoch: bigint
  readonly accounts: Accounts
}

/**
 * A Solana cluster in memory: blocks that are made by hand, each with its slot as its height; blockhashes that expire; finality two blocks behind;
 * epochs at whose end a stake is wholly warm or cold. It executes real messages with real signatures. `now`: the cluster's time, Unix ms.
 */
export function createFakeSolanaChain(network: string, now: () => number = () => 1_900_000_000_000) {
  /** How often the chain has forked: blocks of another fork have other hashes. */
  let forks = 0
  const hashOf = (height: number) =>
    addressOf(
      createHash('sha256')
        .update(forks === 0 ? `block ${height}` : `block ${height} of fork ${forks}`)
        .digest(),
    )
  const blocks: Block[] = [{ blockhash: hashOf(0), epoch: 100n, accounts: new Map() }]
  const landed = new Map<string, LandedSolana>()
  let pool: { readonly signature: string; readonly message: DecodedMessage; readonly bytes: Uint8Array }[] = []
  const state = {
    /** It takes transactions and loses them. */
    forgetful: false,
    /** The vote account is not voting now. */
    delinquent: false,
    /** What else it says of itself. */
    vote: {} as Partial<VoteAccount>,
    /** Compute units that a simulation uses. */
    unitsConsumed: 10_000n,
    /** Of a second node, behind the first: its final height. It answers only where every node is asked, and not at all at -1. */
    secondAt: undefined as number | undefined,
    /** A second node, as far as the first, that shows neither the stake account nor any transaction. */
    secondHides: false,
    /** How many blocks the staking API's own node is behind. */
    apiBehind: 0,
    /** How far the cluster's time is before `now`, in ms. */
    timeBehindMs: 0,
  }

  const height = () => blocks.length - 1
  const heightAt = (commitment: Commitment) => (commitment === 'finalized' ? Math.max(0, height() - DEPTH) : height())
  const blockAt = (at: number): Block => blocks[at] as Block
  const tip = () => blockAt(height())
  const lives = (blockhash: string) => blocks.slice(-LIFE - 1).some((block) => block.blockhash === blockhash)
  const copy = (account: ChainAccount | undefined) => account && { ...account, data: new Uint8Array(account.data) }

  const feeOf = ({ instructions, signers }: DecodedMessage): bigint => {
    const budget = { units: 0, price: 0n }
    for (const one of instructions.map(decodeInstruction)) {
      if (one.kind === 'compute-unit-limit') budget.units = one.units
      if (one.kind === 'compute-unit-price') budget.price = one.microLamports
    }
    return transactionFee({ signatures: signers.length, computeUnitLimit: budget.units, computeUnitPriceMicroLamports: budget.price })
  }
  /** The fee is paid whether or not the rest works. */
  const runOn = (accounts: Accounts, message: DecodedMessage, epoch: bigint) => {
    const fee = feeOf(message)
    const payer = accounts.get(message.feePayer)
    if (payer === undefined || payer.lamports < fee) return { accounts, failure: { name: 'InsufficientFundsForFee' }, fee: 0n, paid: false }
    const charged = new Map(accounts).set(message.feePayer, { ...payer, lamports: lamports(payer.lamports - fee) })
    return { ...execute(charged, message, epoch), fee, paid: true }
  }
  const errorOf = (failure: TransactionFailure, message: DecodedMessage): SolanaError => {
    const meaning = meaningOf(
      failure,
      message.instructions.map(({ program }) => program),
    )
    return new SolanaError(meaning, `the transaction would fail: ${failure.name}`, { failure })
  }
  const simulated = (message: DecodedMessage) => {
    if (!lives(message.recentBlockhash)) return { accounts: tip().accounts, failure: { name: 'BlockhashNotFound' } }
    return runOn(tip().accounts, message, tip().epoch)
  }

  const produce = (count = 1, epoch = tip().epoch): void => {
    for (let made = 0; made < count; made++) {
      let { accounts } = tip()
      const waiting = pool
      pool = []
      const at = height() + 1
      for (const { signature, message, bytes } of waiting) {
        if (landed.has(signature) || !lives(message.recentBlockhash)) continue
        const result = runOn(accounts, message, epoch)
        if (!result.paid) continue
        accounts = result.accounts
        const failure = 'failure' in result && result.failure !== undefined ? { failure: result.failure } : {}
        landed.set(signature, { signature, message, bytes, height: at, fee: result.fee, ...failure })
      }
      blocks.push({ blockhash: hashOf(at), epoch, accounts })
    }
  }
  const change = (address: SolanaAddress, to: (account: ChainAccount | undefined) => ChainAccount): void => {
    blocks[height()] = { ...tip(), accounts: new Map(tip().accounts).set(address, to(tip().accounts.get(address))) }
  }
  const plain = (amount: bigint, owner = systemProgram): ChainAccount => ({
    lamports: lamports(amount),
    owner,
    data: new Uint8Array(),
    executable: false,
  })

  const statusOf = (signature: string): SignatureStatus | undefined => {
    const found = landed.get(signature)
    if (found === undefined) return undefined
    const commitment = found.height <= heightAt('finalized') ? 'finalized' : 'confirmed'
    return { slot: BigInt(found.height), commitment, ...(found.failure === undefined ? {} : { failure: found.failure }) }
  }

  /** The Clock sysvar: slot, begin of the epoch, epoch, epoch of the leader schedule, time. */
  const clockAt = (at: number): ChainAccount => {
    const data = Buffer.alloc(40)
    data.writeBigUInt64LE(BigInt(at), 0)
    data.writeBigUInt64LE(blockAt(at).epoch, 16)
    data.writeBigInt64LE(BigInt(Math.floor((now() - state.timeBehindMs) / 1_000)), 32)
    return { lamports: lamports(1n), owner: sysvarOwner, data: new Uint8Array(data), executable: false }
  }

  const blockhashAt = (at: number) => ({ blockhash: blockAt(at).blockhash, lastValidBlockHeight: BigInt(at + LIFE), slot: BigInt(at) })

  const chain: SolanaChain = {
    network,
    epochInfo: async (commitment) => {
      const at = heightAt(commitment)
      return { epoch: blockAt(at).epoch, slot: BigInt(at), slotIndex: 0n, slotsInEpoch: 432_000n, blockHeight: BigInt(at) }
    },
    blockHeight: async (commitment) => BigInt(heightAt(commitment)),
    latestBlockhash: async () => blockhashAt(height()),
    account: async (address, commitment) =>
      address === clockSysvar ? clockAt(heightAt(commitment)) : copy(blockAt(heightAt(commitment)).accounts.get(address)),
    balance: async (address, commitment) => lamports(blockAt(heightAt(commitment)).accounts.get(address)?.lamports ?? 0n),
    rentExemption: async (bytes) => lamports(bytes === 0 ? 890_880n : RENT),
    minimumDelegation: async () => lamports(MINIMUM_DELEGATION),
    stakeView: async (address, commitment) => {
      const at = heightAt(commitment)
      const { epoch, accounts } = blockAt(at)
      const clock = { slot: BigInt(at), epoch, unixTimestamp: 1_900_000_000n }
      // Without a history every epoch that is over counts as long over: wholly warm, or wholly cold.
      return {
        slot: BigInt(at),
        account: copy(accounts.get(address)),
        clock,
        history: new Map(),
        rewardsActive: false,
        arithmetic: 'float',
      }
    },
    async voteAccount(address) {
      const account = tip().accounts.get(address)
      if (account === undefined) return { kind: 'missing' }
      if (account.owner !== voteProgram) return { kind: 'not-a-vote-account' }
      const { delinquent, vote } = state
      const said = { address, node: address, commission: 5, activatedStake: lamports(10n ** 15n), delinquent, ...vote }
      return { kind: 'vote-account', account: said }
    },
    async landingFacts(signatures) {
      return [{ finalizedBlockHeight: BigInt(heightAt('finalized')), statuses: signatures.map(statusOf) }]
    },
    async looks(address, signatures) {
      const lookAt = (at: number): NodeLook => ({
        finalizedBlockHeight: BigInt(at),
        slot: BigInt(at),
        account: copy(blockAt(at).accounts.get(address)),
        statuses: signatures.map((signature) => ((landed.get(signature)?.height ?? 0) > at + DEPTH ? undefined : statusOf(signature))),
        historySince: 0n,
      })
      const { secondAt } = state
      const first = lookAt(heightAt('finalized'))
      if (state.secondHides) return [first, { ...first, account: undefined, statuses: signatures.map(() => undefined) }]
      return secondAt === undefined ? [first] : [first, secondAt < 0 ? undefined : lookAt(secondAt)]
    },
    past: async (address) =>
      [...landed.values()]
        .filter((one) => one.height <= heightAt('finalized') && one.message.accounts.includes(address))
        .map((one) => ({ signature: one.signature, slot: BigInt(one.height), failed: one.failure !== undefined }))
        .toReversed(),
    message: async (signature) => landed.get(signature)?.bytes,
    async feeFor(message) {
      const decoded = decodeMessage(message)
      return lives(decoded.recentBlockhash) ? lamports(feeOf(decoded)) : undefined
    },
    recentPriorityFee: async () => 1_000n,
    async simulate(message, { watch = [] }) {
      const decoded = decodeMessage(message)
      const { accounts, failure } = simulated(decoded)
      return {
        ...(failure === undefined ? {} : { failure, meaning: errorOf(failure, decoded).code as never }),
        unitsConsumed: state.unitsConsumed,
        accounts: watch.map((address) => copy(accounts.get(address))),
      }
    },
    async sendTransaction(raw, { skipPreflight }) {
      const { signatures, message: bytes } = splitTransaction(raw)
      const message = decodeMessage(bytes)
      const signature = transactionSignature(raw)
      for (const [index, signer] of message.signers.entries())
        if (!verifySignature(signer, bytes, signatures[index] ?? new Uint8Array()))
          throw new SolanaError('signature-failure', 'a signature is not its signer’s', { failure: { name: 'SignatureFailure' } })
      if (!skipPreflight) {
        const { failure } = landed.has(signature) ? { failure: { name: 'AlreadyProcessed' } } : simulated(message)
        if (failure !== undefined) throw errorOf(failure, message)
      }
      if (!state.forgetful && !pool.some((one) => one.signature === signature)) pool.push({ signature, message, bytes })
      return signature
    },
  }

  return {
    chain,
    /** The cluster as the staking API's node shows it. */
    apiChain: { ...chain, latestBlockhash: async () => blockhashAt(Math.max(0, height() - state.apiBehind)) } satisfies SolanaChain,
    state,
    height,
    /** Makes blocks: what waits comes into the first. */
    produce,
    /** Makes blocks until what has landed is final. */
    settle: () => produce(DEPTH + 1),
    /** Makes the next epoch begin, and its beginning final. */
    nextEpoch: () => produce(DEPTH + 1, tip().epoch + 1n),
    /** Makes as many blocks as a blockhash lives, and their finality. */
    expire: () => produce(LIFE + DEPTH + 1),
    /** Another fork has won: the last block is not there any more, nor what it had, which waits again unless it is `lost`. */
    fork(lost: boolean): void {
      if (height() === 0) return
      forks++
      blocks.pop()
      for (const { signature, message, bytes, height: at } of [...landed.values()]) {
        if (at <= height()) continue
        landed.delete(signature)
        if (!lost) pool.push({ signature, message, bytes })
      }
      produce()
    },
    /** Loses what waits. */
    forget: () => {
      pool = []
    },
    fund: (address: SolanaAddress, amount: bigint) =>
      change(address, (account) => ({ ...(account ?? plain(0n)), lamports: lamports((account?.lamports ?? 0n) + amount) })),
    addProgram: (address: SolanaAddress) => change(address, () => ({ ...plain(1n), executable: true })),
    addVoteAccount: (address: SolanaAddress) => change(address, () => plain(10n ** 9n, voteProgram)),
    /** Puts an account there as it is. */
    put: (address: SolanaAddress, account: ChainAccount) => change(address, () => account),
    /** Changes the data of an account. */
    edit: (address: SolanaAddress, edit: (data: Buffer) => void) =>
      change(address, (account) => {
        const data = Buffer.from(account?.data ?? [])
        edit(data)
        return { ...(account ?? plain(1n)), data: new Uint8Array(data) }
      }),
    /** Now, whether final or not. */
    balance: (address: SolanaAddress): bigint => tip().accounts.get(address)?.lamports ?? 0n,
    /** All transactions in blocks, in their order. */
    landed: () => [...landed.values()],
  }
}
export type FakeSolanaChain = ReturnType<typeof createFakeSolanaChain>
