import { expect, test } from 'vitest'
import { createPool } from './pool.ts'

/** Equal values that can be told apart. */
const box = (text: string) => ({ text })

test('what comes again is the one that came first', () => {
  const pool = createPool<{ text: string }>()
  const first = pool.share('a', box('a'))
  expect(pool.share('a', box('a'))).toBe(first)
  expect(pool.share('b', box('b'))).not.toBe(first)
})

test('what comes again and again stays, however much passes through', () => {
  const pool = createPool<{ text: string }>(10)
  const first = pool.share('always', box('always'))
  for (let passing = 0; passing < 1_000; passing++) {
    pool.share(`passing ${passing}`, box(''))
    expect(pool.share('always', box('always'))).toBe(first)
  }
})

test('what does not come again is forgotten, so that the pool never holds more than two generations', () => {
  const pool = createPool<{ text: string }>(10)
  const first = pool.share('once', box('once'))
  for (let passing = 0; passing < 1_000; passing++) pool.share(`passing ${passing}`, box(''))
  expect(pool.share('once', box('once'))).not.toBe(first)
  expect(pool.size).toBeLessThanOrEqual(20)
})
