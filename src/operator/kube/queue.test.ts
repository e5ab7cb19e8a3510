import { describe, expect, test } from 'vitest'
import { createFakeClock, settle } from '../../../test/integration/kube/fake-clock.ts'
import { createQueue, Priority, type Queue } from './queue.ts'

const signal = new AbortController().signal
const setUp = (): { clock: ReturnType<typeof createFakeClock>; queue: Queue<string> } => {
  const clock = createFakeClock()
  return { clock, queue: createQueue<string>({ clock, baseDelayMs: 100, maxDelayMs: 1000, random: () => 0.5 }) }
}
const take = async (queue: Queue<string>): Promise<string | undefined> => {
  const key = await queue.get(signal)
  if (key !== undefined) queue.done(key)
  return key
}

test('a key added many times comes once', async () => {
  const { queue } = setUp()
  for (let time = 0; time < 3; time++) queue.add('a')
  queue.add('b')
  expect([await take(queue), await take(queue)]).toEqual(['a', 'b'])
  expect(queue.stats()).toEqual({ ready: 0, delayed: 0, processing: 0, dirty: 0 })
})

test('a key is never given to two at a time; added meanwhile, it comes again when it is done', async () => {
  const { queue } = setUp()
  queue.add('a')
  expect(await queue.get(signal)).toBe('a')
  queue.add('a')
  queue.add('a')
  const second = queue.get(signal)
  let given = false
  void second.then(() => {
    given = true
  })
  await settle()
  expect(given).toBe(false)
  queue.done('a')
  expect(await second).toBe('a')
  queue.done('a')
  expect(queue.stats().ready).toBe(0)
})

test('high priority goes first, and within a priority the order of coming holds', async () => {
  const { queue } = setUp()
  queue.add('poll-1')
  queue.add('poll-2')
  queue.add('work-1', { priority: Priority.high })
  queue.add('work-2', { priority: Priority.high })
  queue.add('poll-2', { priority: Priority.high })
  queue.add('work-1', { priority: Priority.low })
  const order = []
  for (let time = 0; time < 4; time++) order.push(await take(queue))
  expect(order).toEqual(['work-1', 'work-2', 'poll-2', 'poll-1'])
  expect(queue.stats().ready).toBe(0)
})

test('a key moved to a higher lane and added again later still comes once', async () => {
  const { queue } = setUp()
  queue.add('a')
  queue.add('a', { priority: Priority.high })
  expect(await take(queue)).toBe('a')
  queue.add('a')
  expect(await take(queue)).toBe('a')
  expect(queue.stats().ready).toBe(0)
})

test('urgency survives waiting: an added key keeps the higher priority that was planned for it', async () => {
  const { queue } = setUp()
  queue.addAfter('money', 1000, { priority: Priority.high })
  queue.add('poll')
  queue.add('money')
  expect(await take(queue)).toBe('money')
})

test.each([
  { first: 500, second: 200, dueAfter: 200, because: 'an earlier time wins over a later one' },
  { first: 200, second: 500, dueAfter: 200, because: 'a later time does not put off an earlier one' },
])('planned after $first and then $second ms, it comes after $dueAfter: $because', async ({ first, second, dueAfter }) => {
  const { clock, queue } = setUp()
  queue.addAfter('a', first)
  queue.addAfter('a', second)
  await clock.advance(dueAfter - 1)
  expect(queue.stats().ready).toBe(0)
  await clock.advance(1)
  expect(queue.stats().ready).toBe(1)
  expect(await take(queue)).toBe('a')
  await clock.advance(10_000)
  expect(queue.stats()).toMatchObject({ ready: 0, delayed: 0 })
})

test('adding a key now drops what was planned for later', async () => {
  const { clock, queue } = setUp()
  queue.addAfter('a', 500)
  queue.add('a')
  expect(await take(queue)).toBe('a')
  await clock.advance(1000)
  expect(queue.stats()).toMatchObject({ ready: 0, delayed: 0 })
})

test('a worker that waits gets a key when its time comes, and one timer serves them all', async () => {
  const { clock, queue } = setUp()
  queue.addAfter('late', 300)
  queue.addAfter('soon', 100)
  const first = queue.get(signal)
  await settle()
  expect(clock.sleeping).toBe(1)
  await clock.advance(100)
  expect(await first).toBe('soon')
  const second = queue.get(signal)
  await clock.advance(200)
  expect(await second).toBe('late')
})

