import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Mutant, mutants } from './mutants/list.ts'

/**
 * Takes rules out of the product, one at a time, in a copy of its source, and runs the tests that should see it. A mutant whose tests all pass
 * survives: a rule that no test holds.
 *
 *   npm run test:mutants [-- NAME…]
 */
const repository = new URL('..', import.meta.url).pathname
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !mutants.some((one) => one.name === name))
if (unknown.length > 0) {
  process.stderr.write(`There is no mutant ${unknown.join(', ')}. There are: ${mutants.map(({ name }) => name).join(', ')}.\n`)
  process.exit(2)
}
const chosen = mutants.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
const dir = mkdtempSync(join(tmpdir(), 'staking-mutants-'))
let survivors = 0
try {
  for (const name of ['package.json', 'tsconfig.json', 'vitest.config.ts', 'src'])
    cpSync(join(repository, name), join(dir, name), { recursive: true })
  symlinkSync(join(repository, 'node_modules'), join(dir, 'node_modules'))
  for (const mutant of chosen) {
    const startedAt = Date.now()
    const { killed, says } = trial(mutant)
    if (!killed) survivors++
    const seconds = Math.round((Date.now() - startedAt) / 1000)
    process.stdout.write(`${killed ? 'killed  ' : 'SURVIVED'} ${mutant.name} (${seconds} s): without "${mutant.without}", ${says}\n`)
  }
} finally {
  rmSync(dir, { recursive: true, force: true })
}
process.stdout.write(`${chosen.length - survivors} of ${chosen.length} mutants killed\n`)
process.exit(survivors === 0 ? 0 : 1)

function trial(mutant: Mutant): { readonly killed: boolean; readonly says: string } {
  const before = new Map<string, string>()
  try {
    for (const { file, from, to } of mutant.patches) {
      const text = readFileSync(join(dir, file), 'utf8')
      if (!before.has(file)) before.set(file, text)
      const times = text.split(from).length - 1
      if (times !== 1) return { killed: false, says: `nothing was tried: its text stands ${times} times in ${file}` }
      writeFileSync(
        join(dir, file),
        text.replace(from, () => to),
      )
    }
    const report = join(dir, 'report.json')
    rmSync(report, { force: true })
    const filter = mutant.titles === undefined ? [] : ['-t', mutant.titles]
    const vitest = join(repository, 'node_modules/vitest/vitest.mjs')
    const reporters = ['--reporter=json', `--outputFile=${report}`]
    spawnSync(process.execPath, [vitest, 'run', '--project', 'unit', '--bail', '1', ...reporters, ...filter, ...mutant.tests], { cwd: dir })
    return verdictOf(report)
  } finally {
    for (const [file, text] of before) writeFileSync(join(dir, file), text)
  }
}

/** Killed is only what a test has failed for: source that can't be loaded proves nothing. */
function verdictOf(report: string): { readonly killed: boolean; readonly says: string } {
  interface Report {
    readonly numPassedTests: number
    readonly testResults: readonly { readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[] }[]
  }
  let read: Report
  try {
    read = JSON.parse(readFileSync(report, 'utf8')) as Report
  } catch {
    return { killed: false, says: 'the tests did not run to their end' }
  }
  const failed = read.testResults.flatMap(({ assertionResults }) => assertionResults).find(({ status }) => status === 'failed')
  return failed === undefined
    ? { killed: false, says: `${read.numPassedTests} tests pass` }
    : { killed: true, says: `this fails: ${failed.fullName}` }
}
