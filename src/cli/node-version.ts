import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { laterNodeFor } from './later-node.ts'

/**
 * Imported before all else, since the libraries fail on an older Node with words that nobody can do anything with. The Node that `npm ci` has brought beside
 * the program takes over where it is there.
 */
const own = fileURLToPath(new URL('../../node_modules/node/bin/node', import.meta.url))
const step = laterNodeFor({ version: process.versions.node, own: existsSync(own) ? own : undefined, command: process.argv[2] })
if (step.do === 'hand over') process.exit(spawnSync(step.to, process.argv.slice(1), { stdio: 'inherit' }).status ?? 1)
if (step.do === 'refuse') {
  process.stderr.write(`${step.says}\n`)
  process.exit(1)
}