test('each failure in a row doubles the wait, up to the maximum; forgetting starts over', () => {
  const { queue } = setUp()
  const waits = [1, 2, 3, 4, 5, 6].map(() => queue.addBackoff('a'))
  expect(waits).toEqual([100, 200, 400, 800, 1000, 1000])
  expect(queue.failures('a')).toBe(6)
  queue.forget('a')
  expect(queue.addBackoff('a')).toBe(100)
})

test('a server that asks for more than the back-off gets it', () => {
  expect(setUp().queue.addBackoff('a', { atLeastMs: 5000 })).toBe(5000)
})

test('re-planning again and again leaves nothing behind', async () => {
  const { clock, queue } = setUp()
  for (let time = 0; time < 20_000; time++) {
    queue.addAfter('a', 3_600_000)
    queue.add('a')
    await take(queue)
  }
  queue.addAfter('a', 100)
  await clock.advance(100)
  expect(await take(queue)).toBe('a')
})

test('after the shutdown workers are sent home and nothing more is taken', async () => {
  const { clock, queue } = setUp()
  const waiting = queue.get(signal)
  queue.addAfter('later', 100)
  queue.shutdown()
  expect(await waiting).toBeUndefined()
  queue.add('a')
  expect(await queue.get(signal)).toBeUndefined()
  expect(clock.sleeping).toBe(0)
})

test('a worker that gives up does not take a key with it', async () => {
  const { queue } = setUp()
  const impatient = new AbortController()
  const waiting = queue.get(impatient.signal)
  impatient.abort(new Error('stop'))
  await expect(waiting).rejects.toThrow('stop')
  queue.add('a')
  expect(await take(queue)).toBe('a')
})

test('the time that a key waited for a worker is told', async () => {
  const clock = createFakeClock()
  const waits: number[] = []
  const queue = createQueue<string>({ clock, onPicked: (ms) => waits.push(ms) })
  queue.add('a')
  clock.freeze(250)
  await take(queue)
  expect(waits).toEqual([250])
})

describe('namespaces', () => {
  test('ten thousand keys of one do not hold up the key of another, by whatever way they came', async () => {
    const { clock, queue } = setUp()
    for (let index = 0; index < 10_000; index++) {
      const key = `flood/${index}`
      if (index % 3 === 0) queue.add(key)
      else if (index % 3 === 1) queue.addAfter(key, 50)
      else queue.addBackoff(key)
    }
    await clock.advance(100)
    expect(queue.stats().ready).toBe(10_000)
    queue.addAfter('calm/one', 10)
    await clock.advance(10)
    expect([await take(queue), await take(queue)]).toContain('calm/one')
  })

  test('one that pokes an object twenty times a second does not delay the others', async () => {
    const { clock, queue } = setUp()
    for (let index = 0; index < 5; index++) queue.add(`calm/${index}`, { priority: Priority.high })
    const order: (string | undefined)[] = []
    for (let time = 0; time < 10; time++) {
      queue.add('poked/one', { priority: Priority.high })
      const key = await queue.get(signal)
      order.push(key)
      // Poked while it is being processed too.
      queue.add('poked/one', { priority: Priority.high })
      await clock.advance(50)
      queue.done(key ?? '')
    }
    expect(order.filter((key) => key?.startsWith('calm/'))).toHaveLength(5)
    expect(order.slice(0, 9).filter((key) => key === 'poked/one').length).toBeLessThan(6)
  })

  test('can be told by something else than the key', async () => {
    const clock = createFakeClock()
    const queue = createQueue<string>({ clock, namespaceOf: (key) => (key.startsWith('flood') ? 'flood' : 'calm') })
    for (const key of ['flood-1', 'flood-2', 'calm-1']) queue.add(key)
    expect([await take(queue), await take(queue)]).toEqual(['flood-1', 'calm-1'])
  })

  test('one whose reconciles never end leaves workers for the others', async () => {
    const clock = createFakeClock()
    const queue = createQueue<string>({ clock, mostOfOneNamespace: 2 })
    for (let index = 0; index < 10; index++) queue.add(`stuck/${index}`)
    const workers = [1, 2, 3].map(() => queue.get(signal))
    expect(await Promise.all(workers.slice(0, 2))).toEqual(['stuck/0', 'stuck/1'])
    queue.add('calm/one')
    expect(await workers[2]).toBe('calm/one')
    // And what waits is given out as soon as one of them ends.
    const next = queue.get(signal)
    await settle()
    queue.done('stuck/1')
    expect(await next).toBe('stuck/2')
  })
})
