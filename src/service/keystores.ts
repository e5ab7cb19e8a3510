import { mkdir, open, readdir, readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { create, defaultPbkdfModule, defaultScryptModule } from '@chainsafe/bls-keystore'
import { type Clock, systemClock } from '../lib/clock.ts'
import { asAdmin, type StakeKey } from './admin.ts'
import { loadServiceConfig, type ServiceOverrides } from './config.ts'
import { keyPath, readSeedFile, type ValidatorKey, type ValidatorKeys } from './seed.ts'

/** An export that can't be made. Nothing was overwritten. */
export class KeystoreError extends Error {
  override readonly name = 'KeystoreError'
}

export interface ExportKeystoresOptions {
  readonly config: string
  readonly flags?: ServiceOverrides
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Made if it isn't there, for its owner only. */
  readonly outDir: string
  /** Its first line protects the keystores: at least 8 characters. */
  readonly passwordFile: string
  readonly network?: string
  /** Of the stake's transaction. */
  readonly status?: 'awaiting_submission' | 'submitted' | 'confirmed' | 'failed'
  readonly pubkeys?: readonly string[]
  /** `scrypt` (the default, about a second a key) or `pbkdf2` (EIP-2335 has both). */
  readonly kdf?: 'scrypt' | 'pbkdf2'
  /** The keys were exported before, and whoever asks knows that they don't run there any more. */
  readonly again?: boolean
  readonly clock?: Clock
}

export interface ExportedKeystore extends Omit<StakeKey, 'keyIndex'> {
  readonly path: string
  readonly file: string
}

/**
 * Writes the signing keys of stakes as EIP-2335 keystores, named as the staking deposit tools name them, so that validator clients import
 * the folder as it is; and a summary beside them. A key must run in ONE place only: two validators with one key are slashed.
 * @throws KeystoreError when a file would be overwritten, a key was exported before, wherever to, and `again` doesn't say that this is known, or the seed isn't that
 * of the stakes.
 */
export async function exportKeystores(options: ExportKeystoresOptions): Promise<readonly ExportedKeystore[]> {
  const { outDir, clock = systemClock, network, status, pubkeys } = options
  const config = await loadServiceConfig(options.config, options.flags, options.env ?? process.env)
  const password = await readPassword(options.passwordFile)
  const keys = await readSeedFile(config.seedFile)
  const filter = { ...(network && { network }), ...(status && { status }), ...(pubkeys && { pubkeys: [...pubkeys] }) }
  const { found, before } = await asAdmin(config.database, clock, async (admin) => {
    const stakes = await admin.stakeKeys(filter)
    return { found: stakes, before: await admin.exportsOf({ pubkeys: stakes.map(({ pubkey }) => pubkey) }) }
  })
  checkKeys(found, keys, pubkeys)

  await mkdir(outDir, { recursive: true, mode: 0o700 })
  await refuseExisting(
    outDir,
    found.map(({ keyIndex }) => BigInt(keyIndex)),
  )
  if (options.again !== true) refuseExported(before)
  const claim = { pubkeys: found.map(({ pubkey }) => pubkey), at: clock.now(), place: `${hostname()}:${resolve(outDir)}` }
  // Somebody else may have taken them to another place since they were looked up.
  refuseExported(await asAdmin(config.database, clock, (admin) => admin.claimPlace({ ...claim, again: options.again === true })))
  const seconds = Math.floor(clock.now().getTime() / 1000)
  const exported: ExportedKeystore[] = []
  for (const { keyIndex, ...stake } of found) {
    const index = BigInt(keyIndex)
    const file = await writeKeystore({ outDir, password, kdf: options.kdf, index, key: keys.derive(index), seconds })
    exported.push({ ...stake, path: keyPath(index), file })
  }
  await writeNew(
    join(outDir, `summary-${seconds}.json`),
    `${JSON.stringify({ createdAt: clock.now().toISOString(), keystores: exported }, null, 2)}\n`,
  )
  return exported
}

/** Writes one keystore; returns the file's name. @throws KeystoreError when it is there already */
export async function writeKeystore(given: {
  readonly outDir: string
  readonly password: string
  readonly kdf: ExportKeystoresOptions['kdf']
  readonly index: bigint
  readonly key: ValidatorKey
  /** Unix time, for the file's name. */
  readonly seconds: number
}): Promise<string> {
  const { outDir, password, index, key, seconds } = given
  const path = keyPath(index)
  const kdf = given.kdf === 'pbkdf2' ? defaultPbkdfModule() : defaultScryptModule()
  const keystore = await create(password, key.secretKey, Buffer.from(key.publicKey.slice(2), 'hex'), path, null, kdf)
  const file = `keystore-${path.replaceAll('/', '_')}-${seconds}.json`
  await writeNew(join(outDir, file), JSON.stringify(keystore))
  return file
}

export async function readPassword(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new KeystoreError(`the password file ${file} cannot be read (${error.code ?? 'unknown error'})`)
  })
  const password = text.split(/\r?\n/, 1)[0] ?? ''
  if (password.length < 8) throw new KeystoreError(`the first line of ${file} must be a password of at least 8 characters`)
  return password
}

/** @throws KeystoreError when the seed isn't that of the stakes, or one that was asked for has no stake */
export function checkKeys(found: readonly StakeKey[], keys: ValidatorKeys, asked: readonly string[] | undefined): void {
  const foreign = found.find(({ keyIndex, pubkey }) => keys.derive(BigInt(keyIndex)).publicKey !== pubkey)
  if (foreign !== undefined) throw new KeystoreError(`the seed is not the one that stake ${foreign.stakeId} was made from`)
  const missing = asked?.find((pubkey) => !found.some((one) => one.pubkey === pubkey.toLowerCase()))
  if (missing !== undefined) throw new KeystoreError(`no stake has the public key ${missing}`)
}

/** One key in two places is slashed. @throws KeystoreError */
export function refuseExported(before: readonly { readonly pubkey: string; readonly exportedAt: Date; readonly place: string }[]): void {
  const [first, ...others] = before
  if (first === undefined) return
  const more = others.length === 0 ? '' : `, and ${others.length} more of these keys too`
  throw new KeystoreError(
    `the key of ${first.pubkey} was exported before: at ${first.exportedAt.toISOString().slice(0, 19)}Z to ${first.place}${more}. A key that runs in two places is slashed. Export only those that were not (--pubkey), or, once they run nowhere any more, say --again`,
  )
}

/** A second keystore of one key in one folder would be imported twice. */
export async function refuseExisting(outDir: string, indices: readonly bigint[]): Promise<void> {
  const files = await readdir(outDir)
  for (const index of indices) {
    const stem = `keystore-${keyPath(index).replaceAll('/', '_')}-`
    const existing = files.find((file) => file.startsWith(stem))
    if (existing !== undefined) throw new KeystoreError(`${join(outDir, existing)} is there already: export to another folder`)
  }
}

async function writeNew(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw new KeystoreError(
      error.code === 'EEXIST' ? `${path} is there already` : `${path} cannot be written (${error.code ?? 'unknown error'})`,
    )
  })
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}
