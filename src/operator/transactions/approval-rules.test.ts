import { describe, expect, test } from 'vitest'
import { REQUESTED_BY_ANNOTATION } from '../../resources/meta.ts'
import { type Plan, planHash } from '../../resources/plan.ts'
import { type SignerApproval, signerApproval } from '../../resources/signer-approval.ts'
import type { StakingApproval } from '../../resources/staking-approval.ts'
import type { StakingSignerSpec } from '../../resources/staking-signer.ts'
import { approverKey, type Ground, isRequired, type Requirement, requestersOf, requirementOf, votersOf, weigh } from './approval-rules.ts'

/** Which approvals count, and what they are asked for. */

const NOW = Date.parse('2030-01-01T12:00:00Z')
const plan: Plan = {
  resource: { kind: 'EthereumStake', namespace: 'team-a', name: 'stake-1', uid: 'uid-1' },
  purpose: 'Deposit',
  network: 'hoodi',
  chainId: 560048,
  signer: 'treasury',
  from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  subject: '0xab',
  amount: '32000000000',
}
const hash = planHash(plan)
const ground: Ground = { plan, planHash: hash, requestedBy: ['alice'], nowMs: NOW, sinceMs: 0, denied: new Set() }

const approval = (spec: Partial<StakingApproval['spec']> = {}, metadata: object = {}): StakingApproval => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'StakingApproval',
  metadata: { name: 'a', namespace: 'team-a', uid: 'u', resourceVersion: '1', creationTimestamp: '2030-01-01T11:00:00Z', ...metadata },
  spec: {
    resourceRef: { kind: 'EthereumStake', name: 'stake-1', uid: 'uid-1' },
    planHash: hash,
    approver: 'bob',
    requestedBy: ['alice'],
    ...spec,
  },
})

describe('an approval', () => {
  test('of this plan, by somebody else, counts', () => {
    expect(weigh([approval()], ground)).toMatchObject({ voices: [{ user: 'bob', approval: 'a' }], refused: [] })
  })

  test.each([
    ['of another plan', approval({ planHash: 'ab'.repeat(32) }), undefined],
    ['for another kind', approval({ resourceRef: { kind: 'SolanaStake', name: 'stake-1', uid: 'uid-1' } }), /another resource/],
    ['for another name', approval({ resourceRef: { kind: 'EthereumStake', name: 'stake-2', uid: 'uid-1' } }), /another resource/],
    ['of another namespace', approval({}, { namespace: 'team-b' }), /another resource/],
    [
      'for a resource of this name that was deleted',
      approval({ resourceRef: { kind: 'EthereumStake', name: 'stake-1', uid: 'uid-0' } }),
      /is gone/,
    ],
    ['by whoever has asked for it', approval({ approver: 'alice' }), /has asked for this/],
    ['by whoever has asked for it, in other letters', approval({ approver: 'Alice ' }), /has asked for this/],
    ['that names nobody who has asked, where somebody is recorded to have', approval({ requestedBy: [] }), /names nobody/],
    ['by a name of several lines', approval({ approver: 'bob\nalice' }), /no name/],
    ['by nobody', approval({ approver: '' }), /no name/],
    ['that is being deleted', approval({}, { deletionTimestamp: '2030-01-01T11:30:00Z' }), /being deleted/],
    ['that has expired', approval({ expiresAt: '2030-01-01T12:00:00Z' }), /expired/],
    ['whose end is no time', approval({ expiresAt: 'never' }), /expired/],
    ['without a time of its making', approval({}, { creationTimestamp: undefined }), /older than the admission policies/],
    ['that was made long after now', approval({}, { creationTimestamp: '2030-01-01T12:06:00Z' }), /in the future/],
  ])('%s does not', (_what, given, why) => {
    const { voices, refused } = weigh([given], ground)
    expect(voices).toEqual([])
    if (why === undefined) expect(refused).toEqual([])
    else expect(refused).toMatchObject([{ approval: 'a', why: expect.stringMatching(why) }])
  })

  test('that is older than the policies which prove its approver does not', () => {
    const sinceMs = Date.parse('2030-01-01T11:00:01Z')
    expect(weigh([approval()], { ...ground, sinceMs }).voices).toEqual([])
    expect(weigh([approval({}, { creationTimestamp: '2030-01-01T11:00:01Z' })], { ...ground, sinceMs }).voices).toHaveLength(1)
  })

  test('whose approver may not approve any more does not', () => {
    expect(weigh([approval()], { ...ground, denied: new Set([approverKey({ user: 'bob', groups: [] })]) })).toMatchObject({
      voices: [],
      refused: [{ why: /verb approve/ }],
    })
  })

  test('until it expires counts', () => {
    expect(weigh([approval({ expiresAt: '2030-01-01T12:00:01Z' })], ground).voices).toHaveLength(1)
  })
})

