import { describe, expect, test } from 'vitest'
import type { EthereumStakeBody } from '../../../contract/schemas/ethereum-stake.ts'
import { type Condition, findCondition } from '../../../resources/conditions.ts'
import { type EthereumStake, type EthereumStakeStatus, ethereumStake, ethereumStakeConditions } from '../../../resources/ethereum-stake.ts'
import type { Progress } from '../../engine/progress.ts'
import { createWorld, KEY, withdrawalAddress } from '../../testing/world.ts'
import { ethereumStakeStatus, wasSlashed } from './status.ts'

const root = `0x${'aa'.repeat(32)}` as const
const depositData = {
  pubkey: `0x${'11'.repeat(48)}` as const,
  withdrawalCredentials: root,
  amountGwei: '32000000000',
  signature: `0x${'22'.repeat(96)}` as const,
  depositDataRoot: root,
}
const resource = (generation = 3): EthereumStake =>
  ({
    apiVersion: 'staking.dev/v1alpha1',
    kind: 'EthereumStake',
    metadata: { name: 'one', namespace: 'team-a', uid: 'u', resourceVersion: '1', generation },
    spec: {
      network: 'hoodi',
      amountEth: '32',
      withdrawalAddress: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
      credentialsType: 'Compounding',
      signer: 'main',
    },
  }) as EthereumStake
const transaction = (change: object = {}) => ({
  chainId: 1,
  from: `0x${'33'.repeat(20)}` as const,
  to: `0x${'33'.repeat(20)}` as const,
  valueWei: '1',
  dataHash: root,
  hash: root,
  nonce: 0,
  gas: '1',
  maxFeePerGasWei: '1',
  maxPriorityFeePerGasWei: '1',
  preparedAt: '2030-01-01T00:00:00Z',
  state: 'Prepared' as const,
  ...change,
})
const created: EthereumStakeStatus = { stakeId: 's1', depositData }
const verified: EthereumStakeStatus = { ...created, verifiedRoot: root }
const prepared: EthereumStakeStatus = { ...verified, transaction: transaction() }
const sent: EthereumStakeStatus = { ...verified, transaction: transaction({ broadcastHash: root, state: 'Broadcast' }) }
const confirmed: EthereumStakeStatus = {
  ...verified,
  transaction: transaction({ broadcastHash: root, state: 'Confirmed', minedHash: root, blockNumber: 7 }),
}
const failed: EthereumStakeStatus = {
  ...verified,
  transaction: transaction({ broadcastHash: root, state: 'Failed', minedHash: root, blockNumber: 7 }),
}
const validator = (status: string) => ({ pubkey: depositData.pubkey, status })
const seenBefore = (status: EthereumStakeStatus): EthereumStakeStatus => ({ ...status, conditions: [] })
const at = (second: number) => new Date(Date.UTC(2030, 0, 1, 0, 0, second))
const halted = (kind: 'wait' | 'retry' | 'stall', step: string): Progress => ({
  at: 'halted',
  step,
  verdict:
    kind === 'stall'
      ? { kind, reason: 'OverLimit', message: 'too much', recheck: true }
      : { kind: 'wait', reason: 'FeeTooHigh', message: 'too dear', afterMs: 1 },
})
const say = (status: EthereumStakeStatus, progress: Progress) => ethereumStakeStatus(resource(), status, progress, at(0))
const brief = (status: EthereumStakeStatus) =>
  Object.fromEntries((status.conditions ?? []).map(({ type, status: is, reason }) => [type, `${is} ${reason}`]))

