import { describe, expect, test } from 'vitest'
import { findCondition } from '../../../resources/conditions.ts'
import type { SolanaProtocol, SolanaStake, SolanaStakeSpec, SolanaStakeStatus, SolanaTransaction } from '../../../resources/solana-stake.ts'
import type { Progress } from '../../engine/progress.ts'
import { nextStep } from '../../engine/step.ts'
import { decideSolanaDeletion, type LoggedStake } from './deletion.ts'
import { solanaStakeStatus } from './status.ts'
import {
  type FollowPlan,
  isNothingStaked,
  type SolanaStakeView,
  settleBeforeDeletion,
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
const landed: SolanaTransaction = { ...sent, state: 'Confirmed', slot: 7, landedSignature: signature('1') }
const confirmed: SolanaTransaction = { ...landed, reportedSignature: signature('1') }
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
    { given: 'a verified stake', desired: 'Active', status: verified, expected: 'StakeTransaction' },
    { given: 'another stake than the verified', desired: 'Active', status: { ...verified, stakeId: 's2' }, expected: 'VerifyStake' },
    ...[prepared, sent, expired, failed].map((stake) => ({
      given: `a transaction that is ${stake.state}`,
      desired: 'Active' as const,
      status: { ...verified, transactions: { stake } },
      expected: 'StakeTransaction',
    })),
    { given: 'one that landed', desired: 'Active', status: { ...verified, transactions: { stake: landed } }, expected: 'ReportStake' },
    { given: 'a final one', desired: 'Active', status: staked, expected: 'AwaitActive' },
    { given: 'an activating stake', desired: 'Active', status: { ...staked, protocol: protocol('Activating') }, expected: 'AwaitActive' },
    { given: 'an active stake', desired: 'Active', status: { ...staked, protocol: protocol('Active') }, expected: undefined },
    { given: 'a verified stake', desired: 'Inactive', status: verified, expected: 'SettleStake' },
    { given: 'nothing staked', desired: 'Inactive', status: { ...verified, looked: true }, expected: undefined },
    { given: 'nothing staked', desired: 'Withdrawn', status: { ...verified, looked: true }, expected: undefined },
    // It may have been sent: it is not sent now.
    { given: 'a transaction', desired: 'Inactive', status: { ...verified, transactions: { stake: prepared } }, expected: 'SettleStake' },
    { given: 'one that expired', desired: 'Inactive', status: { ...verified, transactions: { stake: expired } }, expected: undefined },
    {
      given: 'an active stake',
      desired: 'Inactive',
      status: { ...staked, protocol: protocol('Active') },
      expected: 'DeactivationTransaction',
    },
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
      expected: 'WithdrawalTransaction',
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
      expected: 'DeactivationTransaction',
    },
  ])('with $given, to be $desired, is $expected', ({ desired, status, expected }) => {
    expect(nextStep(solanaStakeSteps[desired], status)?.name).toBe(expected)
  })

  test('of a stake that is not wanted any more signs nothing for it', () => {
    const names = [...solanaStakeSteps.Inactive, ...solanaStakeSteps.Withdrawn, ...settleBeforeDeletion, ...withdrawBeforeDeletion].map(
      ({ name }) => name,
    )
    expect(names).not.toContain('StakeTransaction')
  })

  test.each<{ who: string; step: string; view: Partial<SolanaStakeView>; mayMake: boolean }>([
    { who: 'the stake of a resource', step: 'StakeTransaction', view: {}, mayMake: true },
    { who: 'the stake of one that is suspended', step: 'StakeTransaction', view: { spec: { ...spec, suspend: true } }, mayMake: false },
    { who: 'the stake of one that is deleted', step: 'StakeTransaction', view: { deleting: true }, mayMake: false },
    {
      who: 'the stake of one that is deleted and to be withdrawn',
      step: 'StakeTransaction',
      view: { deleting: true, spec: { ...spec, desiredState: 'Withdrawn' } },
      mayMake: false,
    },
    { who: 'the withdrawal of one that is deleted', step: 'WithdrawalTransaction', view: { deleting: true }, mayMake: false },
    {
      who: 'the withdrawal of one that is deleted and to be withdrawn',
      step: 'WithdrawalTransaction',
      view: { deleting: true, spec: { ...spec, desiredState: 'Withdrawn' } },
      mayMake: true,
    },
  ])('is asked for ($mayMake): $who', ({ step: name, view, mayMake }) => {
    const step = [...solanaStakeSteps.Active, ...solanaStakeSteps.Withdrawn].find((one) => one.name === name)
    const origin = { uid: 'u', kind: 'SolanaStake', namespace: 'a', name: 'b' }
    const args = step?.args({ origin, spec, status: verified, deleting: false, uid: 'u', ...view }) as FollowPlan
    expect(args.mayMake).toBe(mayMake)
  })
})

describe('a transaction that is made anew', () => {
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
  const holds: LoggedStake = { is: 'landed', stakeAccount: address('A') }
  test.each<{ that: string; change?: Partial<SolanaStakeSpec>; logged: LoggedStake; does: string; annotations?: object }>([
    { that: 'was refused before anything was signed', logged: { is: 'none' }, does: 'release' },
    { that: 'has attempts, all of them dead', logged: { is: 'idle' }, does: 'release' },
    { that: 'is in flight', logged: { is: 'open', signature: signature('1') }, does: 'watch' },
    {
      that: 'is in flight and to be withdrawn',
      change: { desiredState: 'Withdrawn' },
      logged: { is: 'open', signature: signature('1') },
      does: 'watch',
    },
    { that: 'holds money', logged: holds, does: 'hold' },
    { that: 'is inactive', change: { desiredState: 'Inactive' }, logged: holds, does: 'hold' },
    { that: 'is to be withdrawn', change: { desiredState: 'Withdrawn' }, logged: holds, does: 'withdraw' },
    { that: 'is to be withdrawn but suspended', change: { desiredState: 'Withdrawn', suspend: true }, logged: holds, does: 'hold' },
    { that: 'was withdrawn', logged: { is: 'withdrawn' }, does: 'release' },
    { that: 'is confirmed to be forgotten', logged: holds, does: 'release', annotations: { 'staking.dev/confirm-delete': 'b' } },
    { that: 'is confirmed under another name', logged: holds, does: 'hold', annotations: { 'staking.dev/confirm-delete': 'c' } },
  ])('that $that: $does', ({ change, logged, does, annotations }) => {
    expect(decideSolanaDeletion(resource(change, {}, annotations), logged).do).toBe(does)
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
      status: { ...staked, transactions: { stake: confirmed, withdrawal: confirmed }, protocol: protocol('Withdrawn') },
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
      phase: 'Closed',
    },
    {
      given: 'a stake to be withdrawn whose account is closed, and not by this resource',
      change: { desiredState: 'Withdrawn' },
      status: { ...staked, protocol: protocol('Withdrawn') },
      ready: 'False',
      reason: 'InProgress',
      phase: 'Closed',
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
