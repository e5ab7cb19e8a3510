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
import { describe, expect, test } from 'vitest'
import { lamports } from '../../lib/amounts.ts'
import { publicKey } from './addresses.ts'
import { buildDeactivationMessage, buildStakeMessage, buildWithdrawalMessage, stakeAccountAddress } from './stake.ts'
import { example, frame, testAddress } from './testing.ts'
import { type ExpectedTransaction, type TransactionMismatchCode, verifyTransaction } from './verify-transaction.ts'

const limits = { maxComputeUnits: 100_000, maxPriorityFeeLamports: 1000n }
const stakeAccount = stakeAccountAddress(example.feePayer, example.seed)
const { seed, amount, stakeAuthority, withdrawAuthority, voteAccount, feePayer, destination } = example

const expectedStake: ExpectedTransaction = {
  kind: 'stake',
  feePayer,
  recentBlockhash: example.blockhash,
  limits,
  seed,
  amount,
  stakeAuthority,
  withdrawAuthority,
  voteAccount,
  prefunded: false,
}
const expectedDeactivation: ExpectedTransaction = { kind: 'deactivation', feePayer, limits, stakeAccount, stakeAuthority }
const expectedWithdrawal: ExpectedTransaction = {
  kind: 'withdrawal',
  feePayer,
  limits,
  stakeAccount,
  withdrawAuthority,
  destination,
  amount,
}

const stakeMessage = (change: Partial<Parameters<typeof buildStakeMessage>[0]> = {}) =>
  buildStakeMessage({ ...frame, seed, amount, stakeAuthority, withdrawAuthority, voteAccount, prefunded: false, ...change })

describe('nothing is wrong with', () => {
  test.each<{ name: string; message: Uint8Array; expected: ExpectedTransaction }>([
    { name: 'a stake', message: stakeMessage(), expected: expectedStake },
    { name: 'a stake without a priority fee', message: stakeMessage({ computeUnitPriceMicroLamports: 0n }), expected: expectedStake },
    {
      name: 'a stake at an address that a stranger funded',
      message: stakeMessage({ prefunded: true }),
      expected: { ...expectedStake, prefunded: true },
    },
    {
      name: 'a stake without the sysvars, as the stake program takes it from version 5 on',
      message: compile(Transaction.populate(Message.from(stakeMessage())).instructions.map(inShort)),
      expected: expectedStake,
    },
    {
      name: 'a stake whose authority does not pay',
      message: stakeMessage({ stakeAuthority: testAddress(5) }),
      expected: { ...expectedStake, stakeAuthority: testAddress(5) },
    },
    {
      name: 'a deactivation',
      message: buildDeactivationMessage({ ...frame, stakeAccount, stakeAuthority }),
      expected: expectedDeactivation,
    },
    {
      name: 'a deactivation without the sysvar, as the stake program takes it from version 5 on',
      message: withoutSysvars(
        StakeProgram.deactivate({ stakePubkey: publicKey(stakeAccount), authorizedPubkey: publicKey(stakeAuthority) }),
      ),
      expected: expectedDeactivation,
    },
    {
      name: 'a withdrawal without the sysvars',
      message: withoutSysvars(
        StakeProgram.withdraw({
          stakePubkey: publicKey(stakeAccount),
          authorizedPubkey: publicKey(withdrawAuthority),
          toPubkey: publicKey(destination),
          lamports: Number(amount),
        }),
      ),
      expected: { ...expectedWithdrawal, feePayer },
    },
    {
      name: 'a withdrawal',
      message: buildWithdrawalMessage({ ...frame, stakeAccount, withdrawAuthority, destination, amount }),
      expected: expectedWithdrawal,
    },
  ])('$name', ({ message, expected }) => {
    expect(verifyTransaction(message, expected)).toEqual([])
  })
})