test.each<{ given: string; status: EthereumStakeStatus; progress: Progress; phase: string; expected: Record<string, string> }>([
  {
    given: 'first sight',
    status: {},
    progress: { at: 'step', step: 'CreateStake' },
    phase: 'Pending',
    expected: {
      Ready: 'Unknown Pending',
      Reconciling: 'True InProgress',
      Stalled: 'False InProgress',
      Created: 'Unknown Pending',
      Verified: 'Unknown Pending',
      Broadcast: 'Unknown Pending',
      Confirmed: 'Unknown Pending',
      Active: 'Unknown Pending',
    },
  },
  {
    given: 'a prepared transaction',
    status: seenBefore(prepared),
    progress: { at: 'step', step: 'Transaction' },
    phase: 'Prepared',
    expected: {
      Ready: 'False InProgress',
      Reconciling: 'True InProgress',
      Created: 'True Succeeded',
      Verified: 'True Succeeded',
      Broadcast: 'Unknown Pending',
    },
  },
  {
    given: 'a wait',
    status: seenBefore(verified),
    progress: halted('wait', 'Transaction'),
    phase: 'Created',
    expected: { Ready: 'False FeeTooHigh', Reconciling: 'True FeeTooHigh', Stalled: 'False InProgress', Broadcast: 'Unknown FeeTooHigh' },
  },
  {
    given: 'a stall',
    status: seenBefore(verified),
    progress: halted('stall', 'Transaction'),
    phase: 'Stalled',
    expected: {
      Ready: 'False OverLimit',
      Reconciling: 'False OverLimit',
      Stalled: 'True OverLimit',
      Broadcast: 'False OverLimit',
      Verified: 'True Succeeded',
    },
  },
  {
    given: 'a stall at a step whose condition holds',
    status: seenBefore(sent),
    progress: halted('stall', 'Report'),
    phase: 'Stalled',
    expected: { Stalled: 'True OverLimit', Broadcast: 'True Succeeded' },
  },
  {
    given: 'something else verified',
    status: seenBefore({ ...created, verifiedRoot: `0x${'bb'.repeat(32)}` }),
    progress: { at: 'step', step: 'VerifyDeposit' },
    phase: 'Created',
    expected: { Verified: 'Unknown Pending' },
  },
  {
    given: 'a transaction on its way',
    status: seenBefore(sent),
    progress: halted('wait', 'Transaction'),
    phase: 'Confirming',
    expected: { Broadcast: 'True Succeeded', Confirmed: 'Unknown FeeTooHigh', Ready: 'False FeeTooHigh' },
  },
  {
    given: 'a final deposit',
    status: seenBefore(confirmed),
    progress: { at: 'settled' },
    phase: 'Confirmed',
    expected: {
      Ready: 'True Succeeded',
      Reconciling: 'False Settled',
      Stalled: 'False Settled',
      Confirmed: 'True Succeeded',
      Active: 'Unknown AwaitingActivation',
    },
  },
  {
    given: 'an active validator',
    status: seenBefore({ ...confirmed, validator: validator('active_ongoing') }),
    progress: { at: 'settled' },
    phase: 'Active',
    expected: { Ready: 'True Succeeded', Active: 'True Active' },
  },
  {
    given: 'a validator that has left',
    status: seenBefore({ ...confirmed, validator: validator('withdrawal_done') }),
    progress: { at: 'settled' },
    phase: 'Exited',
    expected: { Ready: 'True Succeeded', Active: 'False ValidatorDone' },
  },
  {
    given: 'a reverted deposit',
    status: seenBefore(failed),
    progress: { at: 'settled' },
    phase: 'Failed',
    expected: {
      Ready: 'False TransactionReverted',
      Stalled: 'True TransactionReverted',
      Reconciling: 'False Settled',
      Confirmed: 'False TransactionReverted',
    },
  },
  {
    given: 'suspension',
    status: seenBefore(verified),
    progress: { at: 'suspended' },
    phase: 'Suspended',
    expected: { Ready: 'False Suspended', Reconciling: 'False Suspended', Stalled: 'False InProgress' },
  },
  {
    given: 'suspension of what is done',
    status: seenBefore(confirmed),
    progress: { at: 'suspended' },
    phase: 'Confirmed',
    expected: { Ready: 'True Succeeded' },
  },
  {
    given: 'deletion',
    status: seenBefore(confirmed),
    progress: { at: 'deleting', message: 'it waits' },
    phase: 'Deleting',
    expected: { Ready: 'False Deleting', Reconciling: 'True Deleting' },
  },
  {
    given: 'a failed report of what is final',
    status: seenBefore(confirmed),
    progress: halted('wait', 'Report'),
    phase: 'Confirmed',
    expected: { Ready: 'True Succeeded', Reconciling: 'True FeeTooHigh' },
  },
])('with $given, it says so', ({ status, progress, phase, expected }) => {
  const said = say(status, progress)
  expect(said.phase).toBe(phase)
  expect(brief(said)).toMatchObject(expected)
  // All conditions, always, for this generation; and what the API server would take.
  expect(said.conditions?.map(({ type }) => type)).toEqual([...ethereumStakeConditions])
  expect(said.conditions?.every(({ observedGeneration }) => observedGeneration === 3)).toBe(true)
  expect(said.observedGeneration).toBe(3)
  expect(ethereumStake.status.safeParse(JSON.parse(JSON.stringify(said))).success).toBe(true)
})

