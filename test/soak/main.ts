import { parseArgs } from 'node:util'
import { startAnvil } from '../chains/anvil.ts'
import { startPostgres } from '../cluster/postgres.ts'
import { chooseSeed } from '../crash/random.ts'
import { drains } from './drains.ts'
import { fleetSoak } from './fleet/soak.ts'
import { soak } from './soak.ts'

/**
 * `npm run test:soak`: ten minutes of faults, or `-- --minutes N`: seven tenths of them over everything, two over the service alone on PostgreSQL, one on its embedded
 * database; then twenty ends of the service under load, or `-- --drains N`. `-- --only fleet` or `service` leaves the other out. `-- --seed N` does the same faults
 * in the same order again.
 */
const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    drains: { type: 'string', default: '20' },
    only: { type: 'string' },
    seed: { type: 'string' },
  },
})
const seconds = Number(flags.minutes) * 60
const seed = flags.seed === undefined ? chooseSeed() : Number(flags.seed)
if (!(seconds > 0) || !Number.isSafeInteger(seed) || ![undefined, 'fleet', 'service'].includes(flags.only)) {
  process.stderr.write('--minutes and --seed are numbers, --only is fleet or service\n')
  process.exit(2)
}
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort(new Error(`interrupted by ${name}`)))
const begun = performance.now()
const say = (line: string) => process.stderr.write(`${((performance.now() - begun) / 1_000).toFixed(0).padStart(4)} s  ${line}\n`)
const { signal } = interrupted
let wrong = 0
const tell = (line: string, violations: readonly string[]) => {
  wrong += violations.length
  process.stdout.write(`${line}; ${violations.length} violations\n`)
  for (const violation of violations) process.stdout.write(`  ${violation}\n`)
}

say(`seed ${seed}; again with --seed ${seed}`)
if (flags.only !== 'service') await ofFleet(flags.only === 'fleet' ? 1 : 0.7)
if (flags.only !== 'fleet' && !signal.aborted) {
  await ofService(flags.only === 'service' ? 1 : 0.3)
  await ofDrains()
}
process.exitCode = wrong === 0 && !signal.aborted ? 0 : 1

async function ofFleet(part: number): Promise<void> {
  const { faults, wishes, paid, looks, settledAfterMs, violations } = await fleetSoak({ seconds: seconds * part, seed, say, signal })
  const figures = [
    `${faults.length} faults`,
    `${wishes} resources`,
    `${paid.deposits} deposits, ${paid.requests} exits and withdrawals and ${paid.solanaStakes} Solana stakes paid`,
    `${looks} looks meanwhile`,
    `settled ${(settledAfterMs / 1_000).toFixed(0)} s after the last fault`,
  ]
  tell(`everything: ${figures.join('; ')}`, violations)
}

async function ofService(part: number): Promise<void> {
  for (const [database, share] of [
    ['postgres', 0.7],
    ['embedded', 0.3],
  ] as const) {
    if (signal.aborted) return
    say(database)
    const given = { database, seconds: seconds * part * share, seed, say, signal }
    const { created, submitted, delivered, repeated, slowestMs, faults, violations } = await soak(given)
    const figures = `${created} stakes created, ${submitted} hashes reported, ${delivered} webhooks delivered, ${repeated} requests sent again, ${slowestMs} ms for the slowest answer`
    tell(
      `the service on ${database}: ${faults.length} faults; ${figures}`,
      created === 0 ? [...violations, 'no stake was created'] : violations,
    )
  }
}

async function ofDrains(): Promise<void> {
  const [anvil, postgres] = await Promise.all([startAnvil(), startPostgres()])
  try {
    for (const databaseUrl of [await postgres.createDatabase('drains'), undefined]) {
      if (signal.aborted) break
      say(`ends under load: ${databaseUrl === undefined ? 'embedded' : 'postgres'}`)
      const outcomes = await drains({ anvil, databaseUrl, times: Math.ceil(Number(flags.drains) / 2) })
      const served = outcomes.reduce((sum, { servedWhileEnding }) => sum + servedWhileEnding, 0)
      const violations = outcomes.flatMap(({ code, unexpected }) => [...unexpected, ...(code === 0 ? [] : [`it ended with ${code}`])])
      tell(`${outcomes.length} ends under load; ${served} requests served meanwhile`, violations)
    }
  } finally {
    await Promise.all([anvil.stop(), postgres.stop()])
  }
}
