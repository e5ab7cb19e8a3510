import { expect, test } from 'vitest'
import { findCondition } from '../../../resources/conditions.ts'
import { requestStatus, type ValidatorRequestStatus, validatorWithdrawalConditions } from '../../../resources/validator-request.ts'
import type { Progress } from '../../engine/progress.ts'
import { type RequestResource, validatorRequestStatus } from './status.ts'

const hash = `0x${'aa'.repeat(32)}` as const
const resource: RequestResource = {
  kind: 'ValidatorWithdrawal',
  metadata: { name: 'one', namespace: 'team-a', uid: 'u', resourceVersion: '1', generation: 2 },
  spec: { validator: { stakeRef: { name: 's' } }, signer: 'main', amountGwei: '1500000000' },
}
const validator = { network: 'hoodi', pubkey: `0x${'11'.repeat(48)}` as const }
const created: ValidatorRequestStatus = { conditions: [], validator, requestId: 'r1', verifiedCalldata: `0x${'11'.repeat(56)}` as const }
const transaction = (change: object) => ({
  ...created,
  transaction: {
    chainId: 1,
    from: `0x${'33'.repeat(20)}` as const,
    to: `0x${'33'.repeat(20)}` as const,
    valueWei: '1',
    dataHash: hash,
    hash,
    nonce: 0,
    gas: '1',
    maxFeePerGasWei: '1',
    maxPriorityFeePerGasWei: '1',
    preparedAt: '2030-01-01T00:00:00Z',
    state: 'Prepared' as const,
    ...change,
  },
})
const mined = { broadcastHash: hash, minedHash: hash, blockNumber: 7 }
const final = transaction({ ...mined, state: 'Confirmed' })
const now = new Date(Date.UTC(2030, 0, 1))
const halted = (kind: 'wait' | 'stall', step: string): Progress => ({
  at: 'halted',
  step,
  verdict:
    kind === 'wait'
      ? { kind, reason: 'RequestFeeTooHigh', message: 'm', afterMs: 1 }
      : { kind, reason: 'AlreadyRequested', message: 'm', recheck: true },
})

test.each<{ given: string; status: ValidatorRequestStatus; progress: Progress; phase: string; expected: Record<string, string> }>([
  {
    given: 'nothing yet',
    status: {},
    progress: { at: 'step', step: 'ResolveValidator' },
    phase: 'Pending',
    expected: { Ready: 'Unknown/Pending', Reconciling: 'True/InProgress', Created: 'Unknown/Pending', Accepted: 'Unknown/Pending' },
  },
  {
    given: 'a wait before it is created',
    status: { conditions: [], validator },
    progress: halted('wait', 'CreateRequest'),
    phase: 'Waiting',
    expected: { Ready: 'False/RequestFeeTooHigh', Created: 'Unknown/RequestFeeTooHigh', Stalled: 'False/InProgress' },
  },
  {
    given: 'a stall',
    status: { conditions: [], validator },
    progress: halted('stall', 'CreateRequest'),
    phase: 'Stalled',
    expected: { Ready: 'False/AlreadyRequested', Created: 'False/AlreadyRequested', Stalled: 'True/AlreadyRequested' },
  },
  {
    given: 'a request',
    status: created,
    progress: halted('wait', 'Transaction'),
    phase: 'Created',
    expected: { Created: 'True/Succeeded', Verified: 'True/Succeeded', Broadcast: 'Unknown/RequestFeeTooHigh' },
  },
  {
    given: 'a transaction that was sent',
    status: transaction({ broadcastHash: hash, state: 'Broadcast' }),
    progress: { at: 'step', step: 'Transaction' },
    phase: 'Confirming',
    expected: { Broadcast: 'True/Succeeded', Confirmed: 'Unknown/Pending' },
  },
  {
    given: 'a final transaction',
    status: final,
    progress: halted('wait', 'AwaitConsensus'),
    phase: 'Confirmed',
    expected: { Confirmed: 'True/Succeeded', Accepted: 'Unknown/RequestFeeTooHigh', Ready: 'False/RequestFeeTooHigh' },
  },
  {
    given: 'acceptance',
    status: { ...final, consensus: { status: 'Accepted' } },
    progress: { at: 'settled' },
    phase: 'Accepted',
    expected: { Ready: 'True/Accepted', Accepted: 'True/Accepted', Reconciling: 'False/Settled', Stalled: 'False/Settled' },
  },
  {
    given: 'acceptance while it is suspended',
    status: { ...final, consensus: { status: 'Accepted' } },
    progress: { at: 'suspended' },
    phase: 'Accepted',
    expected: { Ready: 'True/Accepted' },
  },
  {
    given: 'a drop',
    status: { ...final, consensus: { status: 'Dropped', rules: ['too-young'] } },
    progress: { at: 'settled' },
    phase: 'Dropped',
    expected: { Ready: 'False/RequestDropped', Accepted: 'False/RequestDropped', Stalled: 'True/RequestDropped' },
  },
  {
    given: 'a reverted transaction',
    status: transaction({ ...mined, state: 'Failed' }),
    progress: { at: 'settled' },
    phase: 'Failed',
    expected: { Ready: 'False/TransactionReverted', Confirmed: 'False/TransactionReverted', Stalled: 'True/TransactionReverted' },
  },
  {
    given: 'suspension',
    status: created,
    progress: { at: 'suspended' },
    phase: 'Suspended',
    expected: { Ready: 'False/Suspended', Reconciling: 'False/Suspended' },
  },
  {
    given: 'deletion',
    status: { ...final, consensus: { status: 'Accepted' } },
    progress: { at: 'deleting', message: 'm' },
    phase: 'Deleting',
    expected: { Ready: 'False/Deleting', Reconciling: 'True/Deleting' },
  },
  {
    given: 'a decision that somebody forged before anything is final',
    status: { ...created, consensus: { status: 'Accepted' } },
    progress: { at: 'step', step: 'Transaction' },
    phase: 'Created',
    expected: { Ready: 'False/InProgress' },
  },
])('with $given, it says so', ({ status, progress, phase, expected }) => {
  const said = validatorRequestStatus(resource, status, progress, now)
  expect(said.phase).toBe(phase)
  for (const [type, statement] of Object.entries(expected)) {
    const condition = findCondition(said.conditions, type)
    expect(`${condition?.status}/${condition?.reason}`, type).toBe(statement)
  }
  expect(said.conditions?.map(({ type }) => type)).toEqual([...validatorWithdrawalConditions])
  expect(requestStatus.safeParse(said).error).toBeUndefined()
  // Once more says the very same list: there is nothing to write.
  expect(validatorRequestStatus(resource, { ...status, ...said }, progress, new Date(Date.UTC(2031, 0, 1))).phase).toBe(phase)
})

test('a drop is told with the rules that are known, in words of our own', () => {
  const said = validatorRequestStatus(
    resource,
    { ...final, consensus: { status: 'Dropped', rules: ['too-young', 'constructor'] } },
    { at: 'settled' },
    now,
  )
  expect(findCondition(said.conditions, 'Ready')?.message).toContain(
    'not active for long enough (256 epochs on public networks) (too-young).',
  )
})