test('Ready, Reconciling and Stalled never contradict each other', () => {
  for (const status of [{}, created, verified, prepared, sent, confirmed, failed].map(seenBefore))
    for (const progress of [
      { at: 'settled' },
      { at: 'suspended' },
      { at: 'deleting', message: 'x' },
      { at: 'step', step: 'Transaction' },
      halted('wait', 'Transaction'),
      halted('stall', 'Transaction'),
    ] as Progress[]) {
      const { conditions } = say(status, progress)
      const is = (type: string) => findCondition(conditions, type)?.status === 'True'
      expect(is('Reconciling') && is('Stalled')).toBe(false)
      if (progress.at === 'settled') expect(is('Ready') && is('Stalled')).toBe(false)
    }
})

describe('times', () => {
  const first = ethereumStakeStatus(resource(), seenBefore(verified), halted('wait', 'Transaction'), at(1))
  const timeOf = (status: EthereumStakeStatus, type: string) => (findCondition(status.conditions, type) as Condition).lastTransitionTime

  test('the same again is the very same list', () => {
    expect(ethereumStakeStatus(resource(), first, halted('wait', 'Transaction'), at(9)).conditions).toBe(first.conditions)
  })
  test('move when the status of a condition does, not with its reason or message', () => {
    const stalled = ethereumStakeStatus(resource(), first, halted('stall', 'Transaction'), at(2))
    expect(timeOf(stalled, 'Ready')).toBe('2030-01-01T00:00:01Z')
    expect(findCondition(stalled.conditions, 'Ready')?.reason).toBe('OverLimit')
    expect(timeOf(stalled, 'Stalled')).toBe('2030-01-01T00:00:02Z')
    expect(timeOf(stalled, 'Created')).toBe('2030-01-01T00:00:01Z')
  })
  test('stay when only the generation is another', () => {
    const next = ethereumStakeStatus(resource(4), first, halted('wait', 'Transaction'), at(2))
    expect(findCondition(next.conditions, 'Ready')).toMatchObject({ observedGeneration: 4, lastTransitionTime: '2030-01-01T00:00:01Z' })
  })
})

test.each([
  { status: 'active_ongoing', phase: 'Active', active: 'True', reason: 'Active' },
  { status: 'active_exiting', phase: 'Exiting', active: 'True', reason: 'Exiting' },
  { status: 'exited_unslashed', phase: 'Exiting', active: 'False', reason: 'Exiting' },
  { status: 'withdrawal_possible', phase: 'Withdrawing', active: 'False', reason: 'Exiting' },
  { status: 'withdrawal_done', phase: 'Exited', active: 'False', reason: 'ValidatorDone' },
  { status: 'pending_queued', phase: 'Confirmed', active: 'Unknown', reason: 'AwaitingActivation' },
])('a validator that is $status: phase $phase, and the stake stays Ready', ({ status, phase, active, reason }) => {
  const said = ethereumStakeStatus(resource(), { ...confirmed, validator: { ...validator(status), index: '7' } }, { at: 'settled' }, at(1))
  expect(said.phase).toBe(phase)
  expect(findCondition(said.conditions, 'Active')).toMatchObject({ status: active, reason })
  expect(findCondition(said.conditions, 'Ready')?.status).toBe('True')
})

test.each([
  { status: 'pending_queued', says: /^32 ETH are deposited for validator 7\.$/ },
  { status: 'active_ongoing', says: /^32 ETH are staked: validator 7 is active\.$/ },
  { status: 'active_exiting', says: /^The stake is ending: validator 7 is active_exiting\. Its balance goes to 0x5aAe/ },
  { status: 'withdrawal_done', says: /^The stake has ended: validator 7 has left, and its balance was withdrawn to 0x5aAe/ },
])('Ready says where a stake stands now: $status', ({ status, says }) => {
  const said = ethereumStakeStatus(resource(), { ...confirmed, validator: { ...validator(status), index: '7' } }, { at: 'settled' }, at(1))
  expect(findCondition(said.conditions, 'Ready')).toMatchObject({ status: 'True', message: expect.stringMatching(says) })
})

