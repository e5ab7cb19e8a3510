import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { claims, inTime, progressInTime } from './in-time.ts'

describe('what a refusal says of what was done', () => {
  test.each<{ before: string; after: string }>([
    { before: 'It is another key. Nothing was signed. Mount it.', after: 'It is another key. Nothing more is signed. Mount it.' },
    { before: 'The contract would refuse it; nothing was signed.', after: 'The contract would refuse it; nothing more is signed.' },
    { before: 'It earns nothing. Nothing was signed or paid.', after: 'It earns nothing. Nothing more is signed or paid.' },
    { before: 'Somebody changed it. Nothing was sent.', after: 'Somebody changed it. Nothing more is sent.' },
    { before: 'Nothing was paid. Nothing was signed.', after: 'Nothing more is paid. Nothing more is signed.' },
    { before: 'No transaction was signed.', after: 'No other transaction is signed.' },
    { before: 'Nothing was bought again, and nothing was paid again.', after: 'Nothing was bought again, and nothing was paid again.' },
    { before: 'Nothing is signed with it.', after: 'Nothing is signed with it.' },
  ])('$before: once something was signed, $after', ({ before, after }) => {
    expect(inTime(before, false)).toBe(before)
    expect(inTime(before, true)).toBe(after)
  })

  test('is put right in what a visit halted with, and nowhere else', () => {
    const halted = {
      at: 'halted',
      step: 'S',
      verdict: { kind: 'stall', reason: 'KeyMissing', message: 'Nothing was signed.', recheck: true },
    } as const
    expect(progressInTime(halted, true)).toMatchObject({ step: 'S', verdict: { message: 'Nothing more is signed.', recheck: true } })
    expect(progressInTime(halted, false)).toBe(halted)
    expect(progressInTime({ at: 'settled' }, true)).toEqual({ at: 'settled' })
  })

  /** A phrase that is not in the table would be said at the wrong moment; what "ever" was done is told from the log. */
  test('has no phrase that the table does not have', () => {
    const source = join(import.meta.dirname, '..')
    const texts = readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !/testing|explorer|in-time/.test(file))
      .map((file) => readFileSync(join(source, file), 'utf8').replace(/^\s*(\/\/|\*|\/\*).*$/gm, ''))
    const said = texts.flatMap((text) => text.match(/\b[Nn](othing|o transaction) (was|has been|were) [a-z]+( or [a-z]+)?( again)?/g) ?? [])
    expect(said.length).toBeGreaterThan(20)
    const known = new Set(claims.map(([first]) => first))
    const strange = said.filter((phrase) => !known.has(phrase.slice(1)) && !/ (again|ever)$/.test(phrase))
    expect(strange).toEqual([])
  })
})
