import {
  AddressLookupTableAccount,
  Authorized,
  ComputeBudgetProgram,
  Lockup,
  Message,
  PublicKey,
  StakeAuthorizationLayout,
  StakeProgram,
  SystemProgram,
  Transaction,
  TransactionInstruction,
  TransactionMessage,
} from '@solana/web3.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decodeMessage } from '../../../src/chains/solana/message.ts'
import { buildStakeMessage, buildWithdrawalMessage, stakeAccountAddress } from '../../../src/chains/solana/stake.ts'
import type { ChallengeBody, SolanaStakeBody, SolanaTransactionBody } from '../../../src/contract/schemas/solana.ts'
import { lamports } from '../../../src/lib/amounts.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'
import { wallet } from '../solana-chain/wallet.ts'
import { AMOUNT, createSolanaWorld, type SolanaParts, type SolanaWorld, startSolanaParts } from './solana-world.ts'

let store: Store
let parts: SolanaParts
beforeAll(async () => {
  store = await openStore(await memoryDatabase())
  parts = await startSolanaParts(store)
})
afterAll(async () => {
  await parts?.close()
  await store?.close()
})

const thief = wallet().address
let cases = 0
function newWorld(change = {}) {
  const world = createSolanaWorld(parts)
  world.addSigners()
  const key = `team-a/lied-to-${++cases}`
  world.addStake(change, key)
  return { world, key }
}

/** What a stake transaction is made of, to be made otherwise. */
interface Given {
  readonly message: Uint8Array
  readonly stakeId: string
  readonly blockhash: string
}
const rebuilt = ({ stakeId, blockhash }: Given, change: Partial<Parameters<typeof buildStakeMessage>[0]>) =>
  buildStakeMessage({
    feePayer: parts.payer.address,
    recentBlockhash: blockhash,
    computeUnitLimit: 40_000,
    computeUnitPriceMicroLamports: 0n,
    seed: stakeId,
    stakeAuthority: parts.payer.address,
    withdrawAuthority: parts.withdrawer.address,
    voteAccount: parts.validator.voteAccount,
    amount: lamports(AMOUNT),
    prefunded: false,
    ...change,
  })
const takenApart = ({ message }: Given) => Transaction.populate(Message.from(message), [])
const compiled = (transaction: Transaction) => new Uint8Array(transaction.compileMessage().serialize())
/** With instructions of others after, or before, its own. */
const withMore = (given: Given, ...more: readonly TransactionInstruction[]) =>
  compiled(takenApart(given).add(...more.map((one) => new TransactionInstruction(one))))
const before = (given: Given, first: TransactionInstruction) => {
  const transaction = takenApart(given)
  transaction.instructions.unshift(first)
  return compiled(transaction)
}
const payerKey = () => new PublicKey(parts.payer.address)
const accountKey = (stakeId: string) => new PublicKey(stakeAccountAddress(parts.payer.address, stakeId))

