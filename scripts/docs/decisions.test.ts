import { globSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { repository, titleOf } from './pages.ts'

const files = globSync('docs/adr/[0-9]*.md', { cwd: repository }).toSorted()

test('every decision has a number of its own, the same in its title as in its name', () => {
  const numbers = files.map((file) => Number(basename(file).slice(0, 4)))
  expect(files.map((file) => Number.parseInt(titleOf(file), 10))).toEqual(numbers)
  expect(new Set(numbers).size).toBe(files.length)
})
