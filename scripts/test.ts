import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'

/**
 * Everything that a release needs: types, lint, generated files, unit tests, and the integration tests on real parts. The last line comes from
 * vitest's own report. Fails on any failure, and when no test ran.
 */
const report = 'test-report.json'
const run = (command: string, args: readonly string[]): number => spawnSync(command, args, { stdio: 'inherit' }).status ?? 1

rmSync(report, { force: true })
const failed = [
  ['types', () => run('tsc', ['--noEmit'])],
  ['lint', () => run('biome', ['check', '--error-on-warnings', '.'])],
  ['generated files', () => run('node', ['scripts/generate.ts', '--check'])],
  ['control plane', () => run('node', ['scripts/controlplane.ts'])],
  ['tests', () => run('vitest', ['run', '--reporter=default', '--reporter=json', `--outputFile=${report}`, ...process.argv.slice(2)])],
]
  .filter(([, step]) => (step as () => number)() !== 0)
  .map(([name]) => String(name))

const { passed, failures, skipped } = counts()
if (passed + failures === 0) failed.push('no test ran')
if (failed.length > 0) process.stdout.write(`failed: ${failed.join(', ')}\n`)
process.stdout.write(`${passed} passed, ${failures} failed, ${skipped} skipped\n`)
process.exit(failed.length === 0 && failures === 0 ? 0 : 1)

function counts(): { passed: number; failures: number; skipped: number } {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, numFailedTestSuites } = JSON.parse(
      readFileSync(report, 'utf8'),
    ) as Record<string, number>
    // A file that can't even be loaded has no tests of its own to fail.
    const failures = Math.max(numFailedTests ?? 0, (numFailedTestSuites ?? 0) > 0 ? 1 : 0)
    return { passed: numPassedTests ?? 0, failures, skipped: (numPendingTests ?? 0) + (numTodoTests ?? 0) }
  } catch {
    return { passed: 0, failures: 0, skipped: 0 }
  }
}
