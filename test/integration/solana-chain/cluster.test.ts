import {
  Authorized,
  ComputeBudgetProgram,
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  Lockup,
  PublicKey,
  SendTransactionError,
  StakeProgram,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
} from '@solana/web3.js'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type SolanaCluster, startSolanaCluster } from '../../chains/solana/cluster.ts'

const sol = BigInt(LAMPORTS_PER_SOL)
let cluster: SolanaCluster
let connection: Connection
beforeEach(async () => {
  cluster = await startSolanaCluster()
  connection = new Connection(cluster.url, 'confirmed')
})
afterEach(() => cluster.close())

/** Sends by web3.js; the transaction is in the pool until blocks are made. */
async function send(instructions: readonly TransactionInstruction[], signers: readonly Keypair[], skipPreflight = false) {
  const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash('processed')
  const [payer] = signers
  if (payer === undefined) throw new Error('a transaction needs a payer')
  const transaction = new Transaction({ feePayer: payer.publicKey, blockhash, lastValidBlockHeight }).add(...instructions)
  transaction.sign(...signers)
  const raw = transaction.serialize()
  const signature = await connection.sendRawTransaction(raw, { skipPreflight, preflightCommitment: 'processed' })
  return { signature, raw, lastValidBlockHeight }
}
const statusOf = async (signature: string, searchTransactionHistory = false) =>
  (await connection.getSignatureStatuses([signature], { searchTransactionHistory })).value[0]
const feeOf = async (signature: string) =>
  BigInt((await connection.getTransaction(signature, { commitment: 'confirmed', maxSupportedTransactionVersion: 0 }))?.meta?.fee ?? -1)

function funded(lamports = 100n * sol): Keypair {
  const keypair = Keypair.generate()
  cluster.fund(keypair.publicKey.toBase58(), lamports)
  return keypair
}

