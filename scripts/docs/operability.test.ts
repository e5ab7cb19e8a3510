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
    // As it stands in the source: between quotes, or the beginning of a text that is put together.
    expect(
      [`'${title}`, `"${title}`, `\`${title}`].some((quoted) => source.includes(quoted)),
      `${file} › ${title}`,
    ).toBe(true)
  })
})
