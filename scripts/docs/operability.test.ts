import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const repository = join(import.meta.dirname, '../..')
const page = readFileSync(join(repository, 'docs/explanation/operability.md'), 'utf8')
const named = [...page.matchAll(/`([^`]+\.(?:test|image)\.ts)` › (.*?)(?=<br>|\s*\|$)/gm)].map(([, file = '', title = '']) => ({
  file,
  title,
}))

test('every row of the page names a test', () => {
  const rows = page.split('\n').filter((line) => line.startsWith('|') && !/^\| ?(---|(was|expected)\b)/.test(line))
  expect(rows.length).toBeGreaterThan(30)
  for (const row of rows) expect(row).toMatch(/`[^`]+\.(?:test|image)\.ts` › /)
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