describe('a whole life, driven by web3.js', () => {
  test('create, delegate, active, deactivate, inactive, withdraw; the balances add up to the lamport', async () => {
    const payer = funded()
    const withdrawer = funded(1n * sol)
    const { voteAccount } = cluster.addValidator({ commission: 7 })
    const seed = '0195c0de'.repeat(4)
    const stake = await PublicKey.createWithSeed(payer.publicKey, seed, StakeProgram.programId)
    const rent = await connection.getMinimumBalanceForRentExemption(200)
    const lamports = rent + 5 * LAMPORTS_PER_SOL

    const created = await send(
      [
        ComputeBudgetProgram.setComputeUnitLimit({ units: 40_000 }),
        ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 1_234_567 }),
        ...StakeProgram.createAccountWithSeed({
          fromPubkey: payer.publicKey,
          stakePubkey: stake,
          basePubkey: payer.publicKey,
          seed,
          authorized: new Authorized(payer.publicKey, withdrawer.publicKey),
          lockup: new Lockup(0, 0, PublicKey.default),
          lamports,
        }).instructions,
        ...StakeProgram.delegate({
          stakePubkey: stake,
          authorizedPubkey: payer.publicKey,
          votePubkey: new PublicKey(voteAccount),
        }).instructions,
      ],
      [payer],
    )
    expect(await statusOf(created.signature)).toBeNull()
    cluster.produce()
    expect(await statusOf(created.signature)).toMatchObject({ confirmationStatus: 'processed', err: null, confirmations: 0 })
    cluster.produce()
    expect(await statusOf(created.signature)).toMatchObject({ confirmationStatus: 'confirmed', confirmations: 1 })
    expect(await connection.getBalance(stake, 'finalized')).toBe(0)
    cluster.settle()
    expect(await statusOf(created.signature)).toMatchObject({ confirmationStatus: 'finalized', confirmations: null })
    expect(await connection.getBalance(stake, 'finalized')).toBe(lamports)
    const createFee = await feeOf(created.signature)
    // 5,000 lamports for one signature and 40,000 × 1.234567 rounded up.
    expect(createFee).toBe(5000n + 49_383n)
    expect(cluster.balance(payer.publicKey.toBase58())).toBe(100n * sol - BigInt(lamports) - createFee)

    const parsed = (await connection.getParsedAccountInfo(stake)).value?.data
    expect(parsed).toMatchObject({
      program: 'stake',
      parsed: {
        type: 'delegated',
        info: { stake: { delegation: { voter: voteAccount, stake: `${5n * sol}`, deactivationEpoch: `${2n ** 64n - 1n}` } } },
      },
    })

    cluster.nextEpoch(2)
    const early = send(
      StakeProgram.withdraw({
        stakePubkey: stake,
        authorizedPubkey: withdrawer.publicKey,
        toPubkey: withdrawer.publicKey,
        lamports,
      }).instructions,
      [withdrawer],
    )
    await expect(early).rejects.toThrow(/insufficient/i)

    const deactivated = await send(StakeProgram.deactivate({ stakePubkey: stake, authorizedPubkey: payer.publicKey }).instructions, [payer])
    cluster.settle()
    expect(await statusOf(deactivated.signature)).toMatchObject({ err: null })
    cluster.nextEpoch()
    const withdrawn = await send(
      StakeProgram.withdraw({
        stakePubkey: stake,
        authorizedPubkey: withdrawer.publicKey,
        toPubkey: withdrawer.publicKey,
        lamports,
      }).instructions,
      [withdrawer],
    )
    cluster.settle()
    expect(await statusOf(withdrawn.signature)).toMatchObject({ err: null })
    expect(await connection.getAccountInfo(stake, 'finalized')).toBeNull()

    const fees = createFee + (await feeOf(deactivated.signature)) + (await feeOf(withdrawn.signature))
    expect(fees).toBe(createFee + 10_000n)
    expect(cluster.balance(payer.publicKey.toBase58()) + cluster.balance(withdrawer.publicKey.toBase58())).toBe(101n * sol - fees)
  })

  test('a stake warms up by the share of the cluster that 9 % an epoch allow', async () => {
    cluster.setClusterStake({ effective: 1000n * sol, activating: 0n, deactivating: 0n })
    const payer = funded(1000n * sol)
    const { voteAccount } = cluster.addValidator()
    const stake = Keypair.generate()
    await send(
      [
        ...StakeProgram.createAccount({
          fromPubkey: payer.publicKey,
          stakePubkey: stake.publicKey,
          authorized: new Authorized(payer.publicKey, payer.publicKey),
          lamports: 500 * LAMPORTS_PER_SOL + 2_282_880,
        }).instructions,
        ...StakeProgram.delegate({
          stakePubkey: stake.publicKey,
          authorizedPubkey: payer.publicKey,
          votePubkey: new PublicKey(voteAccount),
        }).instructions,
      ],
      [payer, stake],
    )
    cluster.settle()
    cluster.nextEpoch(2)
    await send(StakeProgram.deactivate({ stakePubkey: stake.publicKey, authorizedPubkey: payer.publicKey }).instructions, [payer])
    cluster.settle()
    const withdraw = (lamports: number) =>
      StakeProgram.withdraw({
        stakePubkey: stake.publicKey,
        authorizedPubkey: payer.publicKey,
        toPubkey: payer.publicKey,
        lamports,
      }).instructions
    // First epoch 9 % of 1000, then 9 % of 1090: 188.1 are effective, and only the rest may leave.
    const free = 500 * LAMPORTS_PER_SOL - 188.1 * LAMPORTS_PER_SOL
    await expect(send(withdraw(free + 1), [payer])).rejects.toThrow(/insufficient/i)
    await send(withdraw(free), [payer])
    cluster.settle()
    expect(cluster.balance(stake.publicKey.toBase58())).toBe(188_100_000_000n + 2_282_880n)
  })
})

