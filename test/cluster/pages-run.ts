import { relative } from 'node:path'
import { afterAll } from 'vitest'
import { documentedBlocks, whereOf } from '../../scripts/docs/commands.ts'
import { repository } from '../../scripts/docs/pages.ts'

/** The blocks of commands that the tests of this file have run. */
const ran = new Set<string>()
const idOf = (page: string, heading: string, nth: number | undefined): string => `${page}, "${heading}" (${nth})`

/** A block of a page's commands was run to its end, as the page says it ends. */
export const hasRun = (page: string, heading: string, nth: number | undefined): void => void ran.add(idOf(page, heading, nth))

interface Task {
  readonly type: string
  readonly result?: { readonly state: string }
  readonly tasks?: readonly Task[]
}
const hasFailed = ({ result, tasks = [] }: Task): boolean => result?.state === 'fail' || tasks.some(hasFailed)
/** Some tests of the file were asked for by their names. vitest tells that nowhere else. */
const isFiltered = (): boolean =>
  (globalThis as { __vitest_worker__?: { config?: { testNamePattern?: unknown } } }).__vitest_worker__?.config?.testNamePattern !==
  undefined

// Of whichever test file has loaded this, after all of its tests.
// biome-ignore lint/correctness/noEmptyPattern: vitest wants its fixtures destructured, and none is wanted here
afterAll(({}, suite) => {
  if (hasFailed(suite) || isFiltered()) return
  const file = relative(repository, suite.file.filepath)
  const wrong: string[] = []
  for (const { page, heading, nth } of documentedBlocks()) {
    const where = whereOf(page, heading, nth)
    const id = idOf(page, heading, nth)
    if (where === file && !ran.has(id)) wrong.push(`${id} is to be run here, and was not`)
    if (ran.has(id) && typeof where !== 'string') wrong.push(`${id} was run here, and is listed as what can't be`)
  }
  if (wrong.length > 0) throw new Error(`scripts/docs/commands.ts says what is not so:\n${wrong.join('\n')}`)
})
