import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mutants } from './list.ts'

const repository = new URL('../..', import.meta.url)
const textOf = (file: string): string => readFileSync(new URL(file, repository), 'utf8')

// A mutant that can't be made shows nothing, and is found out only by whoever runs all of them.
test.each(mutants)('the mutant $name can be made: each text that it takes out stands once', ({ patches, tests }) => {
  for (const { file, from } of patches) expect(textOf(file).split(from).length - 1, `${from} in ${file}`).toBe(1)
  for (const file of tests) expect(textOf(file)).not.toBe('')
})

test('the mutants have names of their own', () => {
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
})
