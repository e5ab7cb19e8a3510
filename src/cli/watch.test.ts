import { expect, test, vi } from 'vitest'
import { InspectError } from '../inspect/error.ts'
import { look } from './watch.ts'

const never = new AbortController().signal

test('one look that is not a watch is the only one, and its error is its own', async () => {
  const looks: boolean[] = []
  await look({ watch: false, signal: never }, async (isFirst) => void looks.push(isFirst))
  expect(looks).toEqual([true])
  const away = new InspectError('the API server is away', { passes: true })
  await expect(look({ watch: false, signal: never }, () => Promise.reject(away))).rejects.toBe(away)
})

test.each([
  { what: 'the first look', looks: 0, passes: true },
  { what: 'what does not pass by itself', looks: 1, passes: false },
])('a watch ends with $what that fails', async ({ looks, passes }) => {
  let made = 0
  const wrong = new InspectError('wrong', { passes })
  const ended = look({ watch: true, signal: never, everyMs: 1 }, async () => {
    if (made++ >= looks) throw wrong
  })
  await expect(ended).rejects.toBe(wrong)
})

test('a watch goes on while the API server is away, says so once, and ends in silence when it is told to', async () => {
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const stop = new AbortController()
  const looks: boolean[] = []
  let made = 0
  await look({ watch: true, signal: stop.signal, everyMs: 1 }, async (isFirst) => {
    made += 1
    looks.push(isFirst)
    if (made === 2 || made === 3) throw new InspectError('the API server is away', { passes: true })
    if (made === 5) {
      stop.abort()
      throw new Error('aborted in the middle')
    }
  })
  expect(looks).toEqual([true, false, false, false, false])
  expect(said.mock.calls).toEqual([['the API server is away. It is asked again.\n']])
  said.mockRestore()
})
