import { describe, expect, test } from 'vitest'
import { AmountError, gwei, lamports } from '../../lib/amounts.ts'
import { sameHex } from '../../lib/hex.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import {
  admitDeposit,
  admitRequest,
  admitSolanaStake,
  checkAddress,
  feeCap,
  goesByLabels,
  priorityFeeCap,
  requestFeeCap,
  selects,
} from './policy.ts'

const withdrawalAddress = '0x52908400098527886E0F7030069857D2E4169EE7'
const signer = (policy: object = {}, spec: object = {}): StakingSigner =>
  ({
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'StakingSigner',
    metadata: { name: 'main', uid: 'u', resourceVersion: '1' },
    spec: {
      chain: 'Ethereum',
      keyName: 'key',
      address: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
      policy: { allowedNamespaces: { names: ['team-a'] }, maxPerTransaction: '32', ...policy },
      ...spec,
    },
  }) as StakingSigner
const request = (change: object = {}) => ({
  namespace: { name: 'team-a', labels: { team: 'a' } },
  withdrawalAddress,
  amountGwei: gwei(32n * 10n ** 9n),
  ...change,
})

describe('a policy', () => {
  test.each<{ admits: string; policy?: object; request?: object }>([
    { admits: 'a namespace by name' },
    { admits: 'a namespace by label', policy: { allowedNamespaces: { selector: { matchLabels: { team: 'a' } } } } },
    { admits: 'a namespace by name whose labels are not known', request: { namespace: { name: 'team-a', labels: undefined } } },
    { admits: 'exactly the limit', policy: { maxPerTransaction: '32.0' } },
    { admits: 'an address of the list, in any case', policy: { allowedWithdrawalAddresses: [withdrawalAddress.toLowerCase()] } },
  ])('admits $admits', ({ policy, request: change }) => {
    expect(admitDeposit(signer(policy), request(change))).toBeUndefined()
  })

  test.each<{ refuses: string; policy?: object; spec?: object; request?: object; reason: string }>([
    { refuses: 'another namespace', request: { namespace: { name: 'team-b', labels: {} } }, reason: 'NamespaceNotAllowed' },
    { refuses: 'all, when it names none', policy: { allowedNamespaces: {} }, reason: 'NamespaceNotAllowed' },
    { refuses: 'all, by an empty list', policy: { allowedNamespaces: { names: [] } }, reason: 'NamespaceNotAllowed' },
    { refuses: 'all, by an empty selector', policy: { allowedNamespaces: { selector: {} } }, reason: 'NamespaceNotAllowed' },
    {
      refuses: 'by label, a namespace whose labels are not known',
      policy: { allowedNamespaces: { selector: { matchLabels: { team: 'a' } } } },
      request: { namespace: { name: 'team-a', labels: undefined } },
      reason: 'NamespaceNotAllowed',
    },
    {
      refuses: 'an address that is not on the list',
      policy: { allowedWithdrawalAddresses: ['0x8617E340B3D01FA5F11F306F4090FD50E238070D'] },
      reason: 'WithdrawalAddressNotAllowed',
    },
    { refuses: 'every address, by an empty list', policy: { allowedWithdrawalAddresses: [] }, reason: 'WithdrawalAddressNotAllowed' },
    { refuses: 'one gwei over the limit', request: { amountGwei: gwei(32n * 10n ** 9n + 1n) }, reason: 'OverLimit' },
    { refuses: 'a signer of another chain', spec: { chain: 'Solana' }, reason: 'WrongChain' },
    {
      refuses: 'with a limit of a later version, which this one does not know: it must not fail open',
      policy: { maxPerDay: '64' },
      reason: 'PolicyUnreadable',
    },
    {
      refuses: 'with an unknown field deeper down',
      policy: { allowedNamespaces: { names: ['team-a'], except: ['team-a'] } },
      reason: 'PolicyUnreadable',
    },
    { refuses: 'with an unknown field beside the policy', spec: { requireTwo: true }, reason: 'PolicyUnreadable' },
    { refuses: 'without a policy', spec: { policy: undefined }, reason: 'PolicyUnreadable' },
    { refuses: 'without a limit', policy: { maxPerTransaction: undefined }, reason: 'PolicyUnreadable' },
    { refuses: 'with a limit that is a number', policy: { maxPerTransaction: 32 }, reason: 'PolicyUnreadable' },
    { refuses: 'with a limit in words', policy: { maxPerTransaction: 'all' }, reason: 'PolicyUnreadable' },
    { refuses: 'with a limit in scientific notation', policy: { maxPerTransaction: '1e9' }, reason: 'PolicyUnreadable' },
    { refuses: 'with a limit beyond all money', policy: { maxPerTransaction: '9'.repeat(20) }, reason: 'PolicyUnreadable' },
    { refuses: 'without namespaces', policy: { allowedNamespaces: undefined }, reason: 'PolicyUnreadable' },
    { refuses: 'with a list of addresses that is none', policy: { allowedWithdrawalAddresses: 'any' }, reason: 'PolicyUnreadable' },
    { refuses: 'with a fee cap that is none', policy: { maxFeePerGasGwei: '-1' }, reason: 'PolicyUnreadable' },
    {
      refuses: 'with an operator that is not known',
      policy: { allowedNamespaces: { selector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } } },
      reason: 'PolicyUnreadable',
    },
  ])('refuses $refuses', ({ policy, spec, request: change, reason }) => {
    const refusal = admitDeposit(signer(policy, spec), request(change))
    expect(refusal?.reason).toBe(reason)
    expect(refusal?.message).toContain('main')
  })
})

