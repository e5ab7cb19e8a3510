import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, PGliteDialect } from 'kysely'
import type { DatabaseConfig } from '../../src/service/store/database.ts'
import { migrate } from '../../src/service/store/migrations.ts'
import { databaseFiles, openPglite } from '../../src/service/store/pglite.ts'
import type { Database } from '../../src/service/store/schema.ts'
import { runToEnd } from '../cluster/run.ts'

/**
 * An embedded database in memory, empty and up to date. The first of a run makes one and keeps it for the others: to make one takes several times what opening
 * one takes. Whoever comes while it is being made, and a run without a folder for it, makes its own.
 */
export async function memoryDatabase(): Promise<DatabaseConfig> {
  return { kind: 'embedded', dataDir: `memory://${(await dump()) ?? ''}` }
}

/**
 * The same in a folder, for a process of its own: made from the same dump, where there is one. Otherwise the service makes it, at its first start: that takes three
 * seconds of processor, and `commands.test.ts` and the demo see it done.
 */
export async function folderDatabase(folder: string): Promise<void> {
  const file = await dump()
  if (file === undefined) return
  mkdirSync(folder, { mode: 0o700 })
  const files = databaseFiles(folder)
  mkdirSync(files)
  const unpacked = await runToEnd({ command: 'tar', args: ['-xf', file, '-C', files], signal: AbortSignal.timeout(60_000) })
  if (unpacked.code !== 0) throw new Error(`the dump of a database could not be unpacked: ${unpacked.stderr}`)
}

async function dump(): Promise<string | undefined> {
  const folder = process.env.STAKING_TEST_PREPARED
  if (folder === undefined) return undefined
  const file = join(folder, 'memory.tar')
  if (!existsSync(file)) {
    try {
      mkdirSync(`${file}-lock`)
    } catch {
      return undefined
    }
    await make(file)
  }
  return file
}

async function make(file: string): Promise<void> {
  const { pglite, close } = await openPglite('memory://')
  try {
    await migrate(new Kysely<Database>({ dialect: new PGliteDialect({ pglite }) }))
    const dump = await pglite.dumpDataDir('none')
    writeFileSync(`${file}-making`, Buffer.from(await dump.arrayBuffer()))
  } finally {
    await close()
  }
  renameSync(`${file}-making`, file)
}
