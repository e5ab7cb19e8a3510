import { expect, test } from 'vitest'
import { createTestClock } from '../testing/test-clock.ts'
import { paced } from './paced.ts'
import { Priority } from './queue.ts'

function pacedBy(everyMs: number) {
  const clock = createTestClock()
  const looks: string[] = []
  const queue = paced<string>(
    {
      add: (key, { priority } = {}) => void looks.push(`${key} at once${priority === Priority.high ? '' : ', low'}`),
      addAfter: (key, ms, { priority } = {}) => void looks.push(`${key} after ${ms}${priority === Priority.high ? '' : ', low'}`),
    },
    { clock, everyMs },
  )
  return { clock, queue, taken: () => looks.splice(0) }
}

test('the first wake of a key is passed on at once, and those that follow are one look at the end of the pace', async () => {
  const { clock, queue, taken } = pacedBy(250)
  queue.add('lane', { priority: Priority.high })
  await clock.advance(100)
  queue.add('lane', { priority: Priority.high })
  await clock.advance(100)
  queue.add('lane', { priority: Priority.high })
  expect(taken()).toEqual(['lane at once', 'lane after 150', 'lane after 50'])
})

test('right after a look that was put off, the next one is put off too', async () => {
  const { clock, queue, taken } = pacedBy(250)
  queue.add('lane')
  queue.add('lane')
  await clock.advance(260)
  queue.add('lane')
  expect(taken()).toEqual(['lane at once, low', 'lane after 250, low', 'lane after 240, low'])
})

test('a key that was quiet for the pace is passed on at once again', async () => {
  const { clock, queue, taken } = pacedBy(250)
  queue.add('lane')
  await clock.advance(250)
  queue.add('lane')
  expect(taken()).toEqual(['lane at once, low', 'lane at once, low'])
})

test('each key has a pace of its own, however many there are', async () => {
  const { clock, queue, taken } = pacedBy(250)
  for (let index = 0; index < 3_000; index++) queue.add(`lane-${index}`)
  expect(taken().every((look) => look.endsWith('at once, low'))).toBe(true)
  await clock.advance(100)
  queue.add('lane-0')
  queue.add('lane-2999')
  expect(taken()).toEqual(['lane-0 after 150, low', 'lane-2999 after 150, low'])
})
