import { expect, test } from 'vitest'
import { createGathering } from './gather.ts'

const signal = new AbortController().signal
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

function asked(options: Partial<{ atMost: number; atOnce: number }> = {}) {
  const calls: { readonly keys: readonly string[]; readonly answer: PromiseWithResolvers<string> }[] = []
  const gather = createGathering<string, string>(
    (keys) => {
      const answer = Promise.withResolvers<string>()
      calls.push({ keys, answer })
      return answer.promise
    },
    { atMost: 10, atOnce: 1, ...options },
  )
  return { calls, gather, keys: () => calls.map((call) => call.keys.join('')) }
}

test('what is asked at the same time is asked together, and a key that two ask for once', async () => {
  const { calls, gather, keys } = asked()
  const answers = [gather(['a'], signal), gather(['b', 'a'], signal)]
  await turn()
  expect(keys()).toEqual(['ab'])
  calls[0]?.answer.resolve('seen')
  expect(await Promise.all(answers)).toEqual(['seen', 'seen'])
})

test('what is asked while a call runs gets an answer that is no older than its question', async () => {
  const { calls, gather, keys } = asked()
  const first = gather(['a'], signal)
  await turn()
  const later = [gather(['a'], signal), gather(['c'], signal)]
  await turn()
  expect(keys()).toEqual(['a'])
  calls[0]?.answer.resolve('old')
  expect(await first).toBe('old')
  await turn()
  expect(keys()).toEqual(['a', 'ac'])
  calls[1]?.answer.resolve('new')
  expect(await Promise.all(later)).toEqual(['new', 'new'])
})

test('a call has at most so many keys; one caller’s stay together', async () => {
  const { calls, gather, keys } = asked({ atMost: 2, atOnce: 2 })
  const answers = [gather(['a'], signal), gather(['b', 'c', 'd'], signal), gather(['e'], signal)]
  for (let count = 0; count < 3; count++) {
    await turn()
    calls[count]?.answer.resolve(`${count}`)
  }
  expect(await Promise.all(answers)).toEqual(['0', '1', '2'])
  expect(keys()).toEqual(['a', 'bcd', 'e'])
})

test('a failure is every caller’s, and ends nothing', async () => {
  const { calls, gather } = asked()
  const answers = Promise.allSettled([gather(['a'], signal), gather(['b'], signal)])
  await turn()
  calls[0]?.answer.reject(new Error('no'))
  expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const again = gather(['a'], signal)
  await turn()
  calls[1]?.answer.resolve('yes')
  expect(await again).toBe('yes')
})

test('a caller leaves by its own signal, and the others keep theirs', async () => {
  const { calls, gather } = asked()
  const leaving = new AbortController()
  const left = gather(['a'], leaving.signal)
  const stays = gather(['b'], signal)
  await turn()
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  calls[0]?.answer.resolve('seen')
  expect(await stays).toBe('seen')
})
