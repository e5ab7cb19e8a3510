import { expect, test } from 'vitest'
import type { Condition } from '../resources/conditions.ts'
import type { Change, OnChange } from './kube/delivery.ts'
import type { KubeObject } from './kube/objects.ts'
import { createTestClock } from './testing/test-clock.ts'
import { createWaits, sagaStandings, signerStandings } from './waits.ts'

const condition = (type: string, status: Condition['status'], reason: string, lastTransitionTime = '2030-01-01T00:00:00Z'): Condition => ({
  type,
  status,
  reason,
  message: `${reason}.`,
  lastTransitionTime,
})

type Resource = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } }
const resource = (uid: string, ...conditions: Condition[]): Resource => ({
  apiVersion: 'staking.dev/v1alpha1',
  kind: 'EthereumStake',
  metadata: { namespace: 'team-a', name: 'one', uid, resourceVersion: '1' },
  status: { conditions },
})

function world() {
  const clock = createTestClock()
  const waits = createWaits(clock)
  let tell: OnChange<Resource> = () => {}
  waits.follow<Resource>(
    {
      onChange: (listener) => {
        tell = listener
      },
    },
    ({ status }) => sagaStandings(status?.conditions),
  )
  let held: Resource | undefined
  const put = (now: Resource | undefined) => {
    const old = held
    held = now
    const change: Change<Resource> | undefined =
      now === undefined
        ? old && { type: 'deleted', old, own: false }
        : old === undefined
          ? { type: 'added', new: now, own: false }
          : { type: 'updated', old, new: now, own: false }
    if (change !== undefined) tell('team-a/one', change)
  }
  const shown = () => [...waits.all()].map(({ type, reason, sinceMs }) => `${type} ${reason} ${(clock.monotonicMs() - sinceMs) / 1000}s`)
  return { clock, put, shown }
}

const waitsFor = (reason: string) => [condition('Ready', 'False', reason), condition('Reconciling', 'True', reason)]

test('a wait is as old as its reason, whatever else is written meanwhile', () => {
  const { clock, put, shown } = world()
  put(resource('a', ...waitsFor('InsufficientFunds')))
  clock.advance(60_000)
  put(resource('a', ...waitsFor('InsufficientFunds')))
  expect(shown()).toEqual(['Ready InsufficientFunds 60s'])
  put(resource('a', ...waitsFor('FeeTooHigh')))
  clock.advance(5_000)
  expect(shown()).toEqual(['Ready FeeTooHigh 5s'])
})

test('what is where it should be waits for nothing, and neither does what is gone', () => {
  const { put, shown } = world()
  put(resource('a', ...waitsFor('FeeTooHigh')))
  put(resource('a', condition('Ready', 'True', 'Succeeded'), condition('Reconciling', 'False', 'Settled')))
  expect(shown()).toEqual([])
  put(resource('a', ...waitsFor('FeeTooHigh')))
  put(undefined)
  expect(shown()).toEqual([])
})

test('a stall that is seen first after a restart is as old as its condition says', () => {
  const { clock, put, shown } = world()
  clock.advance(3_600_000)
  put(resource('a', condition('Ready', 'False', 'KeyMissing'), condition('Stalled', 'True', 'KeyMissing', '2030-01-01T00:30:00Z')))
  expect(shown()).toEqual(['Stalled KeyMissing 1800s', 'Ready KeyMissing 0s'])
})

test('a resource that is made anew under its name begins anew', () => {
  const { clock, put, shown } = world()
  put(resource('a', ...waitsFor('FeeTooHigh')))
  clock.advance(60_000)
  put(undefined)
  put(resource('b', ...waitsFor('FeeTooHigh')))
  expect(shown()).toEqual(['Ready FeeTooHigh 0s'])
})

test.each<{ when: string; conditions: readonly Condition[] | undefined; stands: string[] }>([
  { when: 'nobody has seen it', conditions: undefined, stands: ['Ready Pending'] },
  { when: 'it waits', conditions: waitsFor('FeeTooHigh'), stands: ['Ready FeeTooHigh'] },
  {
    when: 'it is where it should be, and goes on',
    conditions: [condition('Ready', 'True', 'Succeeded'), condition('Reconciling', 'True', 'AwaitingFinality')],
    stands: ['Reconciling AwaitingFinality'],
  },
  {
    when: 'it is settled, and can’t be looked at',
    conditions: [
      condition('Ready', 'True', 'Succeeded'),
      condition('Reconciling', 'False', 'Settled'),
      condition('Observed', 'Unknown', 'ChainUnavailable'),
    ],
    stands: ['Observed ChainUnavailable'],
  },
  {
    when: 'it has come to an end that it should not',
    conditions: [
      condition('Ready', 'False', 'Slashed'),
      condition('Reconciling', 'False', 'Settled'),
      condition('Stalled', 'True', 'Slashed'),
    ],
    stands: ['Stalled Slashed', 'Ready Slashed'],
  },
])('of a resource, when $when, its conditions tell what it waits for', ({ conditions, stands }) => {
  expect(sagaStandings(conditions).map(({ type, reason }) => `${type} ${reason}`)).toEqual(stands)
})

test('a signer waits for its key, its funds, and whoever uses its key', () => {
  const told = signerStandings([
    condition('Ready', 'True', 'Succeeded'),
    condition('Stalled', 'True', 'KeyMissing'),
    condition('Funded', 'Unknown', 'ChainUnavailable'),
    condition('KeyUsedElsewhere', 'True', 'KeyUsedElsewhere'),
    condition('KeyValid', 'True', 'Succeeded'),
  ])
  expect(told.map(({ type }) => type)).toEqual(['Stalled', 'Funded', 'KeyUsedElsewhere'])
})
