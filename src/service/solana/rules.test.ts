import { describe, expect, test } from 'vitest'
import { isOnCurve } from '../../chains/solana/addresses.ts'
import type { ChainAccount, VoteAccountAnswer } from '../../chains/solana/chain.ts'
import { burnAddress, stakeProgram, systemProgram, sysvarOwner, voteProgram } from '../../chains/solana/programs.ts'
import { stakeAccountAddress } from '../../chains/solana/stake.ts'
import { testAddress } from '../../chains/solana/testing.ts'
import { lamports } from '../../lib/amounts.ts'
import { brokenAddressRules, brokenAmountRules, brokenDestinationRules, brokenVoteRules } from './rules.ts'

const codes = (broken: readonly { pointer: string; code: string }[]) => broken.map(({ pointer, code }) => `${pointer} ${code}`)
const offCurve = stakeAccountAddress(testAddress(1), 'off-curve')
const good = { stakeAuthority: testAddress(1), withdrawAuthority: testAddress(2), feePayer: testAddress(1), voteAccount: testAddress(3) }

describe('who must sign has an address for which someone can', () => {
  test.each([
    { change: {}, broken: [] },
    { change: { voteAccount: offCurve }, broken: [] },
    { change: { stakeAuthority: offCurve }, broken: ['/body/stakeAuthority address-off-curve'] },
    { change: { withdrawAuthority: offCurve }, broken: ['/body/withdrawAuthority address-off-curve'] },
    { change: { feePayer: offCurve }, broken: ['/body/feePayer address-off-curve'] },
    { change: { stakeAuthority: systemProgram }, broken: ['/body/stakeAuthority address-off-curve'] },
    { change: { withdrawAuthority: systemProgram }, broken: ['/body/withdrawAuthority address-off-curve'] },
    { change: { feePayer: systemProgram }, broken: ['/body/feePayer address-off-curve'] },
    { change: { feePayer: '1'.repeat(44) }, broken: ['/body/feePayer invalid-address'] },
    { change: { voteAccount: '1'.repeat(44) }, broken: ['/body/voteAccount invalid-address'] },
    { change: { voteAccount: undefined }, broken: ['/body/voteAccount vote-account-required'] },
    {
      change: { stakeAuthority: offCurve, voteAccount: undefined },
      broken: ['/body/stakeAuthority address-off-curve', '/body/voteAccount vote-account-required'],
    },
  ])('$change breaks $broken', ({ change, broken }) => {
    expect(codes(brokenAddressRules({ ...good, ...change }))).toEqual(broken)
  })
})

describe('the amount covers the rent reserve and the minimum delegation, and can be written exactly', () => {
  test.each([
    { amount: 2_282_881n, minimum: 1n, holds: true },
    { amount: 2_282_880n, minimum: 1n, holds: false },
    { amount: 1_002_282_880n, minimum: 1_000_000_000n, holds: true },
    { amount: 1_002_282_879n, minimum: 1_000_000_000n, holds: false },
    { amount: 9_007_199_254_740_991n, minimum: 1n, holds: true },
    { amount: 9_007_199_254_740_992n, minimum: 1n, holds: false },
  ])('$amount with a minimum of $minimum: $holds', ({ amount, minimum, holds }) => {
    expect(codes(brokenAmountRules(amount, 2_282_880n, minimum))).toEqual(holds ? [] : ['/body/amountLamports amount-out-of-range'])
  })
})