describe('a policy', () => {
  const asks = (change: Partial<Requirement> = {}): Requirement => ({
    kinds: undefined,
    above: undefined,
    by: [{ group: 'approvers' }, { user: 'carol' }],
    count: 2,
    validForMs: 7 * 86_400_000,
    allowUnrecorded: false,
    ...change,
  })
  const voice = (user: string, groups: readonly string[] = [], createdMs = NOW - 1_000) => ({
    user,
    groups,
    approval: `by-${user}`,
    createdMs,
  })

  test('hears those that it names, by user or by group, each once', () => {
    const voices = [
      voice('bob', ['approvers']),
      voice('Bob', ['approvers']),
      voice('carol'),
      voice('dave'),
      voice('approvers'),
      voice('x', ['carol']),
    ]
    const { voters, refused } = votersOf(asks(), voices, NOW)
    expect(voters.map(({ user }) => user)).toEqual(['bob', 'carol'])
    const notNamed = 'the policy names neither its approver nor any of its approverGroups'
    expect(refused).toMatchObject([
      { approver: 'Bob', why: 'another one of this user counts' },
      ...['dave', 'approvers', 'x'].map((approver) => ({ approver, why: notNamed })),
    ])
  })

  test('does not hear what is older than it says', () => {
    const old = voice('carol', [], NOW - 7 * 86_400_000)
    expect(votersOf(asks(), [old], NOW)).toEqual({
      voters: [],
      refused: [{ approval: 'by-carol', approver: 'carol', why: 'it is older than the policy lets it be (validFor)' }],
    })
    expect(votersOf(asks(), [{ ...old, createdMs: old.createdMs + 1 }], NOW).voters).toHaveLength(1)
  })

  test('is asked by kind and by amount, and always where all that is there moves', () => {
    const above = asks({ above: 32_000_000_000n })
    expect(isRequired(above, plan)).toBe(false)
    expect(isRequired(above, { ...plan, amount: '32000000001' })).toBe(true)
    expect(isRequired(above, { ...plan, purpose: 'Exit', amount: undefined })).toBe(true)
    expect(isRequired(asks({ above: 0n }), plan)).toBe(true)
    expect(isRequired(asks(), { ...plan, amount: '0' })).toBe(true)
    expect(isRequired(asks({ kinds: ['Exit'] }), plan)).toBe(false)
    expect(isRequired(asks({ kinds: ['Exit', 'Deposit'] }), plan)).toBe(true)
  })

  const spec = (approvalPolicy: object, chain: 'Ethereum' | 'Solana' = 'Ethereum') =>
    requirementOf({ chain, policy: { approval: approvalPolicy } } as unknown as Pick<StakingSignerSpec, 'chain' | 'policy'>)
  const by = [{ group: 'approvers' }]

  test('is read with what it leaves out', () => {
    expect(requirementOf({ chain: 'Ethereum', policy: {} } as never)).toBeUndefined()
    expect(spec({ by })).toEqual(asks({ by, count: 1 }))
    expect(spec({ by, aboveSol: '1.5', kinds: ['SolanaStake'], validFor: '30m', count: 3, allowUnrecorded: true }, 'Solana')).toEqual({
      by,
      count: 3,
      above: 1_500_000_000n,
      kinds: ['SolanaStake'],
      validForMs: 1_800_000,
      allowUnrecorded: true,
    })
  })

  test.each<[string, object, ('Ethereum' | 'Solana')?]>([
    ['nobody', { by: [] }],
    ['no by', {}],
    ['an entry that is neither', { by: [{}] }],
    ['an entry that is both', { by: [{ user: 'a', group: 'b' }] }],
    ['everybody twice', { by: [{ user: 'carol' }, { user: 'Carol' }] }],
    ['more than its users', { by: [{ user: 'carol' }], count: 2 }],
    ['a count of none', { by, count: 0 }],
    ['a count that is no number', { by, count: '1' }],
    ['lamports', { by, aboveSol: '5000000000000000000000' }, 'Solana'],
    ['an amount of another chain', { by, aboveSol: '1' }],
    ['an amount of another chain, of Solana', { by, aboveEth: '1' }, 'Solana'],
    ['an amount with a unit', { by, aboveEth: '32 ETH' }],
    ['wei', { by, aboveEth: '32000000000000000000' }],
    ['a negative amount', { by, aboveEth: '-1' }],
    ['kinds of another chain', { by, kinds: ['SolanaStake'] }],
    ['kinds of another chain, of Solana', { by, kinds: ['Deposit'] }, 'Solana'],
    ['no kinds', { by, kinds: [] }],
    ['unknown kinds', { by, kinds: ['Everything'] }],
    ['a time without a unit', { by, validFor: '3600' }],
    ['a time of more than a year', { by, validFor: '366d' }],
    ['a field that nobody knows', { by, unless: 'friday' }],
    ['a name of several lines', { by: [{ user: 'carol\nbob' }] }],
    ['everybody who has logged in', { by: [{ group: 'system:authenticated' }] }],
    ['every pod of the cluster', { by: [{ group: 'system:serviceaccounts' }, { user: 'carol' }] }],
    ['whoever has no credentials', { by: [{ user: 'system:anonymous' }] }],
  ])('that names %s is no policy, and admits nothing', (_what, given, chain) => {
    expect(spec(given, chain)).toEqual({ problem: expect.stringMatching(/^policy\.approval/) })
  })

  test('of the schema has the same defaults', () => {
    expect(signerApproval.parse({ by }) satisfies SignerApproval).toEqual({ by, count: 1, validFor: '7d' })
  })
})

test('who has asked is read line by line, and not at all where it is missing or cut', () => {
  const of = (value: string | undefined) => requestersOf({ annotations: value === undefined ? {} : { [REQUESTED_BY_ANNOTATION]: value } })
  expect(of('alice')).toEqual(['alice'])
  expect(of('system:serviceaccount:argocd:controller\nalice')).toEqual(['system:serviceaccount:argocd:controller', 'alice'])
  expect(of(undefined)).toBeUndefined()
  expect(of('')).toBeUndefined()
  expect(of(`alice\nbob…sha256:${'ab'.repeat(32)}`)).toBe('cut')
})
