import { describe, expect, test } from 'vitest'
import { findCondition } from '../../../resources/conditions.ts'
import type { SolanaProtocol, SolanaStake, SolanaStakeSpec, SolanaStakeStatus, SolanaTransaction } from '../../../resources/solana-stake.ts'
import type { Progress } from '../../engine/progress.ts'
import { nextStep } from '../../engine/step.ts'
import { decideSolanaDeletion } from './deletion.ts'
import { solanaStakeStatus } from './status.ts'
import {
  earlierOf,
  type InFlightSolana,
  isNothingStaked,
  type SolanaStakeView,
  settleBeforeDeletion,
  signaturesOf,
  solanaStakeSteps,
  transactionKey,
  withdrawBeforeDeletion,
} from './steps.ts'

const address = (letter: string) => letter.repeat(44)
const signature = (letter: string) => letter.repeat(87)
const spec: SolanaStakeSpec = {
  network: 'devnet',
  amountLamports: '5000000000',
  stakeAuthority: { signer: 'payer' },
  withdrawAuthority: { signer: 'cold' },
  desiredState: 'Active',
  maxPriorityFeeLamports: '10000',
}
const created: SolanaStakeStatus = {
  stakeId: 's1',
  stakeAccount: address('A'),
  stakeAuthority: address('S'),
  withdrawAuthority: address('W'),
  voteAccount: address('V'),
}
const verified = { ...created, verifiedStakeId: 's1' }
const prepared: SolanaTransaction = { attempt: 1, txId: 't1', signature: signature('1'), state: 'Prepared' }
const sent: SolanaTransaction = { ...prepared, state: 'Broadcast', broadcastSignature: signature('1') }
const reported: SolanaTransaction = { ...sent, reportedSignature: signature('1') }
const confirmed: SolanaTransaction = { ...reported, state: 'Confirmed', slot: 7 }
const expired: SolanaTransaction = { ...sent, state: 'Expired' }
const failed: SolanaTransaction = { ...sent, state: 'Failed' }
const protocol = (status: SolanaProtocol['status']): SolanaProtocol => ({
  status,
  activeLamports: '4997717120',
  inactiveLamports: '2282880',
  epoch: 3,
  slot: 9,
})
const staked = { ...verified, transactions: { stake: confirmed } }