test.each([
  { what: 'before anything was signed', status: verified, says: /nothing is created, signed or sent\.$/ },
  {
    what: 'signed, not sent',
    status: prepared,
    says: /nothing more is signed or sent\. Transaction 0xaa\w+ \(nonce 0\) was signed before/,
  },
  {
    what: 'sent',
    status: sent,
    says: /nothing more is signed or sent\. Transaction 0xaa\w+ \(nonce 0\) was sent before and may still land/,
  },
])('suspended $what: it says what may still land', ({ status, says }) => {
  const said = ethereumStakeStatus(resource(), status, { at: 'suspended' }, at(1))
  expect(findCondition(said.conditions, 'Ready')?.message).toMatch(says)
})

describe('a slashed validator', () => {
  const seen = (status: string, slashed?: true) => ({
    ...confirmed,
    validator: { ...validator(status), index: '7', ...(slashed && { slashed }) },
  })
  test.each([
    { status: 'active_slashed', phase: 'Slashed', active: 'True' },
    { status: 'exited_slashed', phase: 'Slashed', active: 'False' },
    { status: 'withdrawal_possible', phase: 'Slashed', active: 'False' },
    { status: 'withdrawal_done', phase: 'Exited', active: 'False' },
  ])('that is $status is told as that: not Ready, stalled, and what to do', ({ status, phase, active }) => {
    const said = ethereumStakeStatus(resource(), seen(status, true), { at: 'settled' }, at(1))
    expect(said.phase).toBe(phase)
    expect(findCondition(said.conditions, 'Active')).toMatchObject({ status: active, reason: 'Slashed' })
    for (const [type, value] of Object.entries({ Slashed: 'True', Ready: 'False', Stalled: 'True', Reconciling: 'False' }))
      expect(findCondition(said.conditions, type), type).toMatchObject({ status: value })
    expect(findCondition(said.conditions, 'Ready')?.message).toMatch(/^The validator 7 was slashed/)
  })

  test('of one that was not it is said too, and of one that nobody has seen nothing is', () => {
    const of = (status: EthereumStakeStatus) =>
      findCondition(ethereumStakeStatus(resource(), status, { at: 'settled' }, at(1)).conditions, 'Slashed')
    expect(of(seen('active_ongoing'))).toMatchObject({ status: 'False' })
    expect(of(seen('unknown'))).toMatchObject({ status: 'Unknown' })
    expect(of(confirmed)).toMatchObject({ status: 'Unknown' })
  })

  test.each([
    { now: 'active_slashed', before: undefined, slashed: true },
    { now: 'exited_slashed', before: 'active_ongoing', slashed: true },
    // The Beacon API has one word for all that have left: what was seen before tells.
    { now: 'withdrawal_possible', before: 'exited_slashed', slashed: true },
    { now: 'withdrawal_possible', before: 'exited_unslashed', slashed: false },
    { now: 'withdrawal_done', before: 'withdrawal_possible', isKnown: true, slashed: true },
    // What somebody wrote into the status of one that does its duties is corrected.
    { now: 'active_ongoing', before: 'active_ongoing', isKnown: true, slashed: false },
  ])('$now after $before, slashed as far as was known: $isKnown → $slashed', ({ now, before, isKnown, slashed }) => {
    const known = before === undefined ? undefined : { ...validator(before), ...(isKnown === true ? { slashed: true } : {}) }
    expect(wasSlashed(now, known)).toBe(slashed)
  })
})

