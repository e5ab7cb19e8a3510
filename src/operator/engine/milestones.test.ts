import { describe, expect, test } from 'vitest'
import type { Condition } from '../../resources/conditions.ts'
import { createTestClock } from '../testing/test-clock.ts'
import { milestones } from './milestones.ts'

const condition = (type: string, status: Condition['status'], reason = 'Succeeded'): Condition => ({
  type,
  status,
  reason,
  message: '',
  lastTransitionTime: '2030-01-01T00:00:00Z',
})
const metadata = { creationTimestamp: '2030-01-01T00:00:00Z', generation: 1 }
const clock = createTestClock()
clock.advance(90_000)
const between = (before: readonly Condition[] | undefined, after: readonly Condition[], of: Parameters<typeof milestones>[0] = metadata) =>
  milestones(of, before === undefined ? undefined : { conditions: before }, { conditions: after }, clock.now())

describe('a condition', () => {
  test('that becomes True is told with the age of the resource', () => {
    expect(between([condition('Broadcast', 'Unknown', 'Pending')], [condition('Broadcast', 'True')]).reached).toEqual([
      { type: 'Broadcast', sinceCreatedMs: 90_000 },
    ])
  })

  test('that is True in the first status of all is told, too', () => {
    expect(between(undefined, [condition('Created', 'True')]).reached).toHaveLength(1)
  })

  test.each<{ when: string; before?: Condition; after: Condition; of?: Parameters<typeof milestones>[0] }>([
    { when: 'it was True before', before: condition('Broadcast', 'True'), after: condition('Broadcast', 'True', 'Active') },
    { when: 'it is not True', after: condition('Broadcast', 'False') },
    { when: 'it only says that something goes on', after: condition('Reconciling', 'True', 'InProgress') },
    { when: 'it says that the resource was looked at', after: condition('Observed', 'True') },
    { when: 'it is a stall', after: condition('Stalled', 'True', 'KeyMissing') },
    { when: 'the spec was changed since', after: condition('Broadcast', 'True'), of: { ...metadata, generation: 2 } },
    { when: 'nobody knows when the resource was created', after: condition('Broadcast', 'True'), of: { generation: 1 } },
  ])('is not told when $when', ({ before, after, of }) => {
    expect(between(before === undefined ? [] : [before], [after], of).reached).toEqual([])
  })

  test('has no negative age where the clock of the API server is ahead', () => {
    const { reached } = between([], [condition('Created', 'True')], { ...metadata, creationTimestamp: '2030-01-01T01:00:00Z' })
    expect(reached).toEqual([{ type: 'Created', sinceCreatedMs: 0 }])
  })
})

test.each<{ when: string; before: readonly Condition[]; after: Condition; stalled: string | undefined }>([
  { when: 'it begins', before: [], after: condition('Stalled', 'True', 'KeyMissing'), stalled: 'KeyMissing' },
  {
    when: 'its reason changes',
    before: [condition('Stalled', 'True', 'KeyMissing')],
    after: condition('Stalled', 'True', 'OverLimit'),
    stalled: 'OverLimit',
  },
  {
    when: 'it begins again',
    before: [condition('Stalled', 'False')],
    after: condition('Stalled', 'True', 'KeyMissing'),
    stalled: 'KeyMissing',
  },
  {
    when: 'it lasts',
    before: [condition('Stalled', 'True', 'KeyMissing')],
    after: condition('Stalled', 'True', 'KeyMissing'),
    stalled: undefined,
  },
  {
    when: 'it ends',
    before: [condition('Stalled', 'True', 'KeyMissing')],
    after: condition('Stalled', 'False'),
    stalled: undefined,
  },
])('of a stall, when $when: $stalled', ({ before, after, stalled }) => {
  // Also of a resource whose spec was changed.
  expect(between(before, [after], { ...metadata, generation: 5 }).stalled).toBe(stalled)
})