describe('the next step', () => {
  test.each<{ given: string; desired: SolanaStakeSpec['desiredState']; status: SolanaStakeStatus; expected: string | undefined }>([
    { given: 'nothing', desired: 'Active', status: {}, expected: 'CreateStake' },
    { given: 'half a stake', desired: 'Active', status: { stakeId: 's1' }, expected: 'CreateStake' },
    { given: 'a stake', desired: 'Active', status: created, expected: 'VerifyStake' },
    { given: 'a verified stake', desired: 'Active', status: verified, expected: 'PrepareStake' },
    { given: 'another stake than the verified', desired: 'Active', status: { ...verified, stakeId: 's2' }, expected: 'VerifyStake' },
    { given: 'a transaction', desired: 'Active', status: { ...verified, transactions: { stake: prepared } }, expected: 'BroadcastStake' },
    { given: 'one that was sent', desired: 'Active', status: { ...verified, transactions: { stake: sent } }, expected: 'ReportStake' },
    { given: 'one that was told', desired: 'Active', status: { ...verified, transactions: { stake: reported } }, expected: 'ConfirmStake' },
    { given: 'one that expired', desired: 'Active', status: { ...verified, transactions: { stake: expired } }, expected: 'PrepareStake' },
    { given: 'one that failed', desired: 'Active', status: { ...verified, transactions: { stake: failed } }, expected: 'PrepareStake' },
    { given: 'a final one', desired: 'Active', status: staked, expected: 'AwaitActive' },
    { given: 'an activating stake', desired: 'Active', status: { ...staked, protocol: protocol('Activating') }, expected: 'AwaitActive' },
    { given: 'an active stake', desired: 'Active', status: { ...staked, protocol: protocol('Active') }, expected: undefined },
    { given: 'a verified stake', desired: 'Inactive', status: verified, expected: 'FindStake' },
    { given: 'nothing staked', desired: 'Inactive', status: { ...verified, looked: true }, expected: undefined },
    { given: 'nothing staked', desired: 'Withdrawn', status: { ...verified, looked: true }, expected: undefined },
    // It may have been sent: it is not sent now.
    { given: 'a transaction', desired: 'Inactive', status: { ...verified, transactions: { stake: prepared } }, expected: 'ConfirmStake' },
    { given: 'one that expired', desired: 'Inactive', status: { ...verified, transactions: { stake: expired } }, expected: undefined },
    { given: 'an active stake', desired: 'Inactive', status: { ...staked, protocol: protocol('Active') }, expected: 'PrepareDeactivation' },
    {
      given: 'a deactivated stake',
      desired: 'Inactive',
      status: { ...staked, transactions: { stake: confirmed, deactivation: confirmed }, protocol: protocol('Deactivating') },
      expected: 'AwaitInactive',
    },
    {
      given: 'an inactive stake',
      desired: 'Withdrawn',
      status: { ...staked, transactions: { stake: confirmed, deactivation: confirmed }, protocol: protocol('Inactive') },
      expected: 'PrepareWithdrawal',
    },
    {
      given: 'a withdrawal that is final',
      desired: 'Withdrawn',
      status: {
        ...staked,
        transactions: { stake: confirmed, deactivation: confirmed, withdrawal: confirmed },
        protocol: protocol('Inactive'),
      },
      expected: 'AwaitWithdrawn',
    },
    {
      given: 'what somebody wrote about the protocol',
      desired: 'Withdrawn',
      status: { ...staked, protocol: protocol('Withdrawn') },
      expected: 'PrepareDeactivation',
    },
  ])('with $given, to be $desired, is $expected', ({ desired, status, expected }) => {
    expect(nextStep(solanaStakeSteps[desired], status)?.name).toBe(expected)
  })

  test('that sends money is written ahead, and no other', () => {
    const steps = [...Object.values(solanaStakeSteps), withdrawBeforeDeletion].flat()
    expect(new Set(steps.filter(({ writeAhead }) => writeAhead).map(({ name }) => name))).toEqual(
      new Set(['BroadcastStake', 'BroadcastDeactivation', 'BroadcastWithdrawal']),
    )
  })

  test('of a stake that is not wanted any more signs nothing for it', () => {
    const names = [...solanaStakeSteps.Inactive, ...solanaStakeSteps.Withdrawn, ...settleBeforeDeletion].map(({ name }) => name)
    expect(names).not.toContain('PrepareStake')
    expect(names).not.toContain('BroadcastStake')
  })

  test.each<{ who: string; view: Partial<SolanaStakeView>; resend: boolean }>([
    { who: 'a stake on its way', view: {}, resend: true },
    { who: 'one that is suspended', view: { spec: { ...spec, suspend: true } }, resend: false },
    { who: 'one that is deleted', view: { deleting: true }, resend: false },
    { who: 'one that is deleted and withdrawn', view: { deleting: true, spec: { ...spec, desiredState: 'Withdrawn' } }, resend: true },
  ])('sends the same bytes again ($resend) for $who', ({ view, resend }) => {
    const step = solanaStakeSteps.Active.find(({ name }) => name === 'ConfirmStake')
    const origin = { uid: 'u', kind: 'SolanaStake', namespace: 'a', name: 'b' }
    const status = { ...verified, transactions: { stake: reported } }
    const args = step?.args({ origin, spec, status, deleting: false, ...view }) as InFlightSolana
    expect(args.resend).toBe(resend)
  })
})

