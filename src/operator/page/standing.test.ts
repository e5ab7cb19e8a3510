import { expect, test } from 'vitest'
import type { Condition } from '../../resources/conditions.ts'
import { type Standable, standingOf } from './standing.ts'

const condition = (type: string, status: Condition['status'], reason: string): Condition => ({
  type,
  status,
  reason,
  message: `${reason}.`,
  lastTransitionTime: '2030-01-01T00:00:00Z',
})
const resource = (conditions: readonly Condition[] | undefined, metadata: Standable['metadata'] = {}): Standable => ({
  metadata,
  status: { conditions },
})
const ready = condition('Ready', 'True', 'Succeeded')
const deleted = { deletionTimestamp: '2030-01-02T00:00:00Z' }

test.each([
  { of: 'nobody has looked at', it: resource(undefined), state: 'NotSeen', reason: '' },
  { of: 'has no status', it: { metadata: {} }, state: 'NotSeen', reason: '' },
  { of: 'is ready', it: resource([ready]), state: 'Ready', reason: 'Succeeded' },
  { of: 'is worked on', it: resource([condition('Ready', 'False', 'InProgress')]), state: 'InProgress', reason: 'InProgress' },
  {
    of: 'waits for the chain',
    it: resource([condition('Ready', 'False', 'AwaitingFinality')]),
    state: 'InProgress',
    reason: 'AwaitingFinality',
  },
  {
    of: 'waits for money',
    it: resource([condition('Ready', 'False', 'InsufficientFunds')]),
    state: 'Waiting',
    reason: 'InsufficientFunds',
  },
  {
    of: 'has a reason of a later version',
    it: resource([condition('Ready', 'False', 'toString')]),
    state: 'InProgress',
    reason: 'toString',
  },
  {
    of: 'needs a person',
    it: resource([condition('Ready', 'False', 'KeyMissing'), condition('Stalled', 'True', 'KeyMissing')]),
    state: 'Stalled',
    reason: 'KeyMissing',
  },
  {
    of: 'was slashed, though it is ready',
    it: resource([ready, condition('Slashed', 'True', 'Slashed')]),
    state: 'Slashed',
    reason: 'Slashed',
  },
  { of: 'is suspended', it: resource([condition('Ready', 'False', 'Suspended')]), state: 'Suspended', reason: 'Suspended' },
  {
    of: 'has a suspended signer',
    it: resource([condition('Ready', 'False', 'SignerSuspended')]),
    state: 'Suspended',
    reason: 'SignerSuspended',
  },
  { of: 'is being deleted', it: resource([ready], deleted), state: 'Deleting', reason: 'Succeeded' },
  {
    of: 'is being deleted, and needs a person',
    it: resource([condition('Stalled', 'True', 'KeyMissing')], deleted),
    state: 'Stalled',
    reason: 'KeyMissing',
  },
  {
    of: 'can not be looked at any more',
    it: resource([ready, condition('Observed', 'Unknown', 'ChainUnavailable')]),
    state: 'Waiting',
    reason: 'ChainUnavailable',
  },
  {
    of: 'is a signer short of money',
    it: resource([ready, condition('Funded', 'False', 'BalanceLow')]),
    state: 'Waiting',
    reason: 'BalanceLow',
  },
  {
    of: 'is a signer whose key others use',
    it: resource([ready, condition('KeyUsedElsewhere', 'True', 'KeyUsedElsewhere')]),
    state: 'Stalled',
    reason: 'KeyUsedElsewhere',
  },
] as const)('what $of is $state', ({ it, state, reason }) => {
  expect(standingOf(it)).toMatchObject({ state, reason })
})
