import type { HttpAnswer } from './transport.ts'

/**
 * By how much the server's clock is ahead of this one, in ms, by the `Date` header of an answer (RFC 9110, 6.6.1): to a second, and to the time that the answer
 * took. Undefined for an answer without one, or of a cache (`Age`).
 */
export function clockAhead({ headers }: Pick<HttpAnswer, 'headers'>, asked: Date, answered: Date): number | undefined {
  const { date, age } = headers
  if (typeof date !== 'string' || (age !== undefined && age !== '0')) return undefined
  // The header leaves the milliseconds out: it is half a second later on the average.
  const at = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(date) ? Date.parse(date) + 500 : Number.NaN
  return Number.isNaN(at) ? undefined : Math.round(at - (asked.getTime() + answered.getTime()) / 2)
}
