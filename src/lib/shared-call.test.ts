import { expect, test } from 'vitest'
import { createTestClock } from '../operator/testing/test-clock.ts'
import { shareCall, shareNextCall, shareNextCallBy } from './shared-call.ts'

const signal = new AbortController().signal
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

function counted() {
  const calls: PromiseWithResolvers<number>[] = []
  const call = () => {
    const one = Promise.withResolvers<number>()
    calls.push(one)
    return one.promise
  }
  return { calls, call }
}

test('a shared call is one for all who come while it runs', async () => {
  const { calls, call } = counted()
  const shared = shareCall(call)
  const answers = [shared(signal), shared(signal)]
  calls[0]?.resolve(1)
  expect(await Promise.all(answers)).toEqual([1, 1])
  expect(calls).toHaveLength(1)
})

test('a shared next call never answers with what began before the question: those who come while one runs share the next', async () => {
  const { calls, call } = counted()
  const shared = shareNextCall(call)
  const first = shared(signal)
  const later = [shared(signal), shared(signal)]
  expect(calls).toHaveLength(1)
  calls[0]?.resolve(1)
  expect(await first).toBe(1)
  await turn()
  expect(calls).toHaveLength(2)
  calls[1]?.resolve(2)
  expect(await Promise.all(later)).toEqual([2, 2])
})

test('a shared next call begins though the one before it failed', async () => {
  const { calls, call } = counted()
  const shared = shareNextCall(call)
  const first = shared(signal)
  const later = shared(signal)
  calls[0]?.reject(new Error('no'))
  await expect(first).rejects.toThrow('no')
  await turn()
  calls[1]?.resolve(2)
  expect(await later).toBe(2)
  const again = shared(signal)
  calls[2]?.resolve(3)
  expect(await again).toBe(3)
})

test('a shared next call by key is one for each key, and what nobody waits for begins anew', async () => {
  const asked: string[] = []
  const shared = shareNextCallBy(async (key: string) => {
    asked.push(key)
    await turn()
    return key
  })
  expect(await Promise.all([shared('a', signal), shared('a', signal), shared('b', signal), shared('a', signal)])).toEqual([
    'a',
    'a',
    'b',
    'a',
  ])
  // The first began before the others had asked.
  expect(asked.toSorted()).toEqual(['a', 'a', 'b'])
  expect(await shared('b', signal)).toBe('b')
  expect(asked).toHaveLength(4)
})

test('a pace lets a call begin so long after the one before it, and who asks meanwhile shares it', async () => {
  const clock = createTestClock()
  const begun: number[] = []
  const shared = shareNextCallBy(
    async (key: string) => {
      begun.push(clock.monotonicMs())
      await turn()
      return key
    },
    { clock, everyMs: 500 },
  )
  await shared('a', signal)
  clock.advance(200)
  await Promise.all([shared('a', signal), shared('a', signal), shared('b', signal), shared('a', signal)])
  expect(begun).toEqual([0, 200, 500])
  clock.advance(500)
  await shared('a', signal)
  expect(begun).toEqual([0, 200, 500, 1000])
})

test('with a pace, a call that fails leaves the next one to begin', async () => {
  const clock = createTestClock()
  let fails = true
  const shared = shareNextCall(
    async () => {
      if (fails) throw new Error('no')
      return 1
    },
    { clock, everyMs: 500 },
  )
  await expect(shared(signal)).rejects.toThrow('no')
  await expect(shared(signal)).rejects.toThrow('no')
  fails = false
  expect(await shared(signal)).toBe(1)
  expect(clock.monotonicMs()).toBe(1000)
})
