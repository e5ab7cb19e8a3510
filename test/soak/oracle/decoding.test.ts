import { Keypair, PublicKey, StakeProgram, SystemProgram, Transaction } from '@solana/web3.js'
import { encodeAbiParameters } from 'viem'
import { expect, test } from 'vitest'
import { base58, hexOf } from './bytes.ts'
import { decodeDeposit, decodeRequest } from './ethereum.ts'
import { actionsOf, decodeStakeAccount } from './solana.ts'

/** What the oracle reads by itself, beside what others write: viem and web3.js are in this test alone. */

const bytes = (length: number, fill: number): `0x${string}` => hexOf(Buffer.alloc(length, fill)) as `0x${string}`
const little = (value: bigint): `0x${string}` => {
  const eight = Buffer.alloc(8)
  eight.writeBigUInt64LE(value)
  return hexOf(eight) as `0x${string}`
}

test('a deposit, as the contract logs it', () => {
  const data = encodeAbiParameters(
    ['pubkey', 'credentials', 'amount', 'signature', 'index'].map((name) => ({ name, type: 'bytes' })),
    [bytes(48, 1), bytes(32, 2), little(34_000_000_001n), bytes(96, 3), little(7n)],
  )
  expect(decodeDeposit({ data, blockNumber: '0x10', transactionHash: '0xAB' })).toEqual({
    pubkey: bytes(48, 1),
    credentials: bytes(32, 2),
    amountGwei: 34_000_000_001n,
    block: 16,
    hash: '0xab',
  })
})

test('a request of EIP-7002, as the contract logs it', () => {
  const data = `${bytes(20, 4)}${bytes(48, 5).slice(2)}00000000000f4240`
  expect(decodeRequest({ data, blockNumber: '0x2', transactionHash: '0x1' })).toEqual({
    source: bytes(20, 4),
    pubkey: bytes(48, 5),
    amountGwei: 1_000_000n,
    block: 2,
    hash: '0x1',
  })
})

const [staker, withdrawer, vote] = [Keypair.generate(), Keypair.generate(), Keypair.generate()].map(({ publicKey }) => publicKey) as [
  PublicKey,
  PublicKey,
  PublicKey,
]

test('the instructions of a stake’s transactions', async () => {
  const account = await PublicKey.createWithSeed(staker, 'seed', StakeProgram.programId)
  const transaction = new Transaction({ feePayer: staker, blockhash: base58(Buffer.alloc(32, 9)), lastValidBlockHeight: 1 })
  transaction.add(
    SystemProgram.createAccountWithSeed({
      fromPubkey: staker,
      basePubkey: staker,
      newAccountPubkey: account,
      seed: 'seed',
      lamports: 5_000_000_001,
      space: 200,
      programId: StakeProgram.programId,
    }),
    StakeProgram.initialize({ stakePubkey: account, authorized: { staker, withdrawer } }),
    StakeProgram.delegate({ stakePubkey: account, authorizedPubkey: staker, votePubkey: vote }).instructions[0] as never,
    StakeProgram.deactivate({ stakePubkey: account, authorizedPubkey: staker }).instructions[0] as never,
    StakeProgram.withdraw({ stakePubkey: account, authorizedPubkey: withdrawer, toPubkey: withdrawer, lamports: 12 })
      .instructions[0] as never,
    SystemProgram.transfer({ fromPubkey: staker, toPubkey: vote, lamports: 3 }),
  )
  const of = account.toBase58()
  expect(actionsOf(transaction.serialize({ requireAllSignatures: false, verifySignatures: false }))).toEqual([
    { is: 'create', account: of, payer: staker.toBase58(), lamports: 5_000_000_001n },
    { is: 'initialize', account: of, staker: staker.toBase58(), withdrawer: withdrawer.toBase58() },
    { is: 'delegate', account: of, vote: vote.toBase58() },
    { is: 'deactivate', account: of },
    { is: 'withdraw', account: of, to: withdrawer.toBase58(), lamports: 12n },
    { is: 'transfer', from: staker.toBase58(), to: vote.toBase58(), lamports: 3n },
  ])
})

test('an instruction that nobody knows is said to be one', () => {
  const transaction = new Transaction({ feePayer: staker, blockhash: base58(Buffer.alloc(32, 9)), lastValidBlockHeight: 1 })
  transaction.add(
    StakeProgram.authorize({
      stakePubkey: vote,
      authorizedPubkey: staker,
      newAuthorizedPubkey: withdrawer,
      stakeAuthorizationType: { index: 1 },
    }),
  )
  const [action] = actionsOf(transaction.serialize({ requireAllSignatures: false, verifySignatures: false }))
  expect(action).toMatchObject({ is: 'unknown', what: expect.stringContaining('Stake1111') })
})

test('a delegated stake account', () => {
  const data = Buffer.alloc(200)
  data.writeUInt32LE(2)
  for (const [at, key] of [
    [12, staker],
    [44, withdrawer],
    [124, vote],
  ] as const)
    data.set(key.toBytes(), at)
  const [as, by, to] = [staker.toBase58(), withdrawer.toBase58(), vote.toBase58()]
  expect(decodeStakeAccount(data, 5n)).toEqual({ lamports: 5n, staker: as, withdrawer: by, vote: to })
})

test('base58 keeps leading zeros', () => {
  for (const key of [new PublicKey(Buffer.alloc(32)), new PublicKey(Buffer.concat([Buffer.alloc(3), Buffer.alloc(29, 200)])), staker])
    expect(base58(key.toBytes())).toBe(key.toBase58())
})
