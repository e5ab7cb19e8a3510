import { StakeProgram } from '@solana/web3.js'
import { describe, expect, test } from 'vitest'
import { publicKey } from './addresses.ts'
import { decodeInstruction } from './instructions.ts'
import { decodeMessage } from './message.ts'
import { buildAuthorizationMessage, buildDeactivationMessage, type NewAuthority } from './stake.ts'
import { example, frame, testAddress } from './testing.ts'
import { type ExpectedTransaction, type TransactionMismatchCode, verifyTransaction } from './verify-transaction.ts'

const { stakeAuthority, withdrawAuthority, feePayer } = example
const stakeAccount = testAddress(20)
const to = (number: number, isChecked = true): NewAuthority => ({ address: testAddress(number), isChecked })
type Given = Parameters<typeof buildAuthorizationMessage>[0]
const given: Given = {
  ...frame,
  stakeAccount,
  stakerBy: withdrawAuthority,
  withdrawAuthority,
  newStaker: to(30),
  newWithdrawer: to(31),
}
const expected: ExpectedTransaction = {
  kind: 'authorization',
  feePayer,
  limits: { maxComputeUnits: 100_000, maxPriorityFeeLamports: 1000n },
  stakeAccount,
  stakeAuthority,
  withdrawAuthority,
  stakerBy: withdrawAuthority,
  newStaker: to(30),
  newWithdrawer: to(31),
}
const codes = (message: Uint8Array, change: object = {}): readonly TransactionMismatchCode[] =>
  verifyTransaction(message, { ...expected, ...change } as ExpectedTransaction).map(({ code }) => code)

describe('authorities are replaced', () => {
  test.each<{ what: string; change: Partial<Given> }>([
    { what: 'both, to keys that sign', change: {} },
    { what: 'to addresses that do not sign', change: { newStaker: to(30, false), newWithdrawer: to(31, false) } },
    { what: 'the stake authority alone, by itself', change: { newWithdrawer: undefined, stakerBy: stakeAuthority } },
    { what: 'the withdraw authority alone', change: { newStaker: undefined } },
  ])('$what: what is built is what is expected', ({ change }) => {
    expect(codes(buildAuthorizationMessage({ ...given, ...change }), change)).toEqual([])
  })

  test('the instruction without a signature of the new one is web3.js’s own', () => {
    const { instructions } = decodeMessage(buildAuthorizationMessage({ ...given, newStaker: undefined, newWithdrawer: to(31, false) }))
    const theirs = StakeProgram.authorize({
      stakePubkey: publicKey(stakeAccount),
      authorizedPubkey: publicKey(withdrawAuthority),
      newAuthorizedPubkey: publicKey(testAddress(31)),
      stakeAuthorizationType: { index: 1 },
    }).instructions[0]
    const own = instructions.at(-1)
    expect(Buffer.from(own?.data ?? [])).toEqual(theirs?.data)
    expect(own?.accounts).toEqual(theirs?.keys.map(({ pubkey }) => pubkey.toBase58()))
  })

  test('the withdraw authority goes last: after that the old one may nothing', () => {
    const kinds = decodeMessage(buildAuthorizationMessage(given)).instructions.map((one) => decodeInstruction(one).kind)
    expect(kinds.filter((kind) => kind.startsWith('authorize'))).toEqual(['authorize-staker', 'authorize-withdrawer'])
  })
})

describe('refused is', () => {
  test.each<{ what: string; message: Uint8Array; change?: object; code: TransactionMismatchCode }>([
    { what: 'another successor', message: buildAuthorizationMessage({ ...given, newWithdrawer: to(32) }), code: 'wrong-new-authority' },
    {
      what: 'one that would not sign',
      message: buildAuthorizationMessage({ ...given, newWithdrawer: to(31, false) }),
      code: 'wrong-new-authority',
    },
    {
      what: 'one that nobody asked to sign',
      message: buildAuthorizationMessage(given),
      change: { newWithdrawer: to(31, false) },
      code: 'wrong-new-authority',
    },
    {
      what: 'another stake account',
      message: buildAuthorizationMessage({ ...given, stakeAccount: testAddress(21) }),
      code: 'wrong-stake-account',
    },
    {
      what: 'another present authority',
      message: buildAuthorizationMessage({ ...given, withdrawAuthority: testAddress(22) }),
      code: 'wrong-withdraw-authority',
    },
    { what: 'a role too few', message: buildAuthorizationMessage({ ...given, newStaker: undefined }), code: 'missing-instruction' },
    {
      what: 'a role too many',
      message: buildAuthorizationMessage(given),
      change: { newStaker: undefined },
      code: 'unexpected-instruction',
    },
    {
      what: 'the roles the other way round',
      message: buildAuthorizationMessage({ ...given, newStaker: to(31), newWithdrawer: to(30) }),
      code: 'wrong-new-authority',
    },
    {
      what: 'something else altogether',
      message: buildDeactivationMessage({ ...frame, stakeAccount, stakeAuthority }),
      code: 'unexpected-instruction',
    },
  ])('$what', ({ message, change, code }) => {
    expect(codes(message, change)).toContain(code)
  })

  test('an authorization where a stake’s other transactions are expected', () => {
    const found = verifyTransaction(buildAuthorizationMessage(given), {
      kind: 'deactivation',
      feePayer,
      limits: { maxComputeUnits: 100_000, maxPriorityFeeLamports: 1000n },
      stakeAccount,
      stakeAuthority,
    })
    expect(found.map(({ code }) => code)).toContain('unexpected-instruction')
  })
})

test('in another form it is not taken for one: with a custodian, or without the sysvar', () => {
  const [, own] = decodeMessage(buildAuthorizationMessage({ ...given, newStaker: undefined }))
    .instructions.map((one) => one)
    .slice(-2)
  if (own === undefined) throw new Error('there is no instruction')
  expect(decodeInstruction({ ...own, accounts: [...own.accounts, testAddress(40)] })).toMatchObject({
    kind: 'other',
    name: 'AuthorizeChecked',
  })
  const [account = '', , ...rest] = own.accounts
  expect(decodeInstruction({ ...own, accounts: [account, ...rest] })).toMatchObject({ kind: 'other' })
  expect(decodeInstruction({ ...own, data: new Uint8Array([...own.data, 0]) })).toMatchObject({ kind: 'other' })
})
