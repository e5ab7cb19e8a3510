import { expect, test } from 'vitest'
import { dnsName, expiry, moment } from './arguments.ts'

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
