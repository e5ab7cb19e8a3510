import { expect, test } from 'vitest'
import { createPageSize } from './page-size.ts'

const options = { start: 100, most: 500, targetBytes: 2_000_000, maxBytes: 4_000_000 }

test('objects of the usual size are asked for in ever larger pages, up to the most', () => {
  const size = createPageSize(options)
  const limits = [1, 2, 3, 4].map(() => {
    const { limit } = size
    size.took(limit, limit * 3_000)
    return limit
  })
  expect(limits).toEqual([100, 200, 400, 500])
})

test.each([
  { bytes: 1_300_000, next: 1, because: 'after one of large objects' },
  { bytes: 400_000, next: 5, because: 'as many as fill the target' },
  { bytes: 5_000_000, next: 1, because: 'an object beyond the target comes alone' },
])('after a page whose objects have $bytes bytes the next asks for $next: $because', ({ bytes, next }) => {
  const size = createPageSize({ ...options, start: 10 })
  size.took(3, 3 * bytes)
  expect(size.limit).toBe(next)
})

test('pages grow again slowly when the objects get small', () => {
  const size = createPageSize(options)
  size.took(1, 1_900_000)
  expect(size.limit).toBe(1)
  size.took(1, 100)
  expect(size.limit).toBe(2)
  size.took(2, 200)
  expect(size.limit).toBe(4)
})

test('a page that is too large is asked for smaller, until it is one object and there is no smaller one', () => {
  const size = createPageSize({ ...options, start: 500 })
  const limits = [size.limit]
  while (size.shrink()) limits.push(size.limit)
  expect(limits).toEqual([500, 62, 7, 1])
  expect(size.shrink()).toBe(false)
})

test('a single object may be larger than a page of several', () => {
  const size = createPageSize({ ...options, start: 2 })
  expect(size.maxBytes).toBe(4_000_000)
  size.shrink()
  expect(size.maxBytes).toBeUndefined()
})

test('an empty page says nothing of the size', () => {
  const size = createPageSize(options)
  size.took(0, 90)
  expect(size.limit).toBe(100)
})
