import { expect, test } from 'vitest'
import { systemClock } from './clock.ts'

test('a sleep lasts as long as it says', async () => {
  const before = systemClock.monotonicMs()
  await systemClock.sleep(20, new AbortController().signal)
  // Timers may fire up to a millisecond early.
  expect(systemClock.monotonicMs() - before).toBeGreaterThanOrEqual(19)
})

test("a sleep that is cut short rejects at once with the signal's own reason", async () => {
  const stopping = new AbortController()
  const reason = new Error('enough')
  const sleeping = systemClock.sleep(60_000, stopping.signal)
  stopping.abort(reason)
  await expect(sleeping).rejects.toBe(reason)
  await expect(systemClock.sleep(60_000, stopping.signal)).rejects.toBe(reason)
})
