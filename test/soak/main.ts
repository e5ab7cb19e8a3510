import { parseArgs } from 'node:util'
import { startAnvil } from '../chains/anvil.ts'
import { startPostgres } from '../cluster/postgres.ts'
import { chooseSeed } from '../crash/random.ts'
import { drains } from './drains.ts'
import { soak } from './soak.ts'

/**
 * `npm run test:soak`: ten minutes of faults, or `-- --seconds N`, seven tenths of them on PostgreSQL and the rest on the embedded database; then twenty ends under
 * load, or `-- --drains N`. `-- --seed N` does the same faults in the same order again.
 */
const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    drains: { type: 'string', default: '20' },
    seed: { type: 'string' },
  },
})
const seed = flags.seed === undefined ? chooseSeed() : Number(flags.seed)
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

say(`seed ${seed}`)
for (const [database, part] of [
  ['postgres', 0.7],
  ['embedded', 0.3],
] as const) {
  say(database)
  const seconds = Number(flags.seconds) * part
  const { created, submitted, delivered, repeated, slowestMs, faults, violations } = await soak({ database, seconds, seed, say, signal })
  const figures = `${created} stakes created, ${submitted} hashes reported, ${delivered} webhooks delivered, ${repeated} requests sent again, ${slowestMs} ms for the slowest answer`
  tell(`${database}: ${faults.length} faults; ${figures}`, created === 0 ? [...violations, 'no stake was created'] : violations)
}

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
process.exitCode = wrong === 0 && !signal.aborted ? 0 : 1
