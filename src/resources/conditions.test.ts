import { describe, expect, test } from 'vitest'
import { type Condition, condition, isTrue, timestamp, withCondition } from './conditions.ts'
import { reasons } from './reasons.ts'

const at = (second: number) => new Date(Date.UTC(2030, 0, 1, 0, 0, second, 999))
const ready: Condition = {
  type: 'Ready',
  status: 'False',
  observedGeneration: 1,
  lastTransitionTime: '2030-01-01T00:00:00Z',
  reason: 'Pending',
  message: 'm',
}
const other: Condition = { ...ready, type: 'Other' }

describe('a condition', () => {
  test('that says the same leaves the very same list', () => {
    const list = [ready]
    expect(withCondition(list, 'Ready', { status: 'False', reason: 'Pending', message: 'm' }, 1, at(5))).toBe(list)
  })
  test.each([
    { what: 'status', next: { status: 'True', reason: 'Pending', message: 'm' } as const, generation: 1, moved: true },
    { what: 'reason', next: { status: 'False', reason: 'Retrying', message: 'm' } as const, generation: 1, moved: false },
    { what: 'message', next: { status: 'False', reason: 'Pending', message: 'n' } as const, generation: 1, moved: false },
    { what: 'generation', next: { status: 'False', reason: 'Pending', message: 'm' } as const, generation: 2, moved: false },
  ])('with another $what is written; its time moves: $moved', ({ next, generation, moved }) => {
    const list = withCondition([other, ready], 'Ready', next, generation, at(5))
    expect(list[0]).toBe(other)
    expect(list[1]).toMatchObject({
      ...next,
      observedGeneration: generation,
      lastTransitionTime: moved ? '2030-01-01T00:00:05Z' : '2030-01-01T00:00:00Z',
    })
  })
  test('that is new comes last, with the time', () => {
    expect(withCondition([other], 'Ready', { status: 'True', reason: 'Pending', message: 'm' }, 1, at(5))[1]?.lastTransitionTime).toBe(
      '2030-01-01T00:00:05Z',
    )
  })
  test.each(['n', '🥩'])('is cut where its message of %s is longer than the API server takes, and stays so', (character) => {
    const next = { status: 'True', reason: 'Pending', message: ` ${character.repeat(40_000)}` } as const
    const list = withCondition([], 'Ready', next, 1, at(5))
    expect(condition.safeParse(list[0]).success).toBe(true)
    expect(list[0]?.message.isWellFormed()).toBe(true)
    expect(list[0]?.message).toMatch(/…$/)
    expect(list[0]?.message.length).toBeGreaterThan(32_000)
    expect(withCondition(list, 'Ready', next, 1, at(6))).toBe(list)
  })
  test('is true only when it is there and True', () => {
    expect([isTrue(undefined, 'Ready'), isTrue([ready], 'Ready'), isTrue([{ ...ready, status: 'True' }], 'Ready')]).toEqual([
      false,
      false,
      true,
    ])
  })
})

test('times have whole seconds, in UTC', () => {
  expect(timestamp(at(5))).toBe('2030-01-01T00:00:05Z')
})

test('every reason is one that a condition may carry, and says what it means', () => {
  for (const [reason, { means }] of Object.entries(reasons)) {
    expect(condition.shape.reason.safeParse(reason).success).toBe(true)
    expect(means).toMatch(/\.$/)
  }
})