describe('a transaction', () => {
  const transfer = (from: Keypair, lamports = 1) =>
    SystemProgram.transfer({ fromPubkey: from.publicKey, toPubkey: from.publicKey, lamports })

  test('is refused at preflight with its error, as web3.js reads it', async () => {
    const payer = funded(1n * sol)
    const error = await send(
      [SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: Keypair.generate().publicKey, lamports: 2 * LAMPORTS_PER_SOL })],
      [payer],
    ).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(SendTransactionError)
    expect(String(error)).toContain('custom program error: 0x1')
    expect((error as SendTransactionError).logs?.join()).toContain('insufficient lamports')
  })

  test('that fails in a block costs its fee and keeps its error', async () => {
    const payer = funded(1n * sol)
    const { signature } = await send(
      [SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: Keypair.generate().publicKey, lamports: 2 * LAMPORTS_PER_SOL })],
      [payer],
      true,
    )
    cluster.settle()
    expect(await statusOf(signature)).toMatchObject({ err: { InstructionError: [0, { Custom: 1 }] } })
    expect(cluster.balance(payer.publicKey.toBase58())).toBe(1n * sol - 5000n)
  })

  test('lands once, however often it is sent', async () => {
    const payer = funded(1n * sol)
    const to = Keypair.generate().publicKey
    const { raw, signature } = await send(
      [SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports: 1_000_000 })],
      [payer],
    )
    await connection.sendRawTransaction(raw, { skipPreflight: true })
    cluster.produce()
    await connection.sendRawTransaction(raw, { skipPreflight: true })
    cluster.settle()
    expect(cluster.balance(to.toBase58())).toBe(1_000_000n)
    await expect(connection.sendRawTransaction(raw)).rejects.toThrow(/already been processed/)
    expect(await statusOf(signature)).toMatchObject({ err: null })
  })

  test('expires after 150 blocks, and not before', async () => {
    const payer = funded(1n * sol)
    const early = await connection.getLatestBlockhash('processed')
    const made = (lamports: number) => {
      const transaction = new Transaction({ feePayer: payer.publicKey, ...early }).add(transfer(payer, lamports))
      transaction.sign(payer)
      return transaction.serialize()
    }
    cluster.produce(150)
    expect((await connection.isBlockhashValid(early.blockhash, { commitment: 'processed' })).value).toBe(true)
    const last = await connection.sendRawTransaction(made(1), { preflightCommitment: 'processed' })
    cluster.produce()
    expect(await statusOf(last)).toMatchObject({ err: null })
    expect((await connection.isBlockhashValid(early.blockhash, { commitment: 'processed' })).value).toBe(false)
    await expect(connection.sendRawTransaction(made(2), { preflightCommitment: 'processed' })).rejects.toThrow('Blockhash not found')
    const late = await connection.sendRawTransaction(made(3), { skipPreflight: true })
    cluster.settle()
    expect(await statusOf(late, true)).toBeNull()
  })

  test('may be dropped, land late, and be forgotten', async () => {
    const payer = funded(1n * sol)
    cluster.node.fate({ kind: 'drop' })
    const dropped = await send([transfer(payer, 1)], [payer])
    cluster.settle()
    expect(await statusOf(dropped.signature)).toBeNull()
    await connection.sendRawTransaction(dropped.raw, { skipPreflight: true })
    cluster.settle()
    expect(await statusOf(dropped.signature)).toMatchObject({ err: null })

    cluster.node.fate({ kind: 'late', blocks: 10 })
    const late = await send([transfer(payer, 2)], [payer])
    cluster.produce(10)
    expect(await statusOf(late.signature)).toBeNull()
    cluster.produce()
    expect(await statusOf(late.signature)).toMatchObject({ err: null })

    cluster.node.loseHistory()
    expect(await statusOf(late.signature, true)).toBeNull()
    expect(await connection.getFirstAvailableBlock()).toBe(0)
    cluster.produce()
    expect(await connection.getFirstAvailableBlock()).toBeGreaterThan(0)
  })

  test('needs searchTransactionHistory once it is old', async () => {
    const payer = funded(1n * sol)
    const { signature } = await send([transfer(payer)], [payer])
    cluster.produce(152)
    expect(await statusOf(signature)).toBeNull()
    expect(await statusOf(signature, true)).toMatchObject({ confirmationStatus: 'finalized' })
  })

  test('leaves the chain with a fork, and its money with it', async () => {
    const payer = funded(1n * sol)
    const to = Keypair.generate().publicKey
    const { signature } = await send([SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports: 1_000_000 })], [payer])
    cluster.produce(2)
    cluster.ledger.reorg(2, 'lost')
    expect(await statusOf(signature, true)).toBeNull()
    expect(cluster.balance(to.toBase58())).toBe(0n)
    expect(cluster.balance(payer.publicKey.toBase58())).toBe(1n * sol)
    cluster.settle()
    expect(await statusOf(signature, true)).toBeNull()
  })
})

