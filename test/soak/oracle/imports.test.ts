import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** The oracle shares no code with what it judges: its files import one another, and nothing else. Its tests compare it with others' code. */
const folder = import.meta.dirname
const files = readdirSync(folder).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))

test.each(files)('%s imports nothing but the oracle', (name) => {
  const source = readFileSync(`${folder}/${name}`, 'utf8')
  const imported = [...source.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map(([, from]) => from)
  for (const from of imported) expect(from).toMatch(/^\.\/[a-z-]+\.ts$/)
})

test('all of its files are looked at', () => expect(files.length).toBeGreaterThan(9))
