import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { relative } from 'node:path'
import { parseArgs } from 'node:util'

/**
 * Everything that a release needs: types, lint, generated files, unit tests, and the integration tests on real parts; with `--devnet` also the flows
 * on a real proof-of-stake network, whose programs are built first where they are not there yet, with `--image` also the container images, with `--soak-minutes N`
 * also so many minutes of faults over everything. The last line is the sum of vitest's own reports. Fails on any failure, and when a part ran no test.
 */
const ours = { devnet: { type: 'boolean' }, image: { type: 'boolean' }, 'soak-minutes': { type: 'string' } } as const
const { values: flags, tokens } = parseArgs({ options: ours, strict: false, tokens: true, allowPositionals: true })
const isOurs = (index: number): boolean =>
  tokens.some(
    (token) =>
      token.kind === 'option' &&
      token.name in ours &&
      (token.index === index || (token.index === index - 1 && token.inlineValue === false)),
  )
/** The rest is vitest's. */
const given = process.argv.slice(2).filter((_, index) => !isOurs(index))
const minutes = flags['soak-minutes']
if (minutes !== undefined && !(Number(minutes) > 0)) {
  process.stderr.write('--soak-minutes takes a number of minutes\n')
  process.exit(2)
}
const run = (command: string, args: readonly string[]): number => spawnSync(command, args, { stdio: 'inherit' }).status ?? 1
const failed: string[] = []
const step = (name: string, command: string, ...args: readonly string[]): boolean => {
  const ended = run(command, args) === 0
  if (!ended) failed.push(name)
  return ended
}

interface Counts {
  readonly passed: number
  readonly failures: number
  readonly skipped: number
  /** A line for each test that failed, and for each file that could not be loaded. */
  readonly names: readonly string[]
}
const none: Counts = { passed: 0, failures: 0, skipped: 0, names: [] }

step('types', 'tsc', '--noEmit')
step('lint', 'biome', 'check', '--error-on-warnings', '.')
step('generated files', 'node', 'scripts/generate.ts', '--check')
step('control plane', 'node', 'scripts/controlplane.ts')
step('Flux', 'node', 'scripts/flux.ts')
const counted = [tests('tests', 'test-report.json', given)]
if (flags.devnet === true && step('devnet programs', 'node', 'scripts/devnet.ts')) {
  counted.push(tests('devnet tests', 'test-report-devnet.json', ['--config', 'test/devnet/vitest.config.ts']))
  counted.push(tests('devnet tests, alone', 'test-report-devnet-alone.json', ['--config', 'test/devnet/vitest.alone.config.ts']))
}
if (flags.image === true) counted.push(tests('image tests', 'test-report-image.json', ['--config', 'test/image/vitest.config.ts']))
if (minutes !== undefined) {
  process.env.STAKING_SOAK_MINUTES = String(minutes)
  counted.push(tests('soak', 'test-report-soak.json', ['--config', 'test/soak/vitest.config.ts']))
}

const sum = counted.reduce((a, b) => ({
  passed: a.passed + b.passed,
  failures: a.failures + b.failures,
  skipped: a.skipped + b.skipped,
  names: [...a.names, ...b.names],
}))
// Once more at the end: of a long log, often no more than the end is kept.
for (const name of sum.names) process.stdout.write(`failed: ${name}\n`)
if (failed.length > 0) process.stdout.write(`failed: ${failed.join(', ')}\n`)
process.stdout.write(`${sum.passed} passed, ${sum.failures} failed, ${sum.skipped} skipped\n`)
process.exit(failed.length === 0 && sum.failures === 0 ? 0 : 1)

/** One run of vitest, told by its own report. */
function tests(name: string, report: string, args: readonly string[]): Counts {
  rmSync(report, { force: true })
  step(name, 'vitest', 'run', '--reporter=default', '--reporter=json', `--outputFile=${report}`, ...args)
  const counts = countsOf(report)
  if (counts.passed + counts.failures === 0) failed.push(`${name}: none ran`)
  return counts
}

interface Report {
  readonly numPassedTests?: number
  readonly numFailedTests?: number
  readonly numPendingTests?: number
  readonly numTodoTests?: number
  readonly numFailedTestSuites?: number
  readonly testResults?: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

function countsOf(report: string): Counts {
  try {
    const told = JSON.parse(readFileSync(report, 'utf8')) as Report
    // A file that can't even be loaded has no tests of its own to fail.
    const failures = Math.max(told.numFailedTests ?? 0, (told.numFailedTestSuites ?? 0) > 0 ? 1 : 0)
    return {
      passed: told.numPassedTests ?? 0,
      failures,
      skipped: (told.numPendingTests ?? 0) + (told.numTodoTests ?? 0),
      names: (told.testResults ?? []).flatMap(failuresOf),
    }
  } catch {
    return none
  }
}

function failuresOf({ name, status, message, assertionResults }: NonNullable<Report['testResults']>[number]): readonly string[] {
  const line = (what: string, why: string): string =>
    `${relative(process.cwd(), name)}${what}: ${why.split('\n', 1)[0]?.slice(0, 300) ?? ''}`
  const failing = assertionResults.filter((one) => one.status === 'failed')
  if (failing.length > 0) return failing.map((one) => line(` > ${one.fullName}`, one.failureMessages[0] ?? ''))
  return status === 'failed' ? [line('', message)] : []
}