/** A stake transaction taken apart, to be put together wrong. */
const key = (address: string): PublicKey => publicKey(address)
const payer = key(feePayer)
const account = key(stakeAccount)
const thief = testAddress(66)
const parts = {
  limit: ComputeBudgetProgram.setComputeUnitLimit({ units: 40_000 }),
  price: ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 1000 }),
  create: SystemProgram.createAccountWithSeed({
    fromPubkey: payer,
    newAccountPubkey: account,
    basePubkey: payer,
    seed,
    lamports: Number(amount),
    space: 200,
    programId: StakeProgram.programId,
  }),
  initialize: StakeProgram.initialize({ stakePubkey: account, authorized: new Authorized(key(stakeAuthority), key(withdrawAuthority)) }),
  delegate: only(StakeProgram.delegate({ stakePubkey: account, authorizedPubkey: key(stakeAuthority), votePubkey: key(voteAccount) })),
}
type Parts = Partial<Record<keyof typeof parts, TransactionInstruction | undefined>> & {
  before?: TransactionInstruction
  after?: TransactionInstruction
  feePayer?: string
}
function only(transaction: Transaction): TransactionInstruction {
  const [instruction] = transaction.instructions
  if (instruction === undefined) throw new Error('no instruction')
  return instruction
}
function assemble(change: Parts = {}): Uint8Array {
  const { before, after, feePayer: other, ...rest } = change
  const list = [before, ...Object.values({ ...parts, ...rest }), after].filter((each) => each !== undefined)
  return compile(list, other ?? feePayer)
}
/** The short form that version 5 of the stake program takes. */
function inShort({ keys, programId, data }: TransactionInstruction): TransactionInstruction {
  const short = keys.filter(({ pubkey }) => !/^(Sysvar|StakeConfig)/.test(pubkey.toBase58()))
  return new TransactionInstruction({ keys: short, programId, data })
}
function withoutSysvars(transaction: Transaction): Uint8Array {
  return compile([inShort(only(transaction))])
}
function compile(instructions: readonly TransactionInstruction[], from = feePayer): Uint8Array {
  const transaction = new Transaction({ feePayer: key(from), blockhash: example.blockhash, lastValidBlockHeight: 0 }).add(...instructions)
  return new Uint8Array(transaction.compileMessage().serialize())
}
const raw = (program: PublicKey, data: Uint8Array, ...accounts: readonly (readonly [string, boolean])[]) =>
  new TransactionInstruction({
    programId: program,
    keys: accounts.map(([address, isSigner]) => ({ pubkey: key(address), isSigner, isWritable: true })),
    data: Buffer.from(data),
  })
const create = (change: Partial<Parameters<typeof SystemProgram.createAccountWithSeed>[0]>) =>
  SystemProgram.createAccountWithSeed({
    fromPubkey: payer,
    newAccountPubkey: account,
    basePubkey: payer,
    seed,
    lamports: Number(amount),
    space: 200,
    programId: StakeProgram.programId,
    ...change,
  } as Parameters<typeof SystemProgram.createAccountWithSeed>[0])
const withData = (instruction: TransactionInstruction, data: Buffer) => new TransactionInstruction({ ...instruction, data })
const replaceKey = (instruction: TransactionInstruction, index: number, address: string) =>
  new TransactionInstruction({
    ...instruction,
    keys: instruction.keys.map((each, at) => (at === index ? { ...each, pubkey: key(address) } : each)),
  })
const lockup = (unixTimestamp: number, epoch: number, custodian: PublicKey) =>
  StakeProgram.initialize({
    stakePubkey: account,
    authorized: new Authorized(key(stakeAuthority), key(withdrawAuthority)),
    lockup: new Lockup(unixTimestamp, epoch, custodian),
  })

