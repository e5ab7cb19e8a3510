import { expect, test } from 'vitest'
import { parseRetryAfter } from './retry-after.ts'

const now = new Date('1994-11-06T08:49:30Z')

test.each([
  { header: undefined, expected: undefined },
  { header: '', expected: undefined },
  { header: '0', expected: 0 },
  { header: '120', expected: 120_000 },
  { header: ' 5 ', expected: 5000 },
  { header: ['5', '6'], expected: 5000 },
  { header: '999999999999', expected: 3_600_000 },
  { header: '9999999999999999', expected: undefined },
  { header: '-1', expected: undefined },
  { header: '1.5', expected: undefined },
  { header: '1e9', expected: undefined },
  { header: 'soon', expected: undefined },
  { header: 'Sun, 06 Nov 1994 08:49:37 GMT', expected: 7000 },
  { header: 'Sunday, 06-Nov-94 08:49:37 GMT', expected: 7000 },
  { header: 'Sun Nov  6 08:49:37 1994', expected: 7000 },
  { header: 'Sun, 06 Nov 1994 08:49:00 GMT', expected: 0 },
  { header: 'Sun, 06 Nov 2094 08:49:00 GMT', expected: 3_600_000 },
  { header: '1994-11-06T08:49:37Z', expected: undefined },
])('Retry-After $header is $expected ms', ({ header, expected }) => {
  expect(parseRetryAfter(header, now)).toBe(expected)
})
