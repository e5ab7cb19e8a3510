import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { bundlePrograms } from './bundle.ts'

/**
 * A folder for what all files of one run may take ready-made: the databases of services, the operator's rights. The programs that tests start are bundled
 * (`STAKING_TEST_PROGRAMS= npx vitest …` has them run from their source, for traces with its lines), and whatever of Node a test starts has the compile cache.
 */
export async function setup({ config }: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'staking-prepared-'))
  process.env.STAKING_TEST_PREPARED = folder
  // Who watches changes the source after this.
  process.env.STAKING_TEST_PROGRAMS ??= config.watch ? '' : await bundlePrograms()
  const { COMPILE_CACHE } = await import('./compile-cache.ts')
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE.NODE_COMPILE_CACHE
  return () => rmSync(folder, { recursive: true, force: true })
}
