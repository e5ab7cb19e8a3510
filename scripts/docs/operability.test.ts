import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const repository = join(import.meta.dirname, '../..')
/** Pages whose tables name the tests that show what they say, and how many rows they have at least. */
const pages = [
  { page: 'docs/explanation/operability.md', rows: 30 },
  { page: 'docs/explanation/security.md', rows: 60 },
]
const name = /`([^`]+\.(?:test|image|soak)\.ts)` › (.*?)(?=<br>|\s*\|$)/gm

/**
 * Whether a test is there: a title, or a `describe › title`, each as it stands in the source, between quotes or the beginning of a text that is put together. What
 * begins with a placeholder would fit many: it is whole, and what has no word of its own is named with its describe.
 */
function stands(source: string, named: string): boolean {
  const parts = named.split(' › ')
  const title = parts.at(-1) ?? ''
  const isVague = /^[%$]/.test(title)
  if (isVague && parts.length === 1 && !/\p{L}/u.test(title.replace(/%\w|\$\{?[\w.]+\}?/g, ''))) return false
  let at = 0
  for (const part of parts) {
    const end = (quote: string): string => (isVague && part === title ? quote : '')
    const found = ["'", '"', '`'].map((quote) => source.indexOf(`${quote}${part}${end(quote)}`, at)).filter((place) => place >= 0)
    if (found.length === 0) return false
    at = Math.min(...found) + 1
  }
  return true
}

test.each([
  ['pays once', true],
  ['pays', true],
  ['pays twice', false],
  ['a stake › pays once', true],
  ['pays once › a stake', false],
  ['%s: stops', true],
  ['%s', false],
  ['$key', false],
  ['a stake › %s', true],
  ['an exit › %s', false],
  ['%s: st', false],
])('of "%s" a source says whether it is there: %s', (named, is) => {
  const source = `describe('a stake', () => { test('pays once'); test.each(all)('%s'); test.each(all)('%s: stops'); test.each(all)('$key') })`
  expect(stands(source, named)).toBe(is)
})

describe.each(pages)('$page', ({ page, rows: atLeast }) => {
  const text = readFileSync(join(repository, page), 'utf8')
  const named = [...text.matchAll(name)].map(([, file = '', title = '']) => ({ file, title }))

  test('every row names a test', () => {
    const rows = text.split('\n').filter((line) => line.startsWith('|') && !/^\| ?(---|(was|expected|(they|it) may) +\|)/.test(line))
    expect(rows.length).toBeGreaterThan(atLeast)
    for (const row of rows) expect(row).toMatch(/`[^`]+\.(?:test|image|soak)\.ts` › /)
  })

  test.each(named)('$file has a test "$title"', ({ file, title }) => {
    expect(existsSync(join(repository, file)), file).toBe(true)
    const source = readFileSync(join(repository, file), 'utf8')
    expect(stands(source, title), `${file} › ${title}`).toBe(true)
  })
})