describe('nothing is signed of a stake transaction', () => {
  test.each<{ with: string; lie: (given: Given) => Uint8Array; says: RegExp; reason?: string }>([
    {
      with: 'a transfer on top',
      lie: (given) => withMore(given, SystemProgram.transfer({ fromPubkey: payerKey(), toPubkey: new PublicKey(thief), lamports: 1 })),
      says: /transfer/,
    },
    {
      with: 'another stake authority set afterwards',
      lie: (given) =>
        withMore(
          given,
          ...StakeProgram.authorize({
            stakePubkey: accountKey(given.stakeId),
            authorizedPubkey: payerKey(),
            newAuthorizedPubkey: new PublicKey(thief),
            stakeAuthorizationType: StakeAuthorizationLayout.Staker,
          }).instructions,
        ),
      says: /authorize-staker/,
    },
    {
      with: 'a durable nonce',
      lie: (given) => before(given, SystemProgram.nonceAdvance({ noncePubkey: new PublicKey(thief), authorizedPubkey: payerKey() })),
      says: /durable nonce/,
    },
    { with: 'another withdraw authority', lie: (given) => rebuilt(given, { withdrawAuthority: thief }), says: /withdraw authority/ },
    { with: 'another stake authority', lie: (given) => rebuilt(given, { stakeAuthority: thief }), says: /stake authority/ },
    { with: 'another amount', lie: (given) => rebuilt(given, { amount: lamports(AMOUNT + 1n) }), says: /amount/ },
    { with: 'another vote account', lie: (given) => rebuilt(given, { voteAccount: thief }), says: /delegated/ },
    { with: 'another fee payer', lie: (given) => rebuilt(given, { feePayer: thief }), says: /fee payer/ },
    { with: 'another seed', lie: (given) => rebuilt(given, { seed: 'another' }), says: /seed|stake account/ },
    {
      with: 'a lockup',
      lie: (given) => {
        const transaction = takenApart(given)
        const authorized = new Authorized(payerKey(), new PublicKey(parts.withdrawer.address))
        const lockup = new Lockup(0, 10_000, new PublicKey(thief))
        transaction.instructions = transaction.instructions.map((one) =>
          one.programId.equals(StakeProgram.programId) && one.data.readUInt32LE(0) === 0
            ? StakeProgram.initialize({ stakePubkey: accountKey(given.stakeId), authorized, lockup })
            : one,
        )
        return compiled(transaction)
      },
      says: /lockup/,
    },
    {
      with: 'accounts from a lookup table',
      lie: (given) => {
        const table = new AddressLookupTableAccount({
          key: new PublicKey(thief),
          state: {
            deactivationSlot: 2n ** 64n - 1n,
            lastExtendedSlot: 0,
            lastExtendedSlotStartIndex: 0,
            addresses: [new PublicKey(parts.validator.voteAccount)],
          },
        })
        const instructions = takenApart(given).instructions
        const message = new TransactionMessage({ payerKey: payerKey(), recentBlockhash: given.blockhash, instructions })
        return message.compileToV0Message([table]).serialize()
      },
      says: /lookup table/,
    },
    {
      with: 'a priority fee over the limit',
      lie: (given) => rebuilt(given, { computeUnitPriceMicroLamports: 10_000_000n }),
      says: /priority fee/,
      // It may ask for less when it makes another: no forgery, and nothing that a person must look at.
      reason: 'FeeTooHigh',
    },
    {
      with: 'the compute budget set twice',
      lie: (given) =>
        withMore(
          given,
          ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 1 }),
          ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 2 }),
        ),
      says: /compute budget/,
    },
    { with: 'bytes after its end', lie: ({ message }) => Uint8Array.from([...message, 0]), says: /canonical/ },
  ])('with $with', async ({ lie, says, reason = 'VerificationFailed' }) => {
    const { world, key } = newWorld()
    const balance = world.cluster.balance(parts.payer.address)
    let stakeId = ''
    world.lies.set('createSolanaStake', (body: SolanaStakeBody) => {
      stakeId = body.stakeId
      return body
    })
    world.lies.set('createStakeTransaction', (body: SolanaTransactionBody) => {
      const message = new Uint8Array(Buffer.from(body.messageBase64, 'base64'))
      return { ...body, messageBase64: Buffer.from(lie({ message, stakeId, blockhash: body.recentBlockhash })).toString('base64') }
    })
    await world.visit(world.start(), key)
    expect(world.condition('Ready', key)?.reason, world.explain(key)).toBe(reason)
    expect(world.stalled(key)).toBe(reason === 'FeeTooHigh' ? '' : reason)
    expect(world.condition('Ready', key)?.message).toMatch(says)
    expect(world.signedMessages()).toEqual([])
    expect(world.status(key).transactions).toBeUndefined()
    world.cluster.settle()
    expect(world.cluster.balance(parts.payer.address)).toBe(balance)

    // The truth is taken, once it is told.
    world.lies.clear()
    await world.settle(world.start(), { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
  })

  test.each<{ with: string; change: Partial<SolanaTransactionBody>; says: RegExp }>([
    { with: 'a last valid block height of another age', change: { lastValidBlockHeight: 9_000_000 }, says: /block height/ },
    { with: 'another blockhash than its message has', change: { recentBlockhash: thief }, says: /blockhash/ },
    { with: 'another kind', change: { kind: 'withdrawal' }, says: /another kind/ },
  ])('that comes with $with', async ({ change, says }) => {
    const { world, key } = newWorld()
    world.lies.set('createStakeTransaction', (body: SolanaTransactionBody) => ({ ...body, ...change }))
    await world.settle(world.start(), { key })
    expect(world.stalled(key), world.explain(key)).toBe('VerificationFailed')
    expect(world.condition('Ready', key)?.message).toMatch(says)
    expect(world.signedMessages()).toEqual([])
  })
})

