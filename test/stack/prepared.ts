import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder for what all files of one run may take ready-made: the database of a stack's service. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'staking-prepared-'))
  process.env.STAKING_TEST_PREPARED = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
