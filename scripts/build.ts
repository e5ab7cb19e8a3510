import { spawnSync } from 'node:child_process'
import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

/** Compiles src/ to dist/ (or `--out`): plain JavaScript that needs no loader and no development dependency. */
const { out } = parseArgs({ options: { out: { type: 'string', default: 'dist' } } }).values
rmSync(out, { recursive: true, force: true })
const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', out], { stdio: 'inherit' })
if (status === 0) chmodSync(join(out, 'main.js'), 0o755)
process.exit(status ?? 1)
