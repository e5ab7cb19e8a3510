import { spawnSync } from 'node:child_process'
import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

/** Compiles src/ to dist/ (or `--out`): plain JavaScript that needs no loader and no development dependency. */
const { out } = parseArgs({ options: { out: { type: 'string', default: 'dist' } } }).values
rmSync(out, { recursive: true, force: true })
const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', out], { stdio: 'inherit' })
if (status === 0) for (const program of ['main.js', 'kubectl-staking.js']) chmodSync(join(out, program), 0o755)
process.exit(status ?? 1)
