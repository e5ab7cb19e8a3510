import { expect, test } from 'vitest'
import { clockAhead } from './server-clock.ts'

const at = (text: string) => new Date(`2026-11-28T${text}Z`)
const header = 'Sat, 28 Nov 2026 12:00:00 GMT'

test.each<{
  what: string
  headers: Record<string, string | string[] | undefined>
  asked: string
  answered: string
  ahead: number | undefined
}>([
  { what: 'the same time', headers: { date: header }, asked: '12:00:00.000', answered: '12:00:01.000', ahead: 0 },
  { what: 'six minutes behind', headers: { date: header }, asked: '12:06:00.400', answered: '12:06:00.600', ahead: -360_000 },
  { what: 'six minutes ahead', headers: { date: header }, asked: '11:54:00.400', answered: '11:54:00.600', ahead: 360_000 },
  { what: 'a slow answer', headers: { date: header }, asked: '11:59:50.500', answered: '12:00:10.500', ahead: 0 },
  { what: 'no Date', headers: {}, asked: '12:00:00.000', answered: '12:00:00.000', ahead: undefined },
  { what: 'two Dates', headers: { date: [header, header] }, asked: '12:00:00.000', answered: '12:00:00.000', ahead: undefined },
  { what: 'another form', headers: { date: '2026-11-28T12:00:00Z' }, asked: '12:00:00.000', answered: '12:00:00.000', ahead: undefined },
  {
    what: 'a day that is none',
    headers: { date: 'Sat, 99 Nov 2026 12:00:00 GMT' },
    asked: '12:00:00.000',
    answered: '12:00:00.000',
    ahead: undefined,
  },
  {
    what: 'the answer of a cache',
    headers: { date: header, age: '400' },
    asked: '12:06:40.000',
    answered: '12:06:40.000',
    ahead: undefined,
  },
])('$what: $ahead ms ahead', ({ headers, asked, answered, ahead }) => {
  expect(clockAhead({ headers }, at(asked), at(answered))).toBe(ahead)
})
