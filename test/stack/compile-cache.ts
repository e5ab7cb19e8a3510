import { join } from 'node:path'
import { cacheDir } from '../cluster/cache-dir.ts'

/**
 * The programs are started over and over: with V8's compile cache each start costs a third less. Node writes it when a process ends by itself. That of a run with bundled
 * programs is kept, and thrown away, with them.
 */
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: join(process.env.STAKING_TEST_PROGRAMS || cacheDir(process.env), 'compile-cache') }