describe('a transaction that is made anew', () => {
  test('keeps its earlier signatures, of which those that failed are not looked for', () => {
    const second = { ...expired, attempt: 2, signature: signature('2'), earlier: [...earlierOf(failed)] }
    expect(earlierOf(second)).toEqual([
      { signature: signature('1'), attempt: 1, outcome: 'Failed' },
      { signature: signature('2'), attempt: 2, outcome: 'Expired' },
    ])
    expect(signaturesOf({ ...prepared, signature: signature('3'), earlier: [...earlierOf(second)] })).toEqual([
      signature('2'),
      signature('3'),
    ])
  })

  test('has a key of its own for each that the service was asked for', () => {
    const origin = { uid: 'u', kind: 'SolanaStake', namespace: 'a', name: 'b' }
    const keys = (['stake', 'deactivation', 'withdrawal'] as const).flatMap((kind) =>
      [1, 2].map((number) => transactionKey(origin, kind, number)),
    )
    expect(new Set(keys).size).toBe(6)
    for (const key of keys) expect(key).toMatch(/^u\/[0-9a-f]{12}\/\w+-transaction\/[12]$/)
  })
})

const resource = (change: Partial<SolanaStakeSpec> = {}, status?: SolanaStakeStatus, annotations = {}): SolanaStake => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'SolanaStake',
  metadata: { name: 'b', namespace: 'a', uid: 'u', resourceVersion: '1', generation: 1, annotations },
  spec: { ...spec, ...change },
  ...(status === undefined ? {} : { status }),
})

describe('deleted, a stake', () => {
  test.each<{ that: string; change?: Partial<SolanaStakeSpec>; status: SolanaStakeStatus; does: string; annotations?: object }>([
    { that: 'was never created', status: {}, does: 'release' },
    { that: 'may have been paid, for all that status says', status: verified, does: 'watch' },
    { that: 'was looked for in vain', status: { ...verified, looked: true }, does: 'release' },
    { that: 'has a transaction that may have been sent', status: { ...verified, transactions: { stake: prepared } }, does: 'watch' },
    { that: 'is in flight', status: { ...verified, transactions: { stake: sent } }, does: 'watch' },
    {
      that: 'is in flight and to be withdrawn',
      change: { desiredState: 'Withdrawn' },
      status: { ...verified, transactions: { stake: sent } },
      does: 'watch',
    },
    { that: 'expired', status: { ...verified, transactions: { stake: expired } }, does: 'release' },
    { that: 'failed', status: { ...verified, transactions: { stake: failed } }, does: 'release' },
    { that: 'holds money', status: staked, does: 'hold' },
    { that: 'is inactive', change: { desiredState: 'Inactive' }, status: { ...staked, protocol: protocol('Inactive') }, does: 'hold' },
    { that: 'is to be withdrawn', change: { desiredState: 'Withdrawn' }, status: staked, does: 'undo' },
    { that: 'is to be withdrawn but suspended', change: { desiredState: 'Withdrawn', suspend: true }, status: staked, does: 'hold' },
    { that: 'was withdrawn', status: { ...staked, protocol: protocol('Withdrawn') }, does: 'release' },
    { that: 'is confirmed to be forgotten', status: staked, does: 'release', annotations: { 'staking.dev/confirm-delete': 'b' } },
    { that: 'is confirmed under another name', status: staked, does: 'hold', annotations: { 'staking.dev/confirm-delete': 'c' } },
  ])('that $that: $does', ({ change, status, does, annotations }) => {
    expect(decideSolanaDeletion(resource(change, status, annotations), status).do).toBe(does)
  })
})

