import { expect, test } from 'vitest'
import type { VoteAccountAnswer } from '../../chains/solana/chain.ts'
import { unfitDestination } from '../../chains/solana/destination.ts'
import { gwei } from '../../lib/amounts.ts'
import { brokenRules } from '../../service/ethereum/rules.ts'
import { brokenAddressRules, brokenAmountRules, brokenVoteRules } from '../../service/solana/rules.ts'
import { refusalBy } from './api-rules.ts'

const deposit = '0x00000000219ab540356cBB839Cbe05303d7705Fa'
const ethereum = (change: object) =>
  brokenRules({
    networkName: 'hoodi',
    network: { depositContractAddress: deposit },
    amount: gwei(32_000_000_000n),
    credentialsType: '0x02',
    withdrawalAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    ...change,
  })
const program = '11111111111111111111111111111111'
const vote = (account: object): VoteAccountAnswer =>
  ({ kind: 'vote-account', account: { delinquent: false, ...account } }) as unknown as VoteAccountAnswer

/** What the service itself refuses a new stake by. */
const refusals = [
  ...ethereum({ amount: gwei(1n) }),
  ...ethereum({ withdrawalAddress: `0x${'0'.repeat(40)}` }),
  ...ethereum({ withdrawalAddress: deposit }),
  ...ethereum({ withdrawalAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79c8' }),
  ...brokenAmountRules(1n, 2_282_880n, 1n),
  ...brokenAddressRules({ stakeAuthority: program, withdrawAuthority: 'no address', feePayer: program, voteAccount: undefined }),
  ...brokenVoteRules({ kind: 'missing' }),
  ...brokenVoteRules({ kind: 'not-a-vote-account' }),
  ...brokenVoteRules({ kind: 'not-voting' }),
  ...brokenVoteRules(vote({ delinquent: true })),
  ...brokenVoteRules(vote({ commission: 100 })),
  ...brokenVoteRules(vote({ needsBlsKey: true })),
].map(({ code }) => code)

test.each([...new Set(refusals)])('a refusal by the rule %s names the field and what is wrong with it', (code) => {
  const message = refusalBy([code])
  expect(message).toMatch(/^The staking API refused the request: (spec\.|an address of the spec|the address of a signer)/)
  expect(message).toContain(`(${code}). Delete this resource, and create it with another value.`)
})

test('every rule of the service for a new stake is among them', () => {
  expect(new Set(refusals).size).toBeGreaterThanOrEqual(11)
})

test('a destination that can give nothing back has words of its own', () => {
  const code = unfitDestination('1nc1nerator11111111111111111111111111111111', undefined)?.code ?? ''
  expect(refusalBy([code])).toContain('spec.destination')
})

test('a network that the staking API lacks is no fault of the spec: nobody is told to delete', () => {
  const [broken] = ethereum({ network: undefined })
  const message = refusalBy([broken?.code ?? ''])
  expect(message).toContain('Whoever runs the staking API must add it')
  expect(message).not.toMatch(/[Dd]elete this resource, and/)
})

test.each([
  { codes: [], says: 'does not say by which rule' },
  { codes: ['<b>SECRET'], says: 'the rule b.' },
  { codes: ['constructor'], says: 'the rule constructor.' },
])('of the codes $codes it says "$says"', ({ codes, says }) => {
  expect(refusalBy(codes)).toContain(says)
})
