import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { repository } from '../../docs/pages.ts'
import { alerts } from '../alerts.ts'
import { headings, runbookPages } from './pages.ts'
import { runbooks } from './runbooks.ts'

const names = alerts.map(({ name }) => name)

test('every alert has a runbook, every runbook an alert, and no page is left of one that is gone', () => {
  expect(Object.keys(runbooks).toSorted()).toEqual(names.toSorted())
  expect(globSync('docs/runbooks/*.md', { cwd: repository }).toSorted()).toEqual(names.map((name) => `docs/runbooks/${name}.md`).toSorted())
})

test.each([...runbookPages()])('%s has each part, and none is empty', (_path, text) => {
  const parts = text.split(/^## /m).slice(1)
  expect(parts.map((part) => part.split('\n')[0])).toEqual(headings)
  for (const part of parts) expect(part.split('\n').slice(1).join('').trim().length, part).toBeGreaterThan(10)
})

test.each(Object.entries(runbooks))('%s says whether money is at risk, and shows where to look', (_name, { money, look, mend, never }) => {
  expect(money).toMatch(/^(No\.|Not |\*\*Yes\.\*\*|\*\*Possibly)/)
  expect(look.some(({ run, query }) => run !== undefined || query !== undefined)).toBe(true)
  for (const { run, query } of look) expect(run ?? query).toBeDefined()
  expect(mend.length).toBeGreaterThan(0)
  expect(never.length).toBeGreaterThan(0)
})
