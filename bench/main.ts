import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { reap } from '../test/cluster/reaper.ts'
import { type BenchCluster, startBenchCluster } from './bench-cluster.ts'
import { benchFleet } from './fleet.ts'
import { benchHistory } from './history.ts'
import { printReport, type Report } from './report.ts'
import { benchRequests } from './requests.ts'
import { benchRuntime } from './runtime.ts'
import { benchService, type ServiceResult } from './service.ts'
import { benchStakes, type StakesResult } from './stakes.ts'
import { benchTracker } from './tracker.ts'
import { benchValidatorSet } from './validator-set.ts'

/**
 * `npm run bench`: how fast, and how much it takes. `-- --only a|b|c|d|e|service` for one part, `-- --quick` for small numbers, `-- --json FILE` for programs,
 * `-- --profile DIR` for CPU profiles of the operator (or, for b, run this file with --cpu-prof).
 * docs/explanation/performance.md says what is measured and how.
 */
const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: ['a', 'b', 'c', 'd', 'e', 'service'] },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    profile: { type: 'string' },
  },
})
const DEADLINE_MS = 20 * 60_000
const parts = new Set(flags.only.flatMap((text) => text.split(',')))
const say = (line: string) => process.stderr.write(`${line}\n`)
const size = flags.quick
  ? {
      stakes: [100],
      runtime: { objects: 100, rounds: 3 },
      fleet: { stakes: 1_000, quietSeconds: 5 },
      late: 200,
      history: { deposits: 100_000, since: 100 },
      validators: 1_000,
      service: { seconds: 3 },
    }
  : {
      stakes: [200, 1_000],
      runtime: { objects: 200, rounds: 7 },
      fleet: { stakes: 10_000, quietSeconds: 30 },
      late: 1_000,
      history: { deposits: 2_200_000, since: 20_000 },
      validators: 10_000,
      service: { seconds: 10 },
    }

process.exitCode = await run()

async function run(): Promise<number> {
  const unknown = [...parts].filter((part) => !['a', 'b', 'c', 'd', 'e', 'service'].includes(part))
  if (unknown.length > 0) {
    say(`--only takes a, b, c, d, e or service, not ${unknown.join(', ')}`)
    return 2
  }
  reap()
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort(new Error(`interrupted by ${name}`)))
  const signal = AbortSignal.any([interrupted.signal, AbortSignal.timeout(DEADLINE_MS)])
  const [cpu] = cpus()
  const report: Report = {
    machine: {
      node: process.version,
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      load1: loadavg()[0] ?? 0,
      at: new Date().toISOString(),
    },
  }
  try {
    if (parts.has('a')) {
      const results: StakesResult[] = []
      report.stakes = results
      await withCluster((bench) => benchStakes(bench, size.stakes, (result) => results.push(result), say, signal), signal)
    }
    if (parts.has('b')) report.runtime = await withCluster((bench) => benchRuntime(bench.cluster, size.runtime, say, signal), signal)
    if (parts.has('e')) {
      report.history = await benchHistory(size.history, say)
      report.validatorSet = benchValidatorSet(size.history.deposits, say)
      report.tracker = await benchTracker(size.validators, say)
      report.requests = await benchRequests(size.validators, say)
    }
    if (parts.has('c')) report.fleet = await withCluster((bench) => benchFleet(bench, size.fleet, say, signal), signal)
    if (parts.has('d')) {
      const chain = { blockMs: 200, finality: 64 }
      const set = (result: StakesResult) => {
        report.late = { ...chain, result }
      }
      await withCluster((bench) => benchStakes(bench, [size.late], set, say, signal, chain), signal)
    }
    if (parts.has('service')) {
      const results: ServiceResult[] = []
      report.service = results
      for (const database of ['embedded', 'PostgreSQL'] as const) results.push(await benchService(database, size.service, say, signal))
    }
    return 0
  } catch (error) {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error))
    return 1
  } finally {
    printReport(report, (line) => process.stdout.write(`${line}\n`))
    if (flags.json !== undefined) writeFileSync(flags.json, `${JSON.stringify(report, null, 2)}\n`)
  }
}

/** Each part on an API server of its own: what one leaves behind must not slow the next. */
async function withCluster<T>(work: (bench: BenchCluster) => Promise<T>, signal: AbortSignal): Promise<T> {
  const bench = await startBenchCluster(say, signal, flags.profile)
  try {
    return await work(bench)
  } finally {
    await bench.stop()
  }
}