describe('the stake transaction is refused for', () => {
  test('nothing, when it is put together right', () => {
    expect(verifyTransaction(assemble(), expectedStake)).toEqual([])
  })

  test.each<{ name: string; message: () => Uint8Array; codes: TransactionMismatchCode[] }>([
    {
      name: 'an extra transfer',
      message: () => assemble({ after: SystemProgram.transfer({ fromPubkey: payer, toPubkey: key(thief), lamports: 1 }) }),
      codes: ['unexpected-instruction'],
    },
    {
      name: 'an extra transfer to the stake account itself',
      message: () => assemble({ before: SystemProgram.transfer({ fromPubkey: payer, toPubkey: account, lamports: 1 }) }),
      codes: ['unexpected-instruction'],
    },
    {
      name: 'an authorize at the end',
      message: () =>
        assemble({
          after: only(
            StakeProgram.authorize({
              stakePubkey: account,
              authorizedPubkey: payer,
              newAuthorizedPubkey: key(thief),
              stakeAuthorizationType: StakeAuthorizationLayout.Withdrawer,
            }),
          ),
        }),
      codes: ['unexpected-instruction'],
    },
    {
      name: 'a withdrawal at the end',
      message: () =>
        assemble({
          after: only(StakeProgram.withdraw({ stakePubkey: account, authorizedPubkey: payer, toPubkey: key(thief), lamports: 1 })),
        }),
      codes: ['unexpected-instruction'],
    },
    {
      name: 'a split at the end',
      message: () =>
        assemble({ after: raw(StakeProgram.programId, Buffer.from([3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), [stakeAccount, false]) }),
      codes: ['unexpected-instruction'],
    },
    {
      name: 'a nonce advance at the start: it would never expire',
      message: () => assemble({ before: SystemProgram.nonceAdvance({ noncePubkey: key(testAddress(44)), authorizedPubkey: payer }) }),
      codes: ['durable-nonce'],
    },
    {
      name: 'an instruction of an unknown program',
      message: () => assemble({ after: raw(key(thief), Buffer.from([1]), [feePayer, true]) }),
      codes: ['unexpected-program'],
    },
    {
      name: 'a memo',
      message: () => assemble({ after: raw(key('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'), Buffer.from('hello')) }),
      codes: ['unexpected-program'],
    },
    { name: 'a second delegation', message: () => assemble({ after: parts.delegate }), codes: ['unexpected-instruction'] },
    { name: 'no delegation', message: () => assemble({ delegate: undefined }), codes: ['missing-instruction'] },
    { name: 'no initialisation', message: () => assemble({ initialize: undefined }), codes: ['missing-instruction'] },
    { name: 'no creation', message: () => assemble({ create: undefined }), codes: ['missing-instruction'] },
    {
      name: 'a delegation before the initialisation',
      message: () => compile([parts.limit, parts.price, parts.create, parts.delegate, parts.initialize]),
      codes: ['wrong-order'],
    },
    { name: 'another amount', message: () => stakeMessage({ amount: lamports(amount + 1n) }), codes: ['wrong-amount'] },
    { name: 'a smaller amount', message: () => stakeMessage({ amount: lamports(amount - 1n) }), codes: ['wrong-amount'] },
    { name: 'another vote account', message: () => stakeMessage({ voteAccount: thief }), codes: ['wrong-vote-account'] },
    { name: 'another withdraw authority', message: () => stakeMessage({ withdrawAuthority: thief }), codes: ['wrong-withdraw-authority'] },
    {
      name: 'another stake authority',
      message: () => stakeMessage({ stakeAuthority: thief }),
      codes: ['wrong-stake-authority', 'wrong-signers'],
    },
    {
      name: 'swapped authorities',
      message: () => stakeMessage({ stakeAuthority: withdrawAuthority, withdrawAuthority: stakeAuthority }),
      codes: ['wrong-stake-authority', 'wrong-withdraw-authority', 'wrong-signers'],
    },
    {
      name: 'another fee payer',
      message: () => stakeMessage({ feePayer: thief }),
      codes: ['wrong-fee-payer', 'wrong-signers', 'wrong-source', 'wrong-seed', 'wrong-stake-account'],
    },
    {
      name: 'another fee payer, who pays nothing else',
      message: () => assemble({ feePayer: thief }),
      codes: ['wrong-fee-payer', 'wrong-signers'],
    },
    {
      name: 'lamports of another signer of ours',
      message: () => assemble({ create: create({ fromPubkey: key(withdrawAuthority) }) }),
      codes: ['wrong-source', 'wrong-signers'],
    },
    { name: 'another seed', message: () => stakeMessage({ seed: 'other' }), codes: ['wrong-seed', 'wrong-stake-account'] },
    {
      name: 'an account that its seed does not make',
      message: () => assemble({ create: create({ newAccountPubkey: key(thief) }) }),
      codes: ['wrong-stake-account'],
    },
    { name: 'another space', message: () => assemble({ create: create({ space: 201 }) }), codes: ['wrong-space'] },
    { name: 'another owner', message: () => assemble({ create: create({ programId: key(thief) }) }), codes: ['wrong-owner'] },
    { name: 'a lockup by time', message: () => assemble({ initialize: lockup(1, 0, PublicKey.default) }), codes: ['lockup'] },
    { name: 'a lockup by epoch', message: () => assemble({ initialize: lockup(0, 1, PublicKey.default) }), codes: ['lockup'] },
    { name: 'a custodian', message: () => assemble({ initialize: lockup(0, 0, key(thief)) }), codes: ['lockup'] },
    {
      name: 'an initialisation of another account',
      message: () => assemble({ initialize: replaceKey(parts.initialize, 0, thief) }),
      codes: ['wrong-stake-account'],
    },
    {
      name: 'a delegation of another account',
      message: () => assemble({ delegate: replaceKey(parts.delegate, 0, thief) }),
      codes: ['wrong-stake-account'],
    },
    { name: 'another sysvar', message: () => assemble({ delegate: replaceKey(parts.delegate, 2, thief) }), codes: ['wrong-sysvar'] },
    {
      name: 'a delegation with an account more',
      message: () =>
        assemble({
          delegate: new TransactionInstruction({
            ...parts.delegate,
            keys: [...parts.delegate.keys, { pubkey: key(thief), isSigner: false, isWritable: true }],
          }),
        }),
      codes: ['malformed-instruction', 'missing-instruction'],
    },
    {
      name: 'a creation with a byte more',
      message: () => assemble({ create: withData(parts.create, Buffer.concat([parts.create.data, Buffer.from([0])])) }),
      codes: ['malformed-instruction', 'missing-instruction'],
    },
    {
      name: 'an initialisation with a byte less',
      message: () => assemble({ initialize: withData(parts.initialize, parts.initialize.data.subarray(0, -1)) }),
      codes: ['malformed-instruction', 'missing-instruction'],
    },
    {
      name: 'an additional signer',
      message: () =>
        assemble({
          initialize: new TransactionInstruction({
            ...parts.initialize,
            keys: parts.initialize.keys.map((each, index) => (index === 1 ? { ...each, isSigner: true } : each)),
          }),
        }),
      codes: ['wrong-signers'],
    },
    {
      name: 'too high a priority fee',
      message: () => stakeMessage({ computeUnitPriceMicroLamports: 25_001n }),
      codes: ['priority-fee-too-high'],
    },
    {
      name: 'a priority fee on the default limit, 200,000 units for each of three instructions',
      message: () => assemble({ limit: undefined, price: ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 2000 }) }),
      codes: ['priority-fee-too-high'],
    },
    {
      name: 'a priority fee of u64::MAX',
      message: () => assemble({ price: ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 2n ** 64n - 1n }) }),
      codes: ['priority-fee-too-high'],
    },
    { name: 'too high a compute limit', message: () => stakeMessage({ computeUnitLimit: 100_001 }), codes: ['compute-limit'] },
    { name: 'a compute limit of 0', message: () => stakeMessage({ computeUnitLimit: 0 }), codes: ['compute-limit'] },
    { name: 'a price that stands twice', message: () => assemble({ after: parts.price }), codes: ['unexpected-instruction'] },
    {
      name: 'a heap frame',
      message: () => assemble({ before: ComputeBudgetProgram.requestHeapFrame({ bytes: 65_536 }) }),
      codes: ['unexpected-instruction'],
    },
    {
      name: 'the way of a funded address, where nobody funded it',
      message: () => stakeMessage({ prefunded: true }),
      codes: ['unexpected-instruction', 'missing-instruction'],
    },
    {
      name: 'another blockhash than the one it came with',
      message: () => stakeMessage({ recentBlockhash: testAddress(98) }),
      codes: ['wrong-blockhash'],
    },
    {
      name: 'a deactivation in its place',
      message: () => buildDeactivationMessage({ ...frame, stakeAccount, stakeAuthority }),
      codes: ['unexpected-instruction', 'missing-instruction'],
    },
  ])('$name', ({ message, codes }) => {
    const found = verifyTransaction(message(), expectedStake)
    expect([...new Set(found.map(({ code }) => code))].sort()).toEqual([...codes].sort())
    for (const { message: text } of found) expect(text).not.toContain(thief)
  })

  test('a lookup table, or only a newer version', () => {
    const build = (tables: AddressLookupTableAccount[]) =>
      new Uint8Array(
        new TransactionMessage({ payerKey: payer, recentBlockhash: example.blockhash, instructions: Object.values(parts) })
          .compileToV0Message(tables)
          .serialize(),
      )
    const table = new AddressLookupTableAccount({
      key: key(testAddress(50)),
      state: {
        deactivationSlot: 2n ** 64n - 1n,
        lastExtendedSlot: 0,
        lastExtendedSlotStartIndex: 0,
        addresses: [key(voteAccount), key(thief)],
      },
    })
    expect(verifyTransaction(build([table]), expectedStake)).toMatchObject([{ code: 'lookup-table' }])
    expect(verifyTransaction(build([]), expectedStake)).toMatchObject([{ code: 'versioned' }])
  })

  test.each<{ name: string; bytes: () => Uint8Array }>([
    { name: 'a byte more at the end', bytes: () => Buffer.concat([stakeMessage(), Buffer.from([0])]) },
    { name: 'a byte less at the end', bytes: () => stakeMessage().subarray(0, -1) },
    { name: 'nothing', bytes: () => new Uint8Array() },
    { name: 'a header that needs no signature', bytes: () => changed(0, 0) },
    { name: 'a header with more signers than accounts', bytes: () => changed(0, 100) },
    { name: 'a header whose signers are all read-only', bytes: () => changed(1, 1) },
    { name: 'an account that stands twice', bytes: twice },
  ])('bytes that are no canonical message: $name', ({ bytes }) => {
    expect(verifyTransaction(bytes(), expectedStake)).toMatchObject([{ code: 'malformed' }])
  })

  test('an account that no instruction names', () => {
    const message = compile([...Object.values(parts), raw(StakeProgram.programId, Buffer.alloc(4), [thief, false])])
    // Without the instruction, which is the last of six, of 3 + 1 + 4 bytes and more.
    const cut = Uint8Array.from(message)
    const count = cut.indexOf(6, 4 + 32 * (cut[3] ?? 0) + 32)
    cut[count] = 5
    const shorter = cut.subarray(0, -(1 + 1 + 1 + 1 + 4))
    expect(verifyTransaction(shorter, expectedStake).map(({ code }) => code)).toEqual(['unexpected-account'])
  })
})

