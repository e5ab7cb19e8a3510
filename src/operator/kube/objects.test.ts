import { expect, test } from 'vitest'
import { cacheKey, compareResourceVersions, refOf } from './objects.ts'

test.each([
  { a: '9', b: '10', order: -1, because: 'they are numbers, not texts' },
  { a: '10', b: '10', order: 0, because: 'they are the same' },
  { a: '18446744073709551615', b: '9007199254740993', order: 1, because: 'they may be larger than a double holds' },
  { a: '9007199254740993', b: '9007199254740992', order: 1, because: 'they may differ by less than a double tells' },
  { a: '', b: '0', order: -1, because: 'nothing seen yet is before all' },
])('resource version "$a" against "$b" is $order: $because', ({ a, b, order }) => {
  expect(Math.sign(compareResourceVersions(a, b))).toBe(order)
  expect(Math.sign(compareResourceVersions(b, a))).toBe(-order || 0)
})

test.each([
  { ref: { namespace: 'team', name: 'one' }, key: 'team/one' },
  { ref: { name: 'one' }, key: 'one' },
])('the key of $ref is $key, and back', ({ ref, key }) => {
  expect(cacheKey(ref)).toBe(key)
  expect(refOf(key)).toEqual(ref)
})