describe('a selector', () => {
  const labels = { team: 'a', tier: 'gold' }
  const expression = (key: string, operator: string, values?: string[]) =>
    ({ matchExpressions: [{ key, operator, ...(values && { values }) }] }) as Parameters<typeof selects>[0]
  test.each<{ selector: Parameters<typeof selects>[0]; matches: boolean; what: string }>([
    { what: 'nothing', selector: {}, matches: false },
    { what: 'empty lists', selector: { matchLabels: {}, matchExpressions: [] }, matches: false },
    { what: 'a label', selector: { matchLabels: { team: 'a' } }, matches: true },
    { what: 'a label with another value', selector: { matchLabels: { team: 'b' } }, matches: false },
    { what: 'two labels of which one is missing', selector: { matchLabels: { team: 'a', zone: 'x' } }, matches: false },
    { what: 'In', selector: expression('team', 'In', ['a', 'b']), matches: true },
    { what: 'In with others', selector: expression('team', 'In', ['b']), matches: false },
    { what: 'In without values', selector: expression('team', 'In'), matches: false },
    { what: 'NotIn', selector: expression('team', 'NotIn', ['b']), matches: true },
    { what: 'NotIn of its own', selector: expression('team', 'NotIn', ['a']), matches: false },
    { what: 'NotIn without values', selector: expression('team', 'NotIn', []), matches: false },
    { what: 'Exists', selector: expression('tier', 'Exists'), matches: true },
    { what: 'Exists of what every object has', selector: expression('constructor', 'Exists'), matches: false },
    { what: 'Exists with values', selector: expression('tier', 'Exists', ['gold']), matches: false },
    { what: 'DoesNotExist', selector: expression('zone', 'DoesNotExist'), matches: true },
    { what: 'DoesNotExist of one that does', selector: expression('tier', 'DoesNotExist'), matches: false },
    { what: 'an unknown operator', selector: expression('tier', 'Like', ['g']), matches: false },
    { what: 'all that must hold, one does not', selector: { matchLabels: { team: 'a' }, ...expression('zone', 'Exists') }, matches: false },
  ])('$what: $matches', ({ selector, matches }) => {
    expect(selects(selector, labels)).toBe(matches)
    expect(selects(selector, undefined)).toBe(false)
  })
})