describe('a node', () => {
  test('that lags sees the past, and does not know a new blockhash', async () => {
    const payer = funded(1n * sol)
    cluster.produce(20)
    const behind = await cluster.addNode()
    behind.lag(8)
    const lagging = new Connection(behind.url, 'confirmed')
    const { raw, signature } = await send(
      [SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: payer.publicKey, lamports: 1 })],
      [payer],
    )
    cluster.settle()
    expect(await statusOf(signature)).toMatchObject({ err: null })
    expect((await lagging.getSignatureStatuses([signature])).value).toEqual([null])
    expect(await lagging.getBlockHeight('finalized')).toBe((await connection.getBlockHeight('finalized')) - 8)
    await expect(lagging.sendRawTransaction(raw)).rejects.toThrow('Blockhash not found')
    behind.unhealthy(42)
    await expect(lagging.sendRawTransaction(raw)).rejects.toThrow('behind by 42 slots')
  })

  test('says that it is a simulator', async () => {
    expect((await connection.getVersion())['solana-core']).toContain('simulator-around-litesvm')
  })

  test('answers what web3.js asks of a cluster', async () => {
    const { voteAccount, node } = cluster.addValidator({ commission: 3 })
    const late = cluster.addValidator({ delinquent: true })
    const votes = await connection.getVoteAccounts()
    expect(votes.current).toMatchObject([{ votePubkey: voteAccount, nodePubkey: node, commission: 3 }])
    expect(votes.delinquent).toMatchObject([{ votePubkey: late.voteAccount }])
    expect(await connection.getGenesisHash()).toBe(cluster.genesisHash)
    expect(await connection.getEpochInfo('processed')).toMatchObject({ epoch: 600, slotsInEpoch: 432, slotIndex: 4, blockHeight: 1004 })
    expect((await connection.getStakeMinimumDelegation()).value).toBe(1)
    cluster.setMinimumDelegation(sol)
    expect((await connection.getStakeMinimumDelegation()).value).toBe(LAMPORTS_PER_SOL)
    cluster.setRecentPriorityFee(77n)
    expect((await connection.getRecentPrioritizationFees())[0]).toMatchObject({ prioritizationFee: 77 })
    cluster.nextEpoch()
    expect(await connection.getEpochInfo('finalized')).toMatchObject({ epoch: 601, slotIndex: 0 })
    const airdrop = await connection.requestAirdrop(new PublicKey(node), 3 * LAMPORTS_PER_SOL)
    cluster.settle()
    expect(await statusOf(airdrop)).toMatchObject({ err: null })
    expect(await connection.getBalance(new PublicKey(node))).toBe(3 * LAMPORTS_PER_SOL)
  })

  test('finds stake accounts by filters', async () => {
    const payer = funded()
    const stakes = [Keypair.generate(), Keypair.generate()]
    const withdrawers = [Keypair.generate().publicKey, Keypair.generate().publicKey] as const
    for (const [index, stake] of stakes.entries())
      await send(
        StakeProgram.createAccount({
          fromPubkey: payer.publicKey,
          stakePubkey: stake.publicKey,
          authorized: new Authorized(payer.publicKey, withdrawers[index] ?? payer.publicKey),
          lamports: 3 * LAMPORTS_PER_SOL,
        }).instructions,
        [payer, stake],
      )
    cluster.settle()
    const by = (offset: number, bytes: string) =>
      connection.getProgramAccounts(StakeProgram.programId, { filters: [{ dataSize: 200 }, { memcmp: { offset, bytes } }] })
    expect((await by(12, payer.publicKey.toBase58())).length).toBe(2)
    expect((await by(44, withdrawers[1].toBase58())).map(({ pubkey }) => pubkey.toBase58())).toEqual([stakes[1]?.publicKey.toBase58()])
    expect(await connection.getProgramAccounts(StakeProgram.programId, { filters: [{ dataSize: 199 }] })).toEqual([])
  })

  test('refuses stake instructions while rewards are distributed', async () => {
    const payer = funded()
    const stake = Keypair.generate()
    const create = StakeProgram.createAccount({
      fromPubkey: payer.publicKey,
      stakePubkey: stake.publicKey,
      authorized: new Authorized(payer.publicKey, payer.publicKey),
      lamports: 3 * LAMPORTS_PER_SOL,
    }).instructions
    cluster.setEpochRewards(true)
    await expect(send(create, [payer, stake])).rejects.toThrow('0x10')
    cluster.setEpochRewards(false)
    await send(create, [payer, stake])
    cluster.settle()
    expect(cluster.balance(stake.publicKey.toBase58())).toBe(3n * sol)
  })
})
