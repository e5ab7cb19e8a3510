/** `node scripts/devnet.ts`: finds the programs of the proof-of-stake devnet (geth, Prysm), or builds them, and says where they are. */
import { reap } from '../test/cluster/reaper.ts'
import { findDevnetAssets } from '../test/devnet/assets.ts'

const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort(new Error(`interrupted by ${name}`)))

try {
  // Of a run that was interrupted.
  reap()
  const found = await findDevnetAssets({ env: process.env, log: (line) => console.error(line), signal: interrupted.signal })
  for (const path of Object.values(found)) console.log(path)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