describe('status', () => {
  const now = new Date('2030-01-01T00:00:00Z')
  const of = (change: Partial<SolanaStakeSpec>, status: SolanaStakeStatus, progress: Progress) => {
    const next = solanaStakeStatus(resource(change, status), status, progress, now)
    const condition = (type: string) => findCondition(next.conditions, type)
    return { next, condition }
  }
  const settled: Progress = { at: 'settled' }

  test.each<{ given: string; change?: Partial<SolanaStakeSpec>; status: SolanaStakeStatus; ready: string; reason: string; phase: string }>([
    { given: 'an active stake', status: { ...staked, protocol: protocol('Active') }, ready: 'True', reason: 'Active', phase: 'Active' },
    {
      given: 'an active stake that is to be inactive',
      change: { desiredState: 'Inactive' },
      status: { ...staked, protocol: protocol('Active') },
      ready: 'False',
      reason: 'InProgress',
      phase: 'Active',
    },
    {
      given: 'an inactive stake',
      change: { desiredState: 'Inactive' },
      status: { ...staked, protocol: protocol('Inactive') },
      ready: 'True',
      reason: 'Inactive',
      phase: 'Inactive',
    },
    {
      given: 'a withdrawn stake',
      change: { desiredState: 'Withdrawn' },
      status: { ...staked, protocol: protocol('Withdrawn') },
      ready: 'True',
      reason: 'Withdrawn',
      phase: 'Withdrawn',
    },
    {
      given: 'nothing staked',
      change: { desiredState: 'Withdrawn' },
      status: { ...verified, looked: true },
      ready: 'True',
      reason: 'NothingStaked',
      phase: 'NothingStaked',
    },
    {
      given: 'a stake that others withdrew',
      status: { ...staked, protocol: protocol('Withdrawn') },
      ready: 'False',
      reason: 'AlreadyWithdrawn',
      phase: 'Withdrawn',
    },
    {
      given: 'a stake that others deactivated',
      status: { ...staked, protocol: protocol('Deactivating') },
      ready: 'False',
      reason: 'DelegationChanged',
      phase: 'Deactivating',
    },
    {
      given: 'a stake that others delegated elsewhere',
      status: { ...staked, protocol: { ...protocol('Active'), voteAccount: address('X') } },
      ready: 'False',
      reason: 'DelegationChanged',
      phase: 'Active',
    },
    {
      given: 'a stake whose withdraw authority is another now',
      status: { ...staked, protocol: { ...protocol('Active'), withdrawAuthority: address('X') } },
      ready: 'False',
      reason: 'AuthorityChanged',
      phase: 'Active',
    },
  ])('of $given: Ready is $ready, $reason', ({ change = {}, status, ready, reason, phase }) => {
    const { next, condition } = of(change, status, settled)
    expect(condition('Ready')).toMatchObject({ status: ready, reason })
    expect(next.phase).toBe(phase)
    expect(condition('Stalled')?.status).toBe(ready === 'True' || reason === 'InProgress' ? 'False' : 'True')
    // Said twice, it is the same: a settled fleet writes nothing.
    expect(solanaStakeStatus(resource(change, next), next, settled, new Date('2031-01-01')).conditions).toBe(next.conditions)
  })

  test('has all conditions from the first visit on', () => {
    const { next } = of({}, {}, { at: 'step', step: 'CreateStake' })
    expect(next.conditions).toHaveLength(10)
    expect(next.conditions?.every(({ status }) => status === 'Unknown' || status === 'False' || status === 'True')).toBe(true)
    expect(findCondition(next.conditions, 'Ready')).toMatchObject({ status: 'Unknown' })
  })

  test('shows a step’s trouble where it belongs, and never on what is done', () => {
    const verdict = { kind: 'stall', reason: 'LockupInForce', message: 'locked', recheck: true } as const
    const status = { ...staked, transactions: { stake: confirmed, deactivation: confirmed }, protocol: protocol('Inactive') }
    const { condition } = of({ desiredState: 'Withdrawn' }, status, { at: 'halted', step: 'AwaitWithdrawn', verdict })
    expect(condition('Withdrawn')).toMatchObject({ status: 'False', reason: 'LockupInForce' })
    expect(condition('Inactive')?.status).toBe('True')
    expect(condition('Ready')).toMatchObject({ status: 'False', reason: 'LockupInForce' })
  })
})

test('nothing is called unstaked while something may land', () => {
  expect(isNothingStaked({ ...verified, looked: true, transactions: { stake: sent } })).toBe(false)
  expect(isNothingStaked(verified)).toBe(false)
})