describe('no challenge is signed', () => {
  test.each<{ that: string; lie: (challenge: ChallengeBody) => Partial<ChallengeBody>; says: RegExp }>([
    {
      that: 'is of another domain',
      lie: ({ message }) => ({ message: message.replace(/^\S+/, 'evil.example') }),
      says: /not of staking\.example/,
    },
    {
      that: 'is for another stake',
      lie: ({ message }) => ({ message: message.replace(/Stake: \w+/, 'Stake: another') }),
      says: /another stake/,
    },
    { that: 'names another amount', lie: ({ message }) => ({ message: message.replace(/Amount: \d+/, 'Amount: 1') }), says: /amount/ },
    {
      that: 'is for another network',
      lie: ({ message }) => ({ message: message.replace(/Network: [-\w]+/, 'Network: mainnet-beta') }),
      says: /not for/,
    },
    {
      that: 'names another withdraw authority',
      lie: ({ message }) => ({ message: message.replace(/(Withdraw authority: )\w+/, `$1${thief}`) }),
      says: /withdraw authority/,
    },
    { that: 'is another than the one it came with', lie: () => ({ challengeId: 'another' }), says: /another challenge/ },
    { that: 'says more than it should', lie: ({ message }) => ({ message: `${message}; and all my money` }), says: /form/ },
    {
      that: 'is a transaction in base64',
      lie: () => {
        const transaction = new Transaction({
          feePayer: new PublicKey(parts.withdrawer.address),
          blockhash: thief,
          lastValidBlockHeight: 0,
        })
        transaction.add(
          SystemProgram.transfer({ fromPubkey: new PublicKey(parts.withdrawer.address), toPubkey: new PublicKey(thief), lamports: 1 }),
        )
        return { message: transaction.compileMessage().serialize().toString('base64') }
      },
      says: /transaction/,
    },
  ])('that $that', async ({ lie, says }) => {
    const { world, key } = newWorld()
    const lyingStake = (body: SolanaStakeBody) =>
      body.challenge === undefined ? body : { ...body, challenge: { ...body.challenge, ...lie(body.challenge) } }
    world.lies.set('solanaStake', lyingStake)
    world.lies.set('renewChallenge', (challenge: ChallengeBody) => ({ ...challenge, ...lie(challenge) }))
    await world.settle(world.start(), { key })
    expect(world.stalled(key), world.explain(key)).toBe('VerificationFailed')
    expect(world.condition('Ready', key)?.message).toMatch(says)
    expect(world.signed).toEqual([])
  })

  test('that has expired: a new one is asked for', async () => {
    const { world, key } = newWorld()
    const operator = world.start()
    // Stopped before the challenge is used.
    world.editSpec({ suspend: true }, key)
    await world.visit(operator, key)
    world.editSpec({ suspend: false }, key)
    let renewed = 0
    world.lies.set('solanaStake', (body: SolanaStakeBody) =>
      body.challenge === undefined
        ? body
        : { ...body, challenge: { ...body.challenge, expiresAt: new Date(Date.now() - 1).toISOString() } },
    )
    world.lies.set('renewChallenge', (challenge: ChallengeBody) => {
      renewed++
      return challenge
    })
    await world.settle(operator, { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(renewed).toBe(1)
    expect(world.signed.filter(({ what }) => what === 'challenge')).toHaveLength(1)
    // Nothing of it can be read anywhere.
    const challenge = world.signed.find(({ what }) => what === 'challenge')
    const text = Buffer.from(challenge?.bytes ?? [])
      .subarray(20)
      .toString('latin1')
    expect(text).toContain('asks the withdraw authority')
    expect(JSON.stringify([world.status(key), world.events, world.logged])).not.toContain('asks the withdraw authority')
  })
})

describe('a stake of the service that is not the one asked for is refused:', () => {
  test.each<{ where: string; lie: (body: SolanaStakeBody) => Partial<SolanaStakeBody> }>([
    { where: 'the amount is another', lie: () => ({ amountLamports: lamports(1n) }) },
    { where: 'the withdraw authority is another', lie: () => ({ withdrawAuthority: thief }) },
    { where: 'the fee payer is another', lie: () => ({ feePayer: thief }) },
    { where: 'the stake account is another', lie: () => ({ stakeAccount: thief }) },
    { where: 'the network is another', lie: () => ({ network: 'mainnet-beta' }) },
    { where: 'it belongs to another resource', lie: () => ({ externalReference: 'SolanaStake/team-b/theirs' }) },
    { where: 'its id is too long for a seed', lie: () => ({ stakeId: 'x'.repeat(33) }) },
  ])('$where', async ({ lie }) => {
    const { world, key } = newWorld()
    world.lies.set('createSolanaStake', (body: SolanaStakeBody) => ({ ...body, ...lie(body) }))
    await world.settle(world.start(), { key })
    expect(world.stalled(key), world.explain(key)).toBe('VerificationFailed')
    expect(world.signed).toEqual([])
    world.lies.clear()
    await world.settle(world.start(), { key })
    expect(world.stalled(key), world.explain(key)).toBe('')
  })

  test('the vote account that it chose is not admitted by the policy', async () => {
    const world = createSolanaWorld(parts)
    world.addSigners({ allowedVoteAccounts: [thief] })
    const key = `team-a/lied-to-${++cases}`
    world.addStake({}, key)
    await world.settle(world.start(), { key })
    expect(world.stalled(key)).toBe('VoteAccountNotAllowed')
    expect(world.signed).toEqual([])
  })
})

describe('of a stake that is active, nothing is signed where the service lies', () => {
  async function active(): Promise<{ world: SolanaWorld; key: string }> {
    const { world, key } = newWorld()
    await world.settle(world.start(), { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    return { world, key }
  }
  const lieOf = (build: (message: Uint8Array) => Uint8Array) => (body: SolanaTransactionBody) => ({
    ...body,
    messageBase64: Buffer.from(build(new Uint8Array(Buffer.from(body.messageBase64, 'base64')))).toString('base64'),
  })

  test('about deactivation and withdrawal', async () => {
    const { world, key } = await active()
    const stakeAccount = world.status(key).stakeAccount ?? ''
    world.signed.length = 0
    const withdrawal = (change: Partial<Parameters<typeof buildWithdrawalMessage>[0]>) => (message: Uint8Array) =>
      buildWithdrawalMessage({
        feePayer: parts.payer.address,
        recentBlockhash: decodeMessage(message).recentBlockhash,
        computeUnitLimit: 25_000,
        computeUnitPriceMicroLamports: 0n,
        stakeAccount,
        withdrawAuthority: parts.withdrawer.address,
        destination: parts.withdrawer.address,
        amount: lamports(AMOUNT),
        ...change,
      })
    const refused = async (says: RegExp, by: string) => {
      await world.settle(world.start(), { key })
      expect(world.stalled(key), world.explain(key)).toBe('VerificationFailed')
      expect(world.condition('Stalled', key)?.message).toMatch(says)
      expect(world.signedMessages().filter((one) => one.by === by)).toEqual([])
    }
    world.lies.set('createDeactivationTransaction', lieOf(withdrawal({ destination: thief })))
    world.lies.set('createWithdrawalTransaction', lieOf(withdrawal({ destination: thief })))
    world.editSpec({ desiredState: 'Withdrawn' }, key)
    await refused(/withdraw/, 'payer')
    // The service has made the right one: it is read from its list.
    await refused(/do not go to/, 'withdrawer')
    await world.settle(world.start(), { key })
    expect(world.ready(key), world.explain(key)).toBe(true)
    expect(world.cluster.balance(stakeAccount)).toBe(0n)
  })
})