function changed(index: number, value: number): Uint8Array {
  const bytes = Uint8Array.from(stakeMessage())
  bytes[index] = value
  return bytes
}
function twice(): Uint8Array {
  const bytes = Uint8Array.from(stakeMessage())
  bytes.set(bytes.subarray(4 + 32, 4 + 64), 4 + 64)
  return bytes
}

describe('a stake at a funded address is refused for', () => {
  const transfer = (to: string, count: bigint) => SystemProgram.transfer({ fromPubkey: payer, toPubkey: key(to), lamports: count })
  const allocate = (space: number) =>
    SystemProgram.allocate({ accountPubkey: account, basePubkey: payer, seed, space, programId: StakeProgram.programId })
  const assign = (programId: PublicKey) => SystemProgram.assign({ accountPubkey: account, basePubkey: payer, seed, programId })
  const made = (...first: readonly TransactionInstruction[]) => compile([...first, parts.initialize, parts.delegate])

  test.each<{ name: string; message: () => Uint8Array; codes: TransactionMismatchCode[] }>([
    { name: 'nothing', message: () => made(transfer(stakeAccount, amount), allocate(200), assign(StakeProgram.programId)), codes: [] },
    {
      name: 'another amount',
      message: () => made(transfer(stakeAccount, amount - 1n), allocate(200), assign(StakeProgram.programId)),
      codes: ['wrong-amount'],
    },
    {
      name: 'a transfer elsewhere',
      message: () => made(transfer(thief, amount), allocate(200), assign(StakeProgram.programId)),
      codes: ['wrong-stake-account'],
    },
    {
      name: 'a second transfer elsewhere',
      message: () => made(transfer(stakeAccount, amount), transfer(thief, 1n), allocate(200), assign(StakeProgram.programId)),
      codes: ['unexpected-instruction', 'wrong-amount', 'wrong-stake-account'],
    },
    {
      name: 'another space',
      message: () => made(transfer(stakeAccount, amount), allocate(100), assign(StakeProgram.programId)),
      codes: ['wrong-space'],
    },
    {
      name: 'another owner',
      message: () => made(transfer(stakeAccount, amount), allocate(200), assign(key(thief))),
      codes: ['wrong-owner'],
    },
    {
      name: 'an allocation of a base that is not the fee payer',
      message: () =>
        made(
          transfer(stakeAccount, amount),
          SystemProgram.allocate({ accountPubkey: account, basePubkey: key(thief), seed, space: 200, programId: StakeProgram.programId }),
          assign(StakeProgram.programId),
        ),
      codes: ['wrong-seed', 'wrong-signers'],
    },
  ])('$name', ({ message, codes }) => {
    const found = verifyTransaction(message(), { ...expectedStake, prefunded: true })
    expect([...new Set(found.map(({ code }) => code))].sort()).toEqual([...codes].sort())
  })
})

