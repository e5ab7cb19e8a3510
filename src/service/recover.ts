import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { type CredentialsType, withdrawalCredentials } from '../chains/ethereum/deposit.ts'
import type { Gwei } from '../lib/amounts.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { asAdmin } from './admin.ts'
import { loadServiceConfig, type ServiceConfig, type ServiceOverrides } from './config.ts'
import { keyIndexOf, maxProbes } from './key-index.ts'
import { type ExportKeystoresOptions, KeystoreError, readPassword, refuseExisting, refuseExported, writeKeystore } from './keystores.ts'
import { keyPath, readSeedFile } from './seed.ts'
import { isOutage } from './store/database.ts'
import { databaseFiles } from './store/pglite.ts'

export interface RecoverKeystoreOptions {
  readonly config: string
  readonly flags?: ServiceOverrides
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly outDir: string
  readonly passwordFile: string
  readonly kdf?: ExportKeystoresOptions['kdf']
  /** The validator, as the chain shows it: only its key is written. */
  readonly pubkey: string
  /** How its index is known: from the service's log, or from the request that made it. */
  readonly from: KeySource
  /** The key was taken to another place before, and whoever asks knows that it doesn't run there any more. */
  readonly again?: boolean
  /** No database is asked where it was taken to before, and none notes it. */
  readonly withoutDatabase?: boolean
  readonly clock?: Clock
}

export type KeySource =
  | { readonly path: string }
  | {
      readonly account: string
      readonly idempotencyKey: string
      readonly network: string
      readonly amountGwei: Gwei
      readonly withdrawalAddress: `0x${string}`
      readonly credentialsType: CredentialsType
    }

/**
 * Writes the keystore of a validator that the database doesn't know (any more): after a restore from an older copy. The seed and the request say which key it
 * is; the database tells where it was taken to before, and notes where it goes: a key must run in ONE place only.
 * @throws KeystoreError when that isn't the validator's key, a file would be overwritten, or the key was taken elsewhere and `again` doesn't say that this is known
 */
export async function recoverKeystore(options: RecoverKeystoreOptions): Promise<{ readonly path: string; readonly file: string }> {
  const { outDir, clock = systemClock, from } = options
  const config = await loadServiceConfig(options.config, options.flags, options.env ?? process.env)
  const password = await readPassword(options.passwordFile)
  const keys = await readSeedFile(config.seedFile)
  const pubkey = options.pubkey.toLowerCase()
  for (const index of indicesOf(from, (order, probe) => keyIndexOf(keys, order, probe, BigInt(config.keyIndexFloor)))) {
    const key = keys.derive(index)
    if (key.publicKey !== pubkey) continue
    await mkdir(outDir, { recursive: true, mode: 0o700 })
    await refuseExisting(outDir, [index])
    if (options.withoutDatabase !== true) await claim(config, pubkey, options, clock)
    const seconds = Math.floor(clock.now().getTime() / 1000)
    const file = await writeKeystore({ outDir, password, kdf: options.kdf, index, key, seconds })
    return { path: keyPath(index), file }
  }
  throw new KeystoreError(
    'path' in from
      ? `the key at ${from.path} of this seed is not the one of ${pubkey}`
      : `no key of this request and seed is the one of ${pubkey}: check the account, the Idempotency-Key, the network, the amount, the withdrawal address, the seed and keyIndexFloor`,
  )
}

/** @throws KeystoreError */
async function claim(
  { database }: ServiceConfig,
  pubkey: string,
  { outDir, again = false }: RecoverKeystoreOptions,
  clock: Clock,
): Promise<void> {
  const unknown = (why: string) =>
    new KeystoreError(
      `${why}: where this key was taken to before is not known. A key that runs in two places is slashed; if it runs nowhere, say --without-database`,
    )
  // It would be made.
  if (database.kind === 'embedded' && !existsSync(databaseFiles(resolve(database.dataDir))))
    throw unknown(`there is no database in ${database.dataDir}`)
  const place = `${hostname()}:${resolve(outDir)}`
  const elsewhere = await asAdmin(database, clock, (admin) => admin.claimPlace({ pubkeys: [pubkey], at: clock.now(), place, again })).catch(
    (error: unknown) => {
      throw isOutage(error) || (error instanceof Error && isOutage(error.cause)) ? unknown('the database does not answer') : error
    },
  )
  refuseExported(elsewhere)
}

function indicesOf(from: KeySource, indexOf: (order: Parameters<typeof keyIndexOf>[1], probe: number) => bigint): readonly bigint[] {
  if (!('path' in from)) {
    const order = { ...from, withdrawalCredentials: withdrawalCredentials(from.credentialsType, from.withdrawalAddress) }
    return Array.from({ length: maxProbes }, (_, probe) => indexOf(order, probe))
  }
  const index = /^m\/12381\/3600\/([0-9]{1,10})\/0\/0$/.exec(from.path)?.[1]
  if (index === undefined) throw new KeystoreError(`"${from.path.slice(0, 64)}" is not the path of a validator's key: m/12381/3600/N/0/0`)
  return [BigInt(index)]
}
