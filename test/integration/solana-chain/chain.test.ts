import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stakePosition } from '../../../src/chains/solana/activation.ts'
import type { SolanaChain } from '../../../src/chains/solana/chain.ts'
import { decideLanding } from '../../../src/chains/solana/expiry.ts'
import { solanaNetworkConfig } from '../../../src/chains/solana/networks.ts'
import { stakeProgram } from '../../../src/chains/solana/programs.ts'
import { createSolanaChain } from '../../../src/chains/solana/rpc-chain.ts'
import {
  buildDeactivationMessage,
  buildStakeMessage,
  buildWithdrawalMessage,
  computeUnits,
  stakeAccountAddress,
  transactionFee,
} from '../../../src/chains/solana/stake.ts'
import { decodeStakeAccount } from '../../../src/chains/solana/stake-account.ts'
import { lamports } from '../../../src/lib/amounts.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { type SolanaCluster, startSolanaCluster, type Validator } from '../../chains/solana/cluster.ts'
import { signed, type Wallet, wallet } from './wallet.ts'

const never = new AbortController().signal
const sol = 1_000_000_000n
const seed = '0195c0de0195c0de0195c0de0195c0de'
const price = 2500n

let cluster: SolanaCluster
let chain: SolanaChain
let payer: Wallet
let withdrawer: Wallet
let validator: Validator
beforeEach(async () => {
  cluster = await startSolanaCluster()
  chain = chainOver(cluster.url)
  payer = wallet()
  withdrawer = wallet()
  validator = cluster.addValidator({ commission: 8 })
  cluster.fund(payer.address, 100n * sol)
})
afterEach(() => cluster.close())

const chainOver = (...rpcUrls: string[]) =>
  createSolanaChain({
    config: solanaNetworkConfig.parse({ name: 'test', chain: 'Solana', rpcUrls, genesisHash: cluster.genesisHash }),
    clock: systemClock,
    timeoutMs: 2000,
  })

const amount = lamports(5n * sol)
const frameOf = async (units: number) => {
  const { blockhash, lastValidBlockHeight, slot } = await chain.latestBlockhash(never)
  const frame = {
    feePayer: payer.address,
    recentBlockhash: blockhash,
    computeUnitLimit: units,
    computeUnitPriceMicroLamports: price,
  }
  return { frame, lastValidBlockHeight, slot }
}
async function stakeTransaction(change: { prefunded?: boolean; stakeAmount?: bigint } = {}) {
  const { frame, lastValidBlockHeight, slot } = await frameOf(computeUnits.stake)
  const message = buildStakeMessage({
    ...frame,
    seed,
    stakeAuthority: payer.address,
    withdrawAuthority: withdrawer.address,
    voteAccount: validator.voteAccount,
    amount: lamports(change.stakeAmount ?? amount),
    prefunded: change.prefunded ?? false,
  })
  return { message, raw: signed(message, payer), lastValidBlockHeight, slot }
}
const send = (raw: Uint8Array, skipPreflight = false) => chain.sendTransaction(raw, { skipPreflight }, never)
const stakeAccount = () => stakeAccountAddress(payer.address, seed)
async function position() {
  const { account, clock, history, arithmetic } = await chain.stakeView(stakeAccount(), 'confirmed', never)
  if (account === undefined) return undefined
  return stakePosition({ state: decodeStakeAccount(account), lamports: account.lamports, epoch: clock.epoch, history, arithmetic })
}

