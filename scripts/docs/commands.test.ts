import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { blocksOf } from './blocks.ts'
import { documentedBlocks, tableEntries, whereOf } from './commands.ts'
import { repository, sitePages } from './pages.ts'

const read = (file: string): string => readFileSync(join(repository, file), 'utf8')

test('each block of commands of each page is run as it stands by a test, or listed with the reason why none can', () => {
  const unsaid = documentedBlocks().filter(({ page, heading, nth }) => whereOf(page, heading, nth) === undefined)
  expect(unsaid.map(({ page, heading, nth, text }) => `${page}, "${heading}" (${nth}): ${text}`)).toEqual([])
})

test('the table names pages, headings and blocks that are there, and as many', () => {
  const all = documentedBlocks()
  for (const { page, heading, where } of tableEntries()) {
    const blocks = all.filter((block) => block.page === page && (heading === undefined || block.heading === heading))
    expect(blocks.length, `${page}, ${heading}`).toBeGreaterThan(0)
    if (where.length > 1) expect(where.length, `${page}, ${heading}`).toBe(blocks.length)
  }
})

test('a test file that the table names is there and runs the commands of pages; at its end it is held to that', () => {
  const files = new Set(
    documentedBlocks().flatMap(({ page, heading, nth }) => {
      const where = whereOf(page, heading, nth)
      return typeof where === 'string' ? [where] : []
    }),
  )
  expect(files.size).toBeGreaterThan(10)
  for (const file of files) {
    expect(existsSync(join(repository, file)), file).toBe(true)
    expect(read(file).includes("/cluster/page-commands.ts'"), file).toBe(true)
  }
  expect(read('test/cluster/page-commands.ts').includes("'./pages-run.ts'")).toBe(true)
})

test('no page hides commands from this: every fence says what it holds, in a way that is read, and each page is one of the site', () => {
  const pages = globSync('{*.md,{charts,docs,examples,test}/**/*.md}', { cwd: repository, exclude: (name) => name === 'node_modules' })
  const known = ['sh', 'console', 'yaml', 'json', 'text', 'promql', 'hcl', 'ts', '']
  for (const page of pages) {
    const fences = read(page)
      .split('\n')
      .filter((line) => /^[\s>]*(```|~~~)/.test(line))
    const blocks = blocksOf(read(page))
    expect(fences.length, `${page} has fences that are not read`).toBe(2 * blocks.length)
    for (const { language } of blocks) expect(known, page).toContain(language)
    if (blocks.some(({ nth }) => nth !== undefined)) expect(sitePages).toContain(page)
  }
})

test('a block is told from others under its heading, and one that is indented loses that', () => {
  const page = [
    '# One',
    '```sh',
    'a',
    '```',
    '```yaml',
    'b: 1',
    '```',
    '1. In a list',
    '',
    '   ```sh',
    '   c',
    '     d',
    '   ```',
    '## Two',
  ]
  expect(blocksOf([...page, '```console', '$ e', 'TITLE', '```'].join('\n'))).toEqual([
    { heading: 'One', language: 'sh', text: 'a', nth: 1 },
    { heading: 'One', language: 'yaml', text: 'b: 1', nth: undefined },
    { heading: 'One', language: 'sh', text: 'c\n  d', nth: 2 },
    { heading: 'Two', language: 'console', text: '$ e\nTITLE', nth: 1 },
  ])
})
