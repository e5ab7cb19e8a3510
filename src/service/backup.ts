import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock } from '../lib/clock.ts'
import { asAdmin, connectAdmin, defined, type MissingStake } from './admin.ts'
import type { CommandOptions } from './commands.ts'
import { ConfigError, loadServiceConfig } from './config.ts'
import { copyFolder } from './store/copy-folder.ts'
import { DatabaseInUseError } from './store/database.ts'
import { databaseFiles, lockFolder } from './store/pglite.ts'

/**
 * Copies the embedded database into a folder, as it is at one moment, beside a running service or without one. The seed is not in it.
 * @throws ConfigError when the database is a server, or the folder is not empty
 */
export async function backUp(options: CommandOptions & { readonly out: string }): Promise<void> {
  const dataDir = await embeddedFolder(options)
  const out = resolve(options.out)
  if (existsSync(out) && readdirSync(out).length > 0) throw new ConfigError(`${out} is not empty: name a folder for this copy alone`)
  if (!existsSync(databaseFiles(dataDir))) throw new ConfigError(`there is no database in ${dataDir}`)
  try {
    await alone(dataDir, () => copyFolder(databaseFiles(dataDir), databaseFiles(out)))
  } catch (error) {
    if (!(error instanceof DatabaseInUseError)) throw error
    await connectAdmin(dataDir).backUp({ out })
  }
}

/**
 * Puts a copy that `backUp` made where the configuration has the embedded database.
 * @throws ConfigError when there is no copy, when the database is a server, or when one is there: it is never overwritten
 * @throws DatabaseInUseError while a service runs on it
 */
export async function restore(options: CommandOptions & { readonly from: string }): Promise<void> {
  const dataDir = await embeddedFolder(options)
  const from = databaseFiles(resolve(options.from))
  if (!existsSync(from)) throw new ConfigError(`${options.from} holds no copy of a database`)
  await alone(dataDir, async () => {
    const files = databaseFiles(dataDir)
    if (existsSync(files)) throw new ConfigError(`there is a database in ${dataDir}, which is not overwritten: move ${files} away first`)
    await copyFolder(from, files)
  })
}

/** Stakes that the chain has and the database lacks. */
export async function missingStakes(options: CommandOptions & { readonly network?: string }): Promise<readonly MissingStake[]> {
  const { database } = await configOf(options)
  return asAdmin(database, options.clock ?? systemClock, (admin) => admin.missingStakes(defined({ network: options.network })))
}

/** Says of validators that they are no stakes of this service. @returns those that were missing until now */
export async function dismissMissingStakes(options: CommandOptions & { readonly pubkeys: readonly string[] }): Promise<readonly string[]> {
  const { database } = await configOf(options)
  return asAdmin(database, options.clock ?? systemClock, (admin) => admin.dismissMissing({ pubkeys: [...options.pubkeys] }))
}

const configOf = (options: CommandOptions) => loadServiceConfig(options.config, options.flags, options.env ?? process.env)

/** @throws ConfigError */
async function embeddedFolder(options: CommandOptions): Promise<string> {
  const { database } = await configOf(options)
  if (database.kind !== 'embedded')
    throw new ConfigError('the database is a PostgreSQL server: back it up and restore it with pg_dump and pg_restore, or by its WAL')
  if (database.dataDir.startsWith('memory://')) throw new ConfigError('the database is in memory, and gone with its process')
  return resolve(database.dataDir)
}

/** Does something with the embedded database's files while no process has them open. @throws DatabaseInUseError */
async function alone(dataDir: string, work: () => Promise<void>): Promise<void> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const unlock = await lockFolder(dataDir)
  try {
    await work()
  } finally {
    await unlock()
  }
}
