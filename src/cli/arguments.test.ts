import { expect, test } from 'vitest'
import { dnsName, duration, expiry, lifetime, moment } from './arguments.ts'

test.each([
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2026-01-31T12:00Z', '2026-01-31T12:00:00.000Z'],
  ['2026-01-31T12:00:00.5+02:00', '2026-01-31T10:00:00.500Z'],
  ['2026-01-31 12:00:00z', '2026-01-31T12:00:00.000Z'],
  ['2028-02-29', '2028-02-29T00:00:00.000Z'],
])('%s is %s, on every machine', (text, is) => {
  expect(moment(text).toISOString()).toBe(is)
  expect(expiry(text).toISOString()).toBe(is)
})

// A time without its zone is that of the machine: an audit from it on would begin hours too early or too late.
test.each(['2026-01-31T12:00:00', '2026-02-30', '2026-13-01', '2026-01-31T25:00Z', '2026-01-31 foo', '1769860800', 'yesterday', ''])(
  '%j is none',
  (text) => {
    expect(() => moment(text)).toThrow(/write a date such as/)
    expect(() => expiry(text)).toThrow(/write a date such as/)
  },
)

test.each(['', '..', 'Team-A', 'a/b', '=team-a'])('%j is no namespace', (text) => {
  expect(() => dnsName(text)).toThrow(/write a name of Kubernetes/)
})

test.each([
  ['0s', 0],
  ['500ms', 500],
  ['1.5s', 1_500],
  ['2m', 120_000],
  ['8760h', 31_536_000_000],
])('%s are %i ms', (text, ms) => {
  expect(duration(text)).toBe(ms)
})

test.each(['', '15', 's', '-1s', '+1s', '1e3s', '.5s', '1 s', '1S', '1d', '1h30m', '0x1s'])('%j is no duration', (text) => {
  expect(() => duration(text)).toThrow(/write a duration such as/)
  expect(() => lifetime(text)).toThrow(/write a duration such as/)
})

test('what is to count for a while counts for a second at least, and for a year at most', () => {
  expect([lifetime('1s'), lifetime('4h'), lifetime('8760h')]).toEqual([1_000, 14_400_000, 31_536_000_000])
  for (const text of ['0s', '0h', '999ms', '8760.1h', '9999999999h', `${'9'.repeat(400)}h`])
    expect(() => lifetime(text)).toThrow(/^write a duration from 1s to 8760h/)
})
