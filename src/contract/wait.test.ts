import { expect, test } from 'vitest'
import { z } from 'zod'
import { preferredWaitMs, waitQuery } from './wait.ts'

test.each([
  { header: 'wait=30', ms: 30_000 },
  { header: 'respond-async, wait=10', ms: 10_000 },
  { header: ['return=minimal', 'Wait = "5"; x=y'], ms: 5_000 },
  { header: 'wait=10, wait=20', ms: 10_000 },
  { header: 'wait=0', ms: 0 },
  { header: 'wait=86400', ms: 60_000 },
  { header: 'wait', ms: undefined },
  { header: 'wait=soon', ms: undefined },
  { header: 'wait=-1', ms: undefined },
  { header: 'await=30', ms: undefined },
  { header: undefined, ms: undefined },
])('Prefer: $header asks to wait $ms ms', ({ header, ms }) => {
  expect(preferredWaitMs(header)).toBe(ms)
})

test.each([
  { wait: '30s', ms: 30_000 },
  { wait: '0s', ms: 0 },
  { wait: '3600s', ms: 60_000 },
])('?wait=$wait is $ms ms, a minute at most', ({ wait, ms }) => {
  expect(z.decode(waitQuery, { wait })).toEqual({ wait: ms })
})

test('other parts of a query are none of its business', () => {
  expect(z.decode(waitQuery, { other: 'x' } as object)).toEqual({})
})
