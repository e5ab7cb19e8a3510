import { PublicKey, StakeProgram, SystemProgram, Transaction, TransactionInstruction } from '@solana/web3.js'
import { describe, expect, test } from 'vitest'
import { buildDeactivationMessage, buildStakeMessage, buildWithdrawalMessage, stakeAccountAddress } from '../../../chains/solana/stake.ts'
import { frame, testAddress } from '../../../chains/solana/testing.ts'
import { lamports } from '../../../lib/amounts.ts'
import { createStakeHistory } from './history.ts'

const signal = new AbortController().signal
const seed = 'stake-1'
const payer = frame.feePayer
const account = stakeAccountAddress(payer, seed)
const withdrawAuthority = testAddress(21)
const destination = testAddress(22)
const thief = testAddress(23)

const made = buildStakeMessage({
  ...frame,
  seed,
  stakeAuthority: payer,
  withdrawAuthority,
  voteAccount: testAddress(24),
  amount: lamports(5_000_000_000n),
  prefunded: false,
})
const deactivated = buildDeactivationMessage({ ...frame, stakeAccount: account, stakeAuthority: payer })
const withdrawn = (to: string, amount = 5_000_000_000n) =>
  buildWithdrawalMessage({ ...frame, stakeAccount: account, withdrawAuthority, destination: to, amount: lamports(amount) })
const of = (...transactions: readonly Transaction[]): Uint8Array => {
  const transaction = new Transaction({ feePayer: new PublicKey(payer), blockhash: frame.recentBlockhash, lastValidBlockHeight: 1 })
  return new Uint8Array(
    transaction
      .add(...transactions)
      .compileMessage()
      .serialize(),
  )
}
const dust = of(
  new Transaction().add(SystemProgram.transfer({ fromPubkey: new PublicKey(payer), toPubkey: new PublicKey(account), lamports: 1 })),
)
const split = of(
  StakeProgram.split(
    {
      stakePubkey: new PublicKey(account),
      authorizedPubkey: new PublicKey(payer),
      splitStakePubkey: new PublicKey(thief),
      lamports: 1_000,
    },
    0,
  ),
)

/** A stranger's own stake, with this account named in the place of a sysvar. */
const otherMade = of(
  new Transaction().add(
    new TransactionInstruction({
      programId: StakeProgram.programId,
      keys: [testAddress(25), account].map((key) => ({ pubkey: new PublicKey(key), isSigner: false, isWritable: true })),
      data: Buffer.concat([Buffer.alloc(4), Buffer.alloc(64, 7), Buffer.alloc(48)]),
    }),
  ),
)
const otherDeactivated = of(
  new Transaction().add(
    new TransactionInstruction({
      programId: StakeProgram.programId,
      keys: [testAddress(25), account, payer].map((key) => ({
        pubkey: new PublicKey(key),
        isSigner: key === payer,
        isWritable: key !== payer,
      })),
      data: Buffer.from([5, 0, 0, 0]),
    }),
  ),
)
const foreign = (programId: PublicKey) =>
  of(
    new Transaction().add(
      new TransactionInstruction({
        programId,
        keys: [{ pubkey: new PublicKey(account), isSigner: false, isWritable: true }],
        data: Buffer.from([8, 0, 0, 0]),
      }),
    ),
  )

type Past = Uint8Array | 'failed' | 'unreadable'
/** The account's life, oldest first, as nodes show it. */
const chainOf = (...life: readonly Past[]) => ({
  past: async () => life.map((one, index) => ({ signature: `t${index}`, slot: BigInt(index), failed: one === 'failed' })).toReversed(),
  message: async (signature: string) => {
    const one = life[Number(signature.slice(1))]
    return one instanceof Uint8Array ? one : undefined
  },
})
const history = createStakeHistory()

