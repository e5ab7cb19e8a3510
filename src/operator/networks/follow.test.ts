import { expect, test, vi } from 'vitest'
import { createTestClock } from '../testing/test-clock.ts'
import { type AwaitChange, createFollower } from './follow.ts'

const never = new AbortController().signal

/** An API that answers each wait as it is told; the last answer again and again. */
function api(...answers: readonly (Awaited<ReturnType<AwaitChange>> | Error)[]) {
  const asked: string[] = []
  const awaitChange: AwaitChange = async ({ state }) => {
    asked.push(state)
    const answer = answers[Math.min(asked.length, answers.length) - 1]
    if (answer instanceof Error || answer === undefined) throw answer ?? new Error('nothing')
    return answer
  }
  return { asked, awaitChange }
}
const pending: AwaitChange = () => new Promise(() => undefined)

test('tells once when the state has changed, after as many waits as it takes', async () => {
  const { asked, awaitChange } = api('unchanged', 'unchanged', 'changed')
  const follower = createFollower({ clock: createTestClock() })
  follower.note('r1', '"a"', awaitChange)
  const onChange = vi.fn()
  expect(follower.follow('r1', onChange, never)).toBe(true)
  await vi.waitFor(() => expect(onChange).toHaveBeenCalledTimes(1))
  expect(asked).toEqual(['"a"', '"a"', '"a"'])
})

test('of an API that names no state nothing is followed, and nothing is asked', () => {
  const { asked, awaitChange } = api('changed')
  const follower = createFollower({ clock: createTestClock() })
  follower.note('r1', undefined, awaitChange)
  expect(follower.follow('r1', () => undefined, never)).toBe(false)
  expect(follower.follow('never read', () => undefined, never)).toBe(false)
  expect(asked).toEqual([])
})

test.each([
  { what: 'an API that does not wait', answer: 'refused' as const },
  { what: 'one that fails', answer: new Error('away') },
])('$what is not asked again, and its place is free', async ({ answer }) => {
  const { asked, awaitChange } = api(answer)
  const follower = createFollower({ clock: createTestClock(), max: 1 })
  follower.note('r1', '"a"', awaitChange)
  follower.note('r2', '"a"', pending)
  const onChange = vi.fn()
  follower.follow('r1', onChange, never)
  await vi.waitFor(() => expect(follower.follow('r2', () => undefined, never)).toBe(true))
  expect(asked).toHaveLength(1)
  expect(onChange).not.toHaveBeenCalled()
})

test('so many are followed at the same time; whoever finds no place is told so, and who is followed has its one place', () => {
  const follower = createFollower({ clock: createTestClock(), max: 2 })
  for (const id of ['r1', 'r2', 'r3']) follower.note(id, '"a"', pending)
  expect(['r1', 'r2', 'r3', 'r1'].map((id) => follower.follow(id, () => undefined, never))).toEqual([true, true, false, true])
})

test('an API whose every answer is another one wakes nobody more often than every two seconds', async () => {
  const clock = createTestClock()
  const { awaitChange } = api('changed')
  const follower = createFollower({ clock })
  follower.note('r1', '"a"', awaitChange)
  const changes: number[] = []
  for (let round = 1; round <= 3; round++) {
    await vi.waitFor(() => expect(follower.follow('r1', () => changes.push(clock.monotonicMs()), never)).toBe(true))
    await vi.waitFor(() => expect(changes).toHaveLength(round))
  }
  expect(changes).toEqual([0, 2_000, 4_000])
})

test('nobody is followed by an instance that no longer leads', () => {
  const follower = createFollower({ clock: createTestClock() })
  follower.note('r1', '"a"', pending)
  expect(follower.follow('r1', () => undefined, AbortSignal.abort())).toBe(false)
})
