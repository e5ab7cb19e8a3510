/**
 * `npm run controlplane`: finds the control plane that tests and demo run on, or makes it, and says where it is.
 * `--stop` ends processes that an interrupted test or demo left behind; with `--all` also those of one that still runs.
 */
import { parseArgs } from 'node:util'
import { findAssets } from '../test/cluster/assets.ts'
import { reap } from '../test/cluster/reaper.ts'

const { values } = parseArgs({ options: { stop: { type: 'boolean', default: false }, all: { type: 'boolean', default: false } } })
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort(new Error(`interrupted by ${name}`)))

try {
  if (values.stop) {
    const ended = reap({ all: values.all })
    for (const { name, pid } of ended) console.log(`ended ${name} (${pid})`)
    if (ended.length === 0) console.log('nothing was left behind')
  } else {
    reap()
    const found = await findAssets({ env: process.env, log: (line) => console.error(line), signal: interrupted.signal })
    for (const path of Object.values(found)) console.log(path)
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