describe('who did a step', () => {
  test.each<{ kind: 'stake' | 'deactivation'; life: readonly Past[]; found: string | undefined }>([
    { kind: 'stake', life: [], found: undefined },
    { kind: 'stake', life: [dust, 'failed'], found: undefined },
    { kind: 'stake', life: [dust, made, deactivated], found: 't1' },
    { kind: 'stake', life: [made, deactivated, withdrawn(thief)], found: 't0' },
    { kind: 'deactivation', life: [made, dust], found: undefined },
    { kind: 'deactivation', life: [made, deactivated, dust], found: 't1' },
    { kind: 'deactivation', life: [made, 'unreadable'], found: undefined },
    { kind: 'stake', life: [foreign(SystemProgram.programId), otherMade], found: undefined },
    { kind: 'stake', life: [otherMade, made], found: 't1' },
    { kind: 'deactivation', life: [made, otherDeactivated], found: undefined },
  ])('of a $kind is $found', async ({ kind, life, found }) => {
    const sought = await history.doerOf(chainOf(...life), { account, kind, atSlot: 0n }, signal)
    expect(sought.is === 'found' ? sought.hash : undefined).toBe(found)
  })
})

describe('a closed account was withdrawn to where the resource says', () => {
  test.each<{ where: string; life: readonly Past[]; closing: string }>([
    { where: 'one transaction paid it all there', life: [made, deactivated, withdrawn(destination)], closing: 't2' },
    {
      where: 'two did, among strangers’ lamports and failures',
      life: [dust, made, deactivated, 'failed', withdrawn(destination), dust, withdrawn(destination, 1n), dust],
      closing: 't6',
    },
  ])('where $where', async ({ life, closing }) => {
    expect(await history.withdrawalOf(chainOf(...life), { account, destination, atSlot: 0n }, signal)).toMatchObject({
      is: 'found',
      hash: closing,
    })
  })

  test.each<{ where: string; life: readonly Past[]; says: string }>([
    { where: 'it went to another', life: [made, deactivated, withdrawn(thief)], says: `withdrew its money to ${thief}` },
    { where: 'a part of it did', life: [made, deactivated, withdrawn(thief, 4n), withdrawn(destination)], says: thief },
    {
      where: 'a part of it was split off',
      life: [made, split, deactivated, withdrawn(destination)],
      says: 't1 of somebody else took money',
    },
    { where: 'a transaction can not be read', life: [made, 'unreadable', withdrawn(destination)], says: 't1' },
    {
      where: 'the history does not reach back to its making',
      life: [deactivated, withdrawn(destination)],
      says: 'no RPC node has the history',
    },
    { where: 'there is no history', life: [], says: 'no RPC node has the history' },
    { where: 'nothing that is seen has closed it', life: [made, deactivated], says: 'no RPC node has the history' },
  ])('not where $where', async ({ life, says }) => {
    const sought = await history.withdrawalOf(chainOf(...life), { account, destination, atSlot: 0n }, signal)
    expect(sought).toMatchObject({ is: 'elsewhere', message: expect.stringContaining(says) })
  })

  const many = (count: number) => Array.from({ length: count }, () => dust)
  test('and strangers who name it a hundred times since hide nothing', async () => {
    const chain = chainOf(made, deactivated, withdrawn(destination), ...many(100))
    expect(await history.withdrawalOf(chain, { account, destination, atSlot: 0n }, signal)).toMatchObject({ is: 'found', hash: 't2' })
    const sought = await history.doerOf(chain, { account, kind: 'deactivation', atSlot: 0n }, signal)
    expect(sought).toMatchObject({ is: 'found', hash: 't1' })
  })
  test('and where they do so more often than is read, that is said, and not that a history is missing', async () => {
    const chain = chainOf(made, deactivated, withdrawn(destination), ...many(300))
    const sought = await history.withdrawalOf(chain, { account, destination, atSlot: 0n }, signal)
    expect(sought).toMatchObject({ is: 'elsewhere', message: expect.stringContaining('303 transactions or more name it') })
  })

  test('not where nobody can say where that is', async () => {
    const sought = await history.withdrawalOf(
      chainOf(made, deactivated, withdrawn(destination)),
      { account, destination: undefined, atSlot: 0n },
      signal,
    )
    expect(sought.is).toBe('elsewhere')
  })
})
