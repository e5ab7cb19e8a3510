import { describe, expect, test } from 'vitest'
import type { VoteAccountAnswer } from '../../chains/solana/chain.ts'
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
  ])('$answer.kind: $code', ({ answer, code }) => {
    expect(brokenVoteRules(answer).map((broken) => broken.code)).toEqual(code === undefined ? [] : [code])
  })
})

test.each([
  { destination: testAddress(2), broken: [] },
  { destination: offCurve, broken: ['/body/destination destination-is-stake'] },
  { destination: '1'.repeat(44), broken: ['/body/destination invalid-address'] },
])('lamports are withdrawn to an account that is not the stake itself: $broken', ({ destination, broken }) => {
  expect(codes(brokenDestinationRules(destination, offCurve))).toEqual(broken)
})