describe('a deposit that the consensus layer dropped', () => {
  const dropped = { ...confirmed, validator: validator('unknown'), consensus: { status: 'Dropped' as const, rule: 'invalid-signature' } }

  test('is not ready, needs a person, and says why', () => {
    const said = ethereumStakeStatus(resource(), dropped, { at: 'settled' }, at(1))
    expect(said.phase).toBe('Dropped')
    for (const [type, status] of [
      ['Ready', 'False'],
      ['Stalled', 'True'],
      ['Active', 'False'],
      ['Confirmed', 'True'],
    ] as const)
      expect(findCondition(said.conditions, type)?.status, type).toBe(status)
    expect(findCondition(said.conditions, 'Ready')).toMatchObject({
      reason: 'DepositDropped',
      message: expect.stringContaining('its signature is not valid on this network'),
    })
  })

  test('is told once its turn has passed, by an event; while it is queued nothing is', async () => {
    const world = createWorld()
    const operator = world.start()
    world.addSigner()
    world.addStake()
    await world.settle(operator)
    world.chain.mine(4)
    await world.settle(operator)
    expect(world.condition('Ready')).toMatchObject({ status: 'True' })
    const look = async (consensus: EthereumStakeBody['consensus']) => {
      world.service.state.lie = (body) => ({ ...body, consensus })
      world.clock.advance(3_600_000)
      await world.settle(operator)
    }
    await look({ status: 'pending', reason: 'it is in the queue of deposits' })
    expect(world.condition('Active')).toMatchObject({ status: 'Unknown', reason: 'AwaitingActivation' })
    expect(world.condition('Ready')).toMatchObject({ status: 'True' })
    await look({ status: 'dropped', reason: 'invalid-signature: the words of the service are not copied' })
    expect(world.status()).toMatchObject({ phase: 'Dropped', consensus: { status: 'Dropped', rule: 'invalid-signature' } })
    expect(world.stalled()).toBe('DepositDropped')
    expect(world.events.at(-1)?.text).toMatchObject({ type: 'Warning', reason: 'DepositDropped' })
    expect(JSON.stringify(world.status())).not.toContain('are not copied')
    const before = world.events.length
    await look({ status: 'dropped', reason: 'invalid-signature: the words of the service are not copied' })
    expect(world.events.length, 'said once').toBe(before)
  })

  test('whose key has somebody else’s validator is not ready, however active that is', async () => {
    const world = createWorld()
    const operator = world.start()
    world.addSigner()
    world.addStake()
    await world.settle(operator)
    world.service.state.lie = (body) => ({
      ...body,
      consensus: { status: 'dropped', reason: 'other-credentials: validator 7 has others' },
      validator: { ...body.validator, status: 'active_ongoing', index: 7 },
    })
    world.clock.advance(3_600_000)
    await world.settle(operator)
    expect(world.stalled()).toBe('DepositDropped')
    expect(world.ready()).toBe(false)
    expect(world.status()).toMatchObject({ phase: 'Dropped', consensus: { status: 'Dropped', rule: 'other-credentials' } })
    expect(world.condition('Active')).toMatchObject({ status: 'False', reason: 'DepositDropped' })
    expect(world.condition('Ready')?.message).toContain("somebody else's withdrawal credentials: their deposit came first")
  })
})

test.each([
  { what: 'a contract that nobody here knows', code: '0x6080', reason: 'WithdrawalAddressIsContract' },
  { what: 'an account whose key has named a contract (EIP-7702)', code: `0xef0100${'11'.repeat(20)}`, reason: 'Succeeded' },
  { what: 'an account', code: '0x', reason: 'Succeeded' },
] as const)('a stake whose money goes to $what is paid, and says so: $reason', async ({ code, reason }) => {
  const world = createWorld()
  world.chain.state.code.set(withdrawalAddress.toLowerCase(), code)
  world.addSigner()
  world.addStake()
  const operator = world.start()
  await world.visit(operator, KEY)
  const verified = world.condition('Verified')
  expect(verified).toMatchObject({ status: 'True', reason })
  expect(verified?.message.includes('Warning: that address is a contract')).toBe(reason !== 'Succeeded')
  expect(world.chain.deposits(), 'said before anything is paid').toEqual([])
  await world.settle(operator)
  expect(world.ready()).toBe(true)
  expect(world.condition('Verified')?.reason).toBe(reason)
  const told = world.events.filter(({ text }) => text.reason === 'WithdrawalAddressIsContract')
  expect(told.map(({ text }) => text.type)).toEqual(reason === 'Succeeded' ? [] : ['Warning'])
})