describe('a stake', () => {
  test('lives its whole life, and all money is back but the fees', async () => {
    const { message, raw } = await stakeTransaction()
    const fee = await chain.feeFor(message, never)
    expect(fee).toBe(transactionFee({ signatures: 1, computeUnitLimit: computeUnits.stake, computeUnitPriceMicroLamports: price }))
    const before = await chain.simulate(message, { watch: [stakeAccount(), payer.address] }, never)
    expect(before.failure).toBeUndefined()
    expect(before.unitsConsumed).toBeLessThan(BigInt(computeUnits.stake))
    expect(before.accounts[0]).toMatchObject({ lamports: amount, owner: stakeProgram })
    expect(before.accounts[1]?.lamports).toBe(100n * sol - amount - (fee ?? 0n))
    expect(await position()).toBeUndefined()

    await send(raw)
    cluster.settle()
    expect(await position()).toMatchObject({ phase: 'ACTIVATING', effective: 0n, activationEpoch: 600n })
    cluster.nextEpoch()
    expect(await position()).toMatchObject({ phase: 'ACTIVE', effective: amount - 2_282_880n })

    const deactivation = await frameOf(computeUnits.deactivation)
    await send(
      signed(buildDeactivationMessage({ ...deactivation.frame, stakeAccount: stakeAccount(), stakeAuthority: payer.address }), payer),
    )
    cluster.settle()
    expect(await position()).toMatchObject({ phase: 'DEACTIVATING', deactivationEpoch: 601n })
    cluster.nextEpoch()
    expect(await position()).toMatchObject({ phase: 'INACTIVE', inactive: amount })

    const withdrawal = await frameOf(computeUnits.withdrawal)
    const last = buildWithdrawalMessage({
      ...withdrawal.frame,
      stakeAccount: stakeAccount(),
      withdrawAuthority: withdrawer.address,
      destination: payer.address,
      amount,
    })
    const simulated = await chain.simulate(last, { watch: [stakeAccount()] }, never)
    expect(simulated).toMatchObject({ accounts: [undefined] })
    expect(simulated.unitsConsumed).toBeLessThan(BigInt(computeUnits.withdrawal))
    await send(signed(last, payer, withdrawer))
    cluster.settle()
    expect(await position()).toBeUndefined()
    const fees =
      (fee ?? 0n) +
      transactionFee({ signatures: 1, computeUnitLimit: computeUnits.deactivation, computeUnitPriceMicroLamports: price }) +
      transactionFee({ signatures: 2, computeUnitLimit: computeUnits.withdrawal, computeUnitPriceMicroLamports: price })
    expect(cluster.balance(payer.address)).toBe(100n * sol - fees)
  })

  test('is made at an address that a stranger funded, and keeps what he sent', async () => {
    cluster.fund(stakeAccount(), 1_000_000n)
    const plain = await stakeTransaction()
    await expect(send(plain.raw)).rejects.toMatchObject({ code: 'account-in-use', failure: { instruction: 2, custom: 0 } })
    const { raw } = await stakeTransaction({ prefunded: true })
    await send(raw)
    cluster.settle()
    const account = await chain.account(stakeAccount(), 'finalized', never)
    expect(account).toMatchObject({ lamports: amount + 1_000_000n, owner: stakeProgram })
    expect(account === undefined ? undefined : decodeStakeAccount(account)).toMatchObject({
      kind: 'stake',
      meta: { staker: payer.address, withdrawer: withdrawer.address, rentExemptReserve: 2_282_880n },
      delegation: { voter: validator.voteAccount, stake: amount + 1_000_000n - 2_282_880n },
    })
  })

  test("can't be made twice", async () => {
    await send((await stakeTransaction()).raw)
    cluster.settle()
    await expect(send((await stakeTransaction()).raw)).rejects.toMatchObject({ code: 'account-in-use' })
    await expect(send((await stakeTransaction({ prefunded: true })).raw)).rejects.toMatchObject({ code: 'account-in-use' })
    expect(cluster.balance(stakeAccount())).toBe(amount)
  })

  test.each<{ name: string; prepare: () => void; stakeAmount?: bigint; code: string }>([
    { name: 'without enough lamports', prepare: () => {}, stakeAmount: 100n * sol, code: 'insufficient-funds' },
    { name: 'while rewards are distributed', prepare: () => cluster.setEpochRewards(true), code: 'epoch-rewards' },
    { name: 'of less than the rent reserve', prepare: () => {}, stakeAmount: 2_282_879n, code: 'insufficient-funds' },
    { name: 'of the rent reserve and nothing to delegate', prepare: () => {}, stakeAmount: 2_282_880n, code: 'insufficient-delegation' },
  ])('is refused $name', async ({ prepare, stakeAmount, code }) => {
    prepare()
    const { raw, message } = await stakeTransaction(stakeAmount === undefined ? {} : { stakeAmount })
    await expect(send(raw)).rejects.toMatchObject({ name: 'SolanaError', code })
    expect(await chain.simulate(message, {}, never)).toMatchObject({ meaning: code })
  })
})

