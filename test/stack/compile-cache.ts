import { join } from 'node:path'
import { cacheDir } from '../cluster/cache-dir.ts'

/** The programs are started over and over: with V8's compile cache each start costs a third less. Node writes it when a process ends by itself. */
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: join(cacheDir(process.env), 'compile-cache') }
