import { spawnSync } from 'node:child_process'
import { chmodSync, rmSync } from 'node:fs'

/** Compiles src/ to dist/: plain JavaScript that needs no loader and no development dependency. */
rmSync('dist', { recursive: true, force: true })
const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit' })
if (status === 0) chmodSync('dist/main.js', 0o755)
process.exit(status ?? 1)