test.each<{ policy: object; byLabels: boolean; what: string }>([
  { what: 'names alone', policy: { allowedNamespaces: { names: ['team-b'] } }, byLabels: false },
  { what: 'a selector', policy: { allowedNamespaces: { selector: { matchLabels: { team: 'a' } } } }, byLabels: true },
  { what: 'a selector, and names without this one', policy: { allowedNamespaces: { names: ['team-b'], selector: {} } }, byLabels: true },
  { what: 'a selector, and this one by name', policy: { allowedNamespaces: { names: ['team-a'], selector: {} } }, byLabels: false },
  { what: 'names that nobody can read', policy: { allowedNamespaces: { names: 'team-a', selector: {} } }, byLabels: true },
  { what: 'nothing that can be read', policy: { allowedNamespaces: null }, byLabels: false },
])('whether a policy with $what needs the labels of a namespace: $byLabels', ({ policy, byLabels }) => {
  expect(goesByLabels(signer(policy), 'team-a')).toBe(byLabels)
})

describe('the fee cap', () => {
  test.each([
    { signers: '100', own: undefined, wei: 100_000_000_000n },
    { signers: '100', own: '2.5', wei: 2_500_000_000n },
    { signers: '1', own: '2.5', wei: 1_000_000_000n },
    { signers: undefined, own: undefined, wei: 0n },
  ])("is the lower of the signer's ($signers) and the resource's ($own)", ({ signers, own, wei }) => {
    expect(feeCap(signer({ maxFeePerGasGwei: signers }), own)).toBe(wei)
  })
  test('that cannot be read is an error, not a number', () => {
    expect(() => feeCap(signer({ maxFeePerGasGwei: '10' }), '1e3')).toThrow(AmountError)
  })
})

