import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Clock } from '../../../src/lib/clock.ts'
import { createRateLimiter } from '../../../src/service/rate-limits.ts'
import { openStore, type Store } from '../../../src/service/store/database.ts'
import { memoryDatabase } from '../../stack/memory-database.ts'

let store: Store
beforeAll(async () => {
  store = await openStore(await memoryDatabase())
})
afterAll(() => store?.close())

test('a limit that was lowered below what was taken refuses, and asks once', async () => {
  let asked = 0
  const clock: Clock = { now: () => new Date(), monotonicMs: () => 0, sleep: async () => undefined }
  const generous = createRateLimiter({ store, clock, max: 100, windowMs: 600_000 })
  for (let count = 0; count < 50; count++) expect((await generous.spend('k')).allowed).toBe(true)
  const counting = {
    ...store,
    get db() {
      asked++
      return store.db
    },
  }
  const strict = createRateLimiter({ store: counting, clock, max: 10, windowMs: 600_000 })
  for (let count = 0; count < 5; count++) expect(await strict.spend('k')).toMatchObject({ allowed: false, remaining: 0, limit: 10 })
  expect(asked).toBeLessThan(3)
})

test('a window from before the clock of the database went back is over', async () => {
  const clock: Clock = { now: () => new Date(), monotonicMs: () => 0, sleep: async () => undefined }
  const limiter = () => createRateLimiter({ store, clock, max: 1, windowMs: 60_000 })
  expect((await limiter().spend('back')).allowed).toBe(true)
  expect((await limiter().spend('back')).allowed).toBe(false)
  await store.db
    .updateTable('rate_limits')
    .set({ window_start: new Date(Date.now() + 3_600_000) })
    .where('subject', '=', 'back')
    .execute()
  expect(await limiter().spend('back')).toMatchObject({ allowed: true, resetMs: expect.closeTo(60_000, -4) })
})
