import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { COMPILE_CACHE } from './compile-cache.ts'

/** A folder for what all files of one run may take ready-made: the databases of services, the operator's rights. Whatever of Node a test starts has the compile cache. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'staking-prepared-'))
  process.env.STAKING_TEST_PREPARED = folder
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE.NODE_COMPILE_CACHE
  return () => rmSync(folder, { recursive: true, force: true })
}