describe('a transaction', () => {
  const landing = async (signature: string, lastValidBlockHeight: bigint, slot: bigint, over = chain) =>
    decideLanding({ lastValidBlockHeight, facts: await over.landingFacts([signature], never), preparedAtSlot: slot })

  test('may land until it is in a block, lands, and is final', async () => {
    const { raw, lastValidBlockHeight, slot } = await stakeTransaction()
    const signature = await send(raw)
    expect(await landing(signature, lastValidBlockHeight, slot)).toMatchObject({ kind: 'may-land' })
    cluster.produce(2)
    expect(await landing(signature, lastValidBlockHeight, slot)).toMatchObject({ kind: 'landed', final: false })
    cluster.settle()
    expect(await landing(signature, lastValidBlockHeight, slot)).toMatchObject({ kind: 'landed', final: true })
    await expect(send(raw)).resolves.toBe(signature)
  })

  test('that is dropped expires only when a final block says so', async () => {
    const { raw, lastValidBlockHeight, slot } = await stakeTransaction()
    cluster.node.fate({ kind: 'drop' })
    const signature = await send(raw)
    const height = async () => chain.blockHeight('finalized', never)
    while ((await height()) < lastValidBlockHeight) cluster.produce()
    expect(await landing(signature, lastValidBlockHeight, slot)).toMatchObject({ kind: 'may-land', blocksLeft: 1n })
    cluster.produce()
    expect(await landing(signature, lastValidBlockHeight, slot)).toEqual({ kind: 'expired' })
  })

  test('that lands at the very last height is found, not lost', async () => {
    const { raw, lastValidBlockHeight, slot } = await stakeTransaction()
    // The block after the last valid height still takes it: its parent has exactly the last valid height.
    const blocks = Number(lastValidBlockHeight) - cluster.ledger.head().height
    cluster.node.fate({ kind: 'late', blocks })
    const signature = await send(raw)
    cluster.produce(blocks + 1)
    expect(cluster.ledger.head().height).toBe(Number(lastValidBlockHeight) + 1)
    expect(await landing(signature, lastValidBlockHeight, slot)).toMatchObject({ kind: 'landed', final: false })
    cluster.settle()
    expect(await landing(signature, lastValidBlockHeight, slot)).toMatchObject({ kind: 'landed', final: true })
  })

  test('that a node has forgotten is unknown to it, and found by another', async () => {
    const { raw, lastValidBlockHeight, slot } = await stakeTransaction()
    const signature = await send(raw)
    cluster.settle()
    const other = await cluster.addNode()
    cluster.node.loseHistory()
    cluster.produce(200)
    expect(await landing(signature, lastValidBlockHeight, slot)).toEqual({ kind: 'unknown' })
    expect(await landing(signature, lastValidBlockHeight, slot, chainOver(cluster.url, other.url))).toMatchObject({
      kind: 'landed',
      final: true,
    })
  })

  test('is taken by another node where one does not answer in time, lags, or is of another cluster', async () => {
    const bad = await cluster.addNode()
    bad.answerLate('sendTransaction', 60_000)
    bad.claimGenesis('11111111111111111111111111111111')
    const { raw } = await stakeTransaction()
    await chainOver(bad.url, cluster.url).sendTransaction(raw, { skipPreflight: false }, never)
    expect(bad.calls.some(({ method }) => method === 'sendTransaction')).toBe(false)
    bad.claimGenesis(undefined)
    bad.unhealthy(300)
    await expect(chainOver(bad.url).latestBlockhash(never)).resolves.toBeDefined()
    cluster.settle()
    expect(cluster.balance(stakeAccount())).toBe(amount)
  })

  test('that a lagging node refuses says so', async () => {
    const { raw } = await stakeTransaction()
    cluster.node.unhealthy(300)
    await expect(send(raw)).rejects.toMatchObject({ code: 'node-behind' })
    await expect(send(raw, true)).resolves.toBeDefined()
  })

  test('fails with an error that does not hold the URL', async () => {
    const wrong = chainOver(`${cluster.url}/canary-91`)
    cluster.node.claimGenesis('11111111111111111111111111111111')
    const error = await wrong.blockHeight('confirmed', never).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'wrong-cluster' })
    expect(inspect(error, { depth: 9 })).not.toContain('canary-91')
  })
})

test('the chain tells what stakes need to know', async () => {
  expect(await chain.rentExemption(200, never)).toBe(2_282_880n)
  expect(await chain.minimumDelegation(never)).toBe(1n)
  expect(await chain.epochInfo('finalized', never)).toMatchObject({ epoch: 600n, blockHeight: 1000n, slotsInEpoch: 432n })
  expect(await chain.balance(payer.address, 'confirmed', never)).toBe(100n * sol)
  cluster.setRecentPriorityFee(123n)
  expect(await chain.recentPriorityFee([stakeAccount()], never)).toBe(123n)
  expect(await chain.voteAccount(validator.voteAccount, never)).toMatchObject({
    kind: 'vote-account',
    account: { commission: 8, delinquent: false, node: validator.node },
  })
  const sleeping = cluster.addValidator({ delinquent: true })
  expect(await chain.voteAccount(sleeping.voteAccount, never)).toMatchObject({ account: { delinquent: true } })
  expect(await chain.voteAccount(payer.address, never)).toEqual({ kind: 'not-a-vote-account' })
  expect(await chain.voteAccount(wallet().address, never)).toEqual({ kind: 'missing' })
  const { clock, history, rewardsActive } = await chain.stakeView(stakeAccount(), 'confirmed', never)
  expect(clock).toMatchObject({ epoch: 600n })
  expect(history.get(599n)).toMatchObject({ effective: 380_000_000n * sol })
  expect(rewardsActive).toBe(false)
  cluster.setEpochRewards(true)
  expect((await chain.stakeView(stakeAccount(), 'processed', never)).rewardsActive).toBe(true)
})
