import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, PGliteDialect } from 'kysely'
import type { DatabaseConfig } from '../../src/service/store/database.ts'
import { migrate } from '../../src/service/store/migrations.ts'
import { openPglite } from '../../src/service/store/pglite.ts'
import type { Database } from '../../src/service/store/schema.ts'

/**
 * An embedded database in memory, empty and up to date. The first of a run makes one and keeps it for the others: to make one takes several times what opening
 * one takes. Whoever comes while it is being made, and a run without a folder for it, makes its own.
 */
export async function memoryDatabase(): Promise<DatabaseConfig> {
  const folder = process.env.STAKING_TEST_PREPARED
  if (folder === undefined) return inMemory()
  const file = join(folder, 'memory.tar')
  if (!existsSync(file)) {
    try {
      mkdirSync(`${file}-lock`)
    } catch {
      return inMemory()
    }
    await make(file)
  }
  return inMemory(file)
}

const inMemory = (from = ''): DatabaseConfig => ({ kind: 'embedded', dataDir: `memory://${from}` })

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