describe('a stake goes to a vote account that votes', () => {
  const account = { address: testAddress(3), node: testAddress(4), commission: 5, activatedStake: lamports(1n) }
  test.each<{ answer: VoteAccountAnswer; code: string | undefined }>([
    { answer: { kind: 'missing' }, code: 'vote-account-missing' },
    { answer: { kind: 'not-a-vote-account' }, code: 'not-a-vote-account' },
    { answer: { kind: 'not-voting' }, code: 'vote-account-delinquent' },
    { answer: { kind: 'vote-account', account: { ...account, delinquent: true } }, code: 'vote-account-delinquent' },
    { answer: { kind: 'vote-account', account: { ...account, delinquent: false } }, code: undefined },
    { answer: { kind: 'vote-account', account: { ...account, delinquent: false, commission: 99.99 } }, code: undefined },
    { answer: { kind: 'vote-account', account: { ...account, delinquent: false, commission: undefined } }, code: undefined },
    { answer: { kind: 'vote-account', account: { ...account, delinquent: false, commission: 100 } }, code: 'vote-account-keeps-rewards' },
    { answer: { kind: 'vote-account', account: { ...account, delinquent: false, commission: 255 } }, code: 'vote-account-keeps-rewards' },
    {
      answer: { kind: 'vote-account', account: { ...account, delinquent: false, blsKey: false, needsBlsKey: true } },
      code: 'vote-account-without-bls-key',
    },
    {
      answer: { kind: 'vote-account', account: { ...account, delinquent: false, needsBlsKey: true } },
      code: 'vote-account-without-bls-key',
    },
    { answer: { kind: 'vote-account', account: { ...account, delinquent: false, blsKey: true, needsBlsKey: true } }, code: undefined },
    { answer: { kind: 'vote-account', account: { ...account, delinquent: false, blsKey: false } }, code: undefined },
  ])('$answer.kind: $code', ({ answer, code }) => {
    expect(brokenVoteRules(answer).map((broken) => broken.code)).toEqual(code === undefined ? [] : [code])
  })
})

describe('money is withdrawn to', () => {
  const account = (owner: string, executable = false): ChainAccount => ({
    lamports: lamports(1n),
    owner,
    data: new Uint8Array(),
    executable,
  })
  const refused = (destination: string, found?: ChainAccount, exception = false) =>
    codes(brokenDestinationRules({ destination, stakeAccount: stakeAccountAddress(testAddress(1), 'own'), account: found, exception }))
  const derived = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    .map((seed) => stakeAccountAddress(testAddress(1), seed))
    .find((one) => !isOnCurve(one))

  test('a wallet, whether it has ever held anything or not', () => {
    expect(refused(testAddress(2))).toEqual([])
    expect(refused(testAddress(2), account(systemProgram))).toEqual([])
  })
  test.each([
    { what: 'a mint or a token account', owner: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA' },
    { what: 'a vote account', owner: voteProgram },
    { what: "somebody's stake account", owner: stakeProgram },
    { what: 'an account of any program', owner: testAddress(9) },
  ])('not $what, unless it is named as an exception', ({ owner }) => {
    expect(refused(testAddress(2), account(owner))).toEqual(['/body/destination destination-of-program'])
    expect(refused(testAddress(2), account(owner), true)).toEqual([])
  })
  test('not a nonce account, which the System program owns too, unless it is named as an exception', () => {
    const nonce = { ...account(systemProgram), data: new Uint8Array(80) }
    expect(refused(testAddress(2), nonce)).toEqual(['/body/destination destination-of-program'])
    expect(refused(testAddress(2), nonce, true)).toEqual([])
  })
  test('not an address off the curve, unless it is named as an exception', () => {
    expect(refused(derived ?? '')).toEqual(['/body/destination destination-off-curve'])
    expect(refused(derived ?? '', account(systemProgram))).toEqual(['/body/destination destination-off-curve'])
    expect(refused(derived ?? '', undefined, true)).toEqual([])
  })
  test.each([
    { what: 'the incinerator', destination: burnAddress, found: account(systemProgram), code: 'destination-burns' },
    { what: 'a point of small order', destination: systemProgram, found: undefined, code: 'destination-without-key' },
    { what: 'a program', destination: testAddress(2), found: account(testAddress(9), true), code: 'destination-is-program' },
    { what: 'a sysvar', destination: testAddress(2), found: account(sysvarOwner), code: 'destination-is-sysvar' },
    { what: 'no address', destination: '1'.repeat(44), found: undefined, code: 'invalid-address' },
    {
      what: 'the stake itself',
      destination: stakeAccountAddress(testAddress(1), 'own'),
      found: account(stakeProgram),
      code: 'destination-is-stake',
    },
  ])('never $what', ({ destination, found, code }) => {
    for (const exception of [false, true]) expect(refused(destination, found, exception)).toEqual([`/body/destination ${code}`])
  })
})