describe('an address', () => {
  test.each([
    { address: withdrawalAddress, right: true },
    { address: withdrawalAddress.toLowerCase(), right: true },
    { address: `0x${withdrawalAddress.slice(2).toUpperCase()}`, right: true },
    { address: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', right: true },
    { address: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD', right: false },
    { address: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAee', right: false },
  ])('$address: right is $right', ({ address, right }) => {
    expect(checkAddress(address) === undefined).toBe(right)
  })
  test('is the same in any case', () => {
    expect(sameHex(withdrawalAddress, withdrawalAddress.toLowerCase())).toBe(true)
    expect(sameHex(withdrawalAddress, '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed')).toBe(false)
  })
})

describe('of a Solana stake', () => {
  const vote = 'Vote111111111111111111111111111111111111111'
  const other = 'CktRuQ2mttgRGkXJtyksdKHjUdc2C4TgDzyB98oEzy8'
  const solana = (policy: object = {}): StakingSigner =>
    ({
      metadata: { name: 'sol', uid: 'u', resourceVersion: '1' },
      spec: {
        chain: 'Solana',
        keyName: 'sol',
        address: other,
        policy: { allowedNamespaces: { names: ['team-a'] }, maxPerTransaction: '5000000000', ...policy },
      },
    }) as unknown as StakingSigner
  const namespace = { name: 'team-a', labels: {} }
  test.each<{ given: string; policy: object; request: object; says: string | undefined }>([
    {
      given: 'as much as the limit',
      policy: {},
      request: { amountLamports: lamports(5_000_000_000n), voteAccount: vote },
      says: undefined,
    },
    { given: 'a lamport more', policy: {}, request: { amountLamports: lamports(5_000_000_001n) }, says: 'OverLimit' },
    {
      given: 'an amount against a limit with decimals',
      policy: { maxPerTransaction: '5.5' },
      request: { amountLamports: lamports(1n) },
      says: 'PolicyUnreadable',
    },
    { given: 'a vote account that is listed', policy: { allowedVoteAccounts: [vote] }, request: { voteAccount: vote }, says: undefined },
    { given: 'one that is not', policy: { allowedVoteAccounts: [vote] }, request: { voteAccount: other }, says: 'VoteAccountNotAllowed' },
    {
      given: 'one in another case',
      policy: { allowedVoteAccounts: [vote.replace('V', 'v')] },
      request: { voteAccount: vote },
      says: 'VoteAccountNotAllowed',
    },
    {
      given: 'any vote account against an empty list',
      policy: { allowedVoteAccounts: [] },
      request: { voteAccount: vote },
      says: 'VoteAccountNotAllowed',
    },
    {
      given: 'a destination that is not listed',
      policy: { allowedWithdrawalAddresses: [vote] },
      request: { destination: other },
      says: 'WithdrawalAddressNotAllowed',
    },
    { given: 'a destination that is', policy: { allowedWithdrawalAddresses: [other] }, request: { destination: other }, says: undefined },
    { given: 'a namespace that is not admitted', policy: { allowedNamespaces: { names: [] } }, request: {}, says: 'NamespaceNotAllowed' },
    { given: 'a policy that cannot be read', policy: { allowedVoteAccounts: 'all' }, request: {}, says: 'PolicyUnreadable' },
  ])('$given: $says', ({ policy, request, says }) => {
    expect(admitSolanaStake(solana(policy), { namespace, ...request })?.reason).toBe(says)
  })
  test.each([
    { given: 'the stake’s own cap, where it is the lowest', caps: ['100000', '50000'], own: '10000', is: 10_000n },
    { given: 'the stake authority’s', caps: ['7', '50000'], own: '9999999999', is: 7n },
    { given: 'the withdraw authority’s', caps: ['100000', '0'], own: '9999999999', is: 0n },
    { given: 'none, where an older CRD has dropped a policy’s', caps: ['100000', undefined], own: '9999999999', is: 0n },
  ])('the cap on priority fees is $given', ({ caps, own, is }) => {
    const signers = caps.map((maxPriorityFeeLamports) => solana({ maxPriorityFeeLamports }))
    expect(priorityFeeCap(signers, own)).toBe(is)
  })
  test('a cap on priority fees that cannot be read admits nothing', () => {
    expect(() => priorityFeeCap([solana({ maxPriorityFeeLamports: 'any' })], '1')).toThrow('fee in lamports')
  })
  test('a signer of another chain admits nothing', () => {
    const ethereum = { ...solana(), spec: { ...solana().spec, chain: 'Ethereum' } } as StakingSigner
    expect(admitSolanaStake(ethereum, { namespace })).toMatchObject({
      reason: 'WrongChain',
      message: 'StakingSigner sol is for Ethereum; a SolanaStake needs one for Solana.',
    })
    expect(admitRequest(solana(), { namespace, kind: 'ValidatorExit' })?.reason).toBe('WrongChain')
    expect(admitRequest(ethereum, { namespace, kind: 'ValidatorExit' })).toBeUndefined()
    expect(admitRequest(ethereum, { namespace: { name: 'team-b', labels: {} }, kind: 'ValidatorWithdrawal' })?.reason).toBe(
      'NamespaceNotAllowed',
    )
  })
})

test("what a request may pay is the lower of the signer's cap and its own", () => {
  const signer = { spec: { policy: { maxRequestFeeGwei: '2' } } } as StakingSigner
  expect(requestFeeCap(signer, undefined)).toBe(2_000_000_000n)
  expect(requestFeeCap(signer, '0.000000001')).toBe(1n)
  expect(requestFeeCap(signer, '3')).toBe(2_000_000_000n)
  // A CRD from before the field has no default: nothing may be paid.
  expect(requestFeeCap({ spec: { policy: {} } } as StakingSigner, '3')).toBe(0n)
})

test('a policy with a field that this version does not know says which, for every use', () => {
  const later = signer({ maxPerDay: '64' })
  for (const refusal of [
    admitDeposit(later, request()),
    admitRequest(later, { namespace: request().namespace, kind: 'ValidatorExit' }),
    admitSolanaStake({ ...later, spec: { ...later.spec, chain: 'Solana' } } as StakingSigner, { namespace: request().namespace }),
  ])
    expect(refusal?.message).toContain('policy.maxPerDay, which this version of the operator does not know')
})
