import { expect, test } from 'vitest'
import { DatabaseUnavailableError } from './database.ts'
import { gathered } from './gathered.ts'

const stall = (ms: number) => {
  const end = performance.now() + ms
  while (performance.now() < end);
}

test('an answer that has come while the process was busy counts, though its time is over', async () => {
  const ask = gathered(() => new Promise<string>((done) => setImmediate(() => done('here'))), { atMost: 9, atOnce: 1, patienceMs: 20 })
  // After this, timers have their turn before what has come.
  await new Promise((done) => setImmediate(done))
  const answer = ask('one')
  await Promise.resolve()
  stall(40)
  expect(await answer).toBe('here')
})

test('one that does not come is not waited for', async () => {
  const ask = gathered(() => new Promise<string>(() => undefined), { atMost: 9, atOnce: 1, patienceMs: 20 })
  await expect(ask('one')).rejects.toThrow(DatabaseUnavailableError)
})
