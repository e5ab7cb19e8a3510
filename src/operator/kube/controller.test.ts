import { afterEach, expect, test } from 'vitest'
import { createFakeClock, settle } from '../../../test/integration/kube/fake-clock.ts'
import { type ControllerOptions, createController, type Outcome, type Result } from './controller.ts'
import { KubeError } from './errors.ts'
import { createQueue } from './queue.ts'

let stopping = new AbortController()
afterEach(() => {
  stopping.abort()
  stopping = new AbortController()
})

function setUp(reconcile: (key: string, signal: AbortSignal) => Promise<Result>, options: Partial<ControllerOptions<string>> = {}) {
  const clock = createFakeClock()
  const queue = createQueue<string>({ clock, baseDelayMs: 100, maxDelayMs: 1000, random: () => 0.5 })
  const outcomes: Outcome[] = []
  const visits: string[] = []
  const controller = createController({
    name: 'test',
    queue,
    workers: 2,
    clock,
    onResult: (_key, outcome) => outcomes.push(outcome),
    ...options,
    reconcile: (key, signal) => {
      visits.push(key)
      return reconcile(key, signal)
    },
  })
  return { clock, queue, outcomes, visits, running: controller.run(stopping.signal) }
}

const never = new Promise<never>(() => {})

test.each<{ result: Result; visitsAtOnce: number; visitsLater: number }>([
  { result: { kind: 'done' }, visitsAtOnce: 1, visitsLater: 1 },
  { result: { kind: 'again' }, visitsAtOnce: 2, visitsLater: 2 },
  { result: { kind: 'wait', afterMs: 1000 }, visitsAtOnce: 1, visitsLater: 2 },
])(
  'after $result the key is visited $visitsAtOnce times at once and $visitsLater after a second',
  async ({ result, visitsAtOnce, visitsLater }) => {
    let first = true
    const { clock, queue, visits } = setUp(async () => {
      if (!first) return { kind: 'done' }
      first = false
      return result
    })
    queue.add('a')
    await settle()
    expect(visits).toHaveLength(visitsAtOnce)
    await clock.advance(1000)
    expect(visits).toHaveLength(visitsLater)
  },
)

test('an error backs off, further each time, and success forgets it', async () => {
  let failuresLeft = 2
  const { clock, queue, visits, outcomes } = setUp(async () => {
    if (failuresLeft-- > 0) throw new Error('no')
    return { kind: 'done' }
  })
  queue.add('a')
  await clock.advance(99)
  expect(visits).toHaveLength(1)
  await clock.advance(1)
  expect(visits).toHaveLength(2)
  await clock.advance(199)
  expect(visits).toHaveLength(2)
  await clock.advance(1)
  expect(outcomes).toEqual(['error', 'error', 'done'])
  expect(queue.failures('a')).toBe(0)
})

test('a throw outside of the promise is contained as well', async () => {
  const { clock, queue, outcomes } = setUp(() => {
    throw new TypeError('a bug')
  })
  queue.add('a')
  await clock.advance(0)
  expect(outcomes).toEqual(['error'])
})

test('the API server is not asked again before it wants to be', async () => {
  const { clock, queue, visits } = setUp(async () => {
    throw new KubeError(429, 'TooManyRequests', 'slow down', 5000)
  })
  queue.add('a')
  await clock.advance(4999)
  expect(visits).toHaveLength(1)
  await clock.advance(1)
  expect(visits).toHaveLength(2)
})

test('as many keys as there are workers run at a time', async () => {
  const { queue, visits } = setUp(() => never, { graceMs: 40 })
  for (const key of ['a', 'b', 'c']) queue.add(key)
  await settle()
  expect(visits).toEqual(['a', 'b'])
})

test('a reconcile that takes too long is aborted and backed off from', async () => {
  const { clock, queue, outcomes } = setUp(
    (_key, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    {
      timeoutMs: 1000,
    },
  )
  queue.add('a')
  await clock.advance(1300)
  expect(outcomes).toEqual(['timeout'])
  expect(queue.failures('a')).toBe(1)
})

test('one that does not heed its signal costs neither its worker nor lets its key be taken twice', async () => {
  let end: ((result: Result) => void) | undefined
  const { clock, queue, visits } = setUp(
    (key) =>
      key === 'stuck'
        ? new Promise((resolve) => {
            end = resolve
          })
        : Promise.resolve({ kind: 'done' }),
    { workers: 1, timeoutMs: 1000, graceMs: 1000 },
  )
  queue.add('stuck')
  await settle()
  queue.add('other')
  queue.add('stuck')
  await clock.advance(3000)
  expect(visits).toEqual(['stuck', 'other'])
  end?.({ kind: 'done' })
  await clock.advance(0)
  expect(visits).toEqual(['stuck', 'other', 'stuck'])
})

test('stopping aborts what runs, waits for it, and leaves nothing queued or sleeping', async () => {
  const { clock, queue, outcomes, running } = setUp(
    (_key, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  )
  queue.add('a')
  await settle()
  stopping.abort(new Error('the end'))
  await running
  expect(outcomes).toEqual(['aborted'])
  expect(queue.stats()).toEqual({ ready: 0, delayed: 0, processing: 0, dirty: 0 })
  expect(clock.sleeping).toBe(0)
})

test('an error that says why it is tried again is a line at info, without its stack; any other is a failure', async () => {
  const lines: { readonly level: string; readonly fields: object; readonly message: string }[] = []
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message })
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  const { queue } = setUp(
    async (key) => {
      throw new Error(key)
    },
    {
      log,
      saysOf: (error) =>
        (error as Error).message === 'waits' ? { reason: 'ServiceUnavailable', message: 'The API does not answer.' } : undefined,
    },
  )
  queue.add('waits')
  queue.add('breaks')
  await settle()
  const told = lines.filter(({ level }) => level !== 'debug')
  expect(told).toMatchObject([
    { level: 'info', fields: { key: 'waits', reason: 'ServiceUnavailable' }, message: 'tried again: The API does not answer.' },
    { level: 'warn', fields: { key: 'breaks', err: new Error('breaks') }, message: 'the reconcile failed' },
  ])
  expect(told[0]?.fields).not.toHaveProperty('err')
})