describe('a deactivation is refused for', () => {
  test.each<{ name: string; message: () => Uint8Array; codes: TransactionMismatchCode[] }>([
    {
      name: 'another stake account',
      message: () => buildDeactivationMessage({ ...frame, stakeAccount: thief, stakeAuthority }),
      codes: ['wrong-stake-account'],
    },
    {
      name: 'another authority',
      message: () => buildDeactivationMessage({ ...frame, stakeAccount, stakeAuthority: thief }),
      codes: ['wrong-stake-authority', 'wrong-signers'],
    },
    {
      name: 'a withdrawal in its place',
      message: () => buildWithdrawalMessage({ ...frame, stakeAccount, withdrawAuthority: stakeAuthority, destination: thief, amount }),
      codes: ['unexpected-instruction', 'missing-instruction'],
    },
  ])('$name', ({ message, codes }) => {
    const found = verifyTransaction(message(), expectedDeactivation)
    expect([...new Set(found.map(({ code }) => code))].sort()).toEqual([...codes].sort())
  })
})

describe('a withdrawal is refused for', () => {
  const build = (change: Partial<Parameters<typeof buildWithdrawalMessage>[0]>) => () =>
    buildWithdrawalMessage({ ...frame, stakeAccount, withdrawAuthority, destination, amount, ...change })
  const custodian = () => {
    const instruction = only(
      StakeProgram.withdraw({
        stakePubkey: account,
        authorizedPubkey: key(withdrawAuthority),
        toPubkey: key(destination),
        lamports: Number(amount),
        custodianPubkey: key(thief),
      }),
    )
    return compile([instruction])
  }
  test.each<{ name: string; message: () => Uint8Array; codes: TransactionMismatchCode[] }>([
    { name: 'another destination', message: build({ destination: thief }), codes: ['wrong-destination'] },
    { name: 'a part of the amount', message: build({ amount: lamports(amount - 1n) }), codes: ['wrong-amount'] },
    { name: 'another stake account', message: build({ stakeAccount: thief }), codes: ['wrong-stake-account'] },
    {
      name: 'another authority',
      message: build({ withdrawAuthority: thief }),
      codes: ['wrong-withdraw-authority', 'wrong-signers'],
    },
    { name: 'a custodian', message: custodian, codes: ['malformed-instruction', 'missing-instruction', 'wrong-signers'] },
  ])('$name', ({ message, codes }) => {
    const found = verifyTransaction(message(), expectedWithdrawal)
    expect([...new Set(found.map(({ code }) => code))].sort()).toEqual([...codes].sort())
  })
})
