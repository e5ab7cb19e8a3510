import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { create, defaultPbkdfModule } from '@chainsafe/bls-keystore'
import { isAddress } from 'viem'
import { createBeaconChain } from '../../chains/ethereum/beacon-chain.ts'
import type { EthereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { createLogger } from '../../lib/log.ts'
import { Secret } from '../../lib/secret.ts'
import { asAdmin, type KeyExported, type StakeKey } from '../admin.ts'
import { loadServiceConfig, type ServiceConfig, type ServiceOverrides } from '../config.ts'
import { checkKeys, KeystoreError, refuseExported } from '../keystores.ts'
import { keyPath, readSeedFile, type ValidatorKeys } from '../seed.ts'
import { createKeymanager, type Keymanager, readToken } from './client.ts'
import { emptyHistory, historyOf } from './slashing-protection.ts'

export interface PushKeystoresOptions {
  readonly config: string
  readonly flags?: ServiceOverrides
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The validator client's Keymanager API: https, or http on this machine. */
  readonly to: string
  readonly tokenFile: string
  /** PEM of the authority of its certificate. */
  readonly caFile?: string
  readonly allowHttp?: boolean
  readonly network: string
  readonly status?: 'awaiting_submission' | 'submitted' | 'confirmed' | 'failed'
  readonly pubkeys?: readonly string[]
  readonly feeRecipient?: string
  readonly gasLimit?: bigint
  /** What the keys have signed elsewhere (EIP-3076), as the client says that ran them before. */
  readonly slashingProtectionFile?: string
  /** The keys were exported or pushed elsewhere before, and whoever asks knows that they don't run there any more. */
  readonly again?: boolean
  /** What keys have signed that were elsewhere is not known, and whoever asks knows that it can't matter. */
  readonly withoutHistory?: boolean
  readonly clock?: Clock
}

export interface PushedKey {
  readonly stakeId: string
  readonly pubkey: string
  /** `present`: the client had it already. */
  readonly outcome: 'imported' | 'present'
}

/** Keystores of one request: a client takes some tenths of a second for each. */
const batchSize = 20

/**
 * Gives the signing keys of stakes to a validator client, by the standard Keymanager API. A key must run in ONE place: what was exported or pushed elsewhere is
 * refused unless `again` says that this is known, and comes with what it has signed there; the place is written down before the key is sent; and a key that the
 * client has others sign with is refused.
 * The same call again goes on where one was interrupted.
 * @throws KeystoreError, KeymanagerError. What was imported before stays, and is written down.
 */
export async function pushKeystores(options: PushKeystoresOptions): Promise<readonly PushedKey[]> {
  const { clock = systemClock, network, status, pubkeys, feeRecipient, gasLimit } = options
  const config = await loadServiceConfig(options.config, options.flags, options.env ?? process.env)
  if (!config.networks.some((one) => one.name === network && one.chain === 'Ethereum'))
    throw new KeystoreError(`"${network}" is no Ethereum network of the configuration`)
  if (feeRecipient !== undefined) checkFeeRecipient(feeRecipient)
  const keys = await readSeedFile(config.seedFile)
  const ca = options.caFile === undefined ? undefined : await readText(options.caFile, 'the certificate file')
  const keymanager = createKeymanager({
    ...{ url: options.to, token: await readToken(options.tokenFile, (text) => new Secret(text)) },
    ...(ca === undefined ? {} : { ca }),
    ...(options.allowHttp === true ? { allowHttp: true } : {}),
  })
  try {
    const filter = { network, ...(status && { status }), ...(pubkeys && { pubkeys: [...pubkeys] }) }
    const found = await asAdmin(config.database, clock, (admin) => admin.stakeKeys(filter))
    checkKeys(found, keys, pubkeys)
    const [local, remote] = await Promise.all([keymanager.keystores(), keymanager.remoteKeys()])
    refuseRemote(found, remote)
    const before = await asAdmin(config.database, clock, (admin) => admin.exportsOf({ pubkeys: found.map(({ pubkey }) => pubkey) }))
    if (options.again !== true) refuseExported(before.filter(({ place }) => place !== keymanager.place))
    const missing = found.filter(({ pubkey }) => !local.has(pubkey))
    const gone = before.filter((one) => isGone(one, keymanager, local))
    if (options.again !== true) refuseGone(gone)
    // Before anything is written down: whoever is refused here has nothing that would let the next try pass.
    const slashingProtection = await slashingProtectionOf(missing, { before, place: keymanager.place }, config, options, clock)
    await claim(found, gone, keymanager, config, options, clock)
    for (let at = 0; at < missing.length; at += batchSize)
      await importBatch(missing.slice(at, at + batchSize), { keymanager, keys, slashingProtection })
    await verifyHeld(found, keymanager)
    const held = found.map(({ pubkey }) => pubkey)
    await asAdmin(config.database, clock, (admin) => admin.noteProvisioned({ pubkeys: held, at: clock.now() }))
    // Whatever becomes of these, the keys run.
    for (const pubkey of held) {
      if (feeRecipient !== undefined) await keymanager.setFeeRecipient(pubkey, feeRecipient)
      if (gasLimit !== undefined) await keymanager.setGasLimit(pubkey, gasLimit.toString())
    }
    return found.map(({ stakeId, pubkey }) => ({ stakeId, pubkey, outcome: local.has(pubkey) ? 'present' : 'imported' }))
  } finally {
    await keymanager.close()
  }
}

/** What is paid to a mistyped address is lost. @throws KeystoreError */
function checkFeeRecipient(address: string): void {
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) throw new KeystoreError('the fee recipient must be 20 bytes in hex with 0x')
  if (/^0x0{40}$/.test(address)) throw new KeystoreError('the fee recipient is the zero address: nobody can spend what is paid to it')
  // In one case there is no checksum.
  const hasChecksum = /[a-f]/.test(address.slice(2)) && /[A-F]/.test(address)
  if (hasChecksum && !isAddress(address)) throw new KeystoreError('the fee recipient does not match its EIP-55 checksum: is it mistyped?')
}

/** @throws KeystoreError */
function refuseRemote(found: readonly StakeKey[], remote: ReadonlySet<string>): void {
  const one = found.find(({ pubkey }) => remote.has(pubkey))
  if (one === undefined) return
  throw new KeystoreError(
    `the validator client has another program sign for ${one.pubkey}: its key is in another place already. Remove it there first, or leave it out (--pubkey)`,
  )
}

/** It was seen to be held here, and is not any more. */
const isGone = ({ pubkey, place, provisionedAt }: KeyExported, keymanager: Keymanager, local: ReadonlySet<string>): boolean =>
  place === keymanager.place && provisionedAt !== undefined && !local.has(pubkey)

/** @throws KeystoreError */
function refuseGone([one]: readonly KeyExported[]): void {
  if (one === undefined) return
  throw new KeystoreError(
    `the validator client does not hold the key of ${one.pubkey}, which was seen at ${one.place} on ${one.provisionedAt?.toISOString().slice(0, 19)}Z. If another client answers at this address now (a port-forward), its key still runs in the first one, and a key that runs in two places is slashed. Once it runs nowhere any more, say --again`,
  )
}

/** Writes down where the keys go, before they do. @throws KeystoreError for those that are elsewhere */
async function claim(
  found: readonly StakeKey[],
  gone: readonly KeyExported[],
  { place }: Keymanager,
  { database }: ServiceConfig,
  { again = false }: PushKeystoresOptions,
  clock: Clock,
): Promise<void> {
  const pubkeys = found.map(({ pubkey }) => pubkey)
  const left = gone.map(({ pubkey }) => pubkey)
  const elsewhere = await asAdmin(database, clock, (admin) => admin.claimPlace({ pubkeys, at: clock.now(), place, again, gone: left }))
  refuseExported(elsewhere)
}

async function importBatch(
  batch: readonly StakeKey[],
  given: { keymanager: Keymanager; keys: ValidatorKeys; slashingProtection: string | undefined },
): Promise<void> {
  // Of 256 random bits, used once: nobody guesses them, whatever the key derivation.
  const passwords = batch.map(() => randomBytes(32).toString('hex'))
  const keystores = await Promise.all(
    batch.map(async ({ keyIndex }, count) => {
      const index = BigInt(keyIndex)
      const { publicKey, secretKey } = given.keys.derive(index)
      const password = passwords[count] ?? ''
      const pubkey = Buffer.from(publicKey.slice(2), 'hex')
      return JSON.stringify(await create(password, secretKey, pubkey, keyPath(index), null, defaultPbkdfModule()))
    }),
  )
  const outcomes = await given.keymanager.importKeystores({ keystores, passwords, slashingProtection: given.slashingProtection })
  const failed = outcomes.findIndex(({ status }) => status === 'error')
  if (failed === -1) return
  throw new KeystoreError(
    `the validator client does not take the key of ${batch[failed]?.pubkey}: ${outcomes[failed]?.message}. It is written down as pushed there: the same command again goes on`,
  )
}

/** What a client says it has imported counts once its own list shows it. @throws KeystoreError */
async function verifyHeld(found: readonly StakeKey[], keymanager: Keymanager): Promise<void> {
  const held = await keymanager.keystores()
  const missing = found.find(({ pubkey }) => !held.has(pubkey))
  if (missing !== undefined)
    throw new KeystoreError(`the validator client does not list ${missing.pubkey} after its import: the same command again goes on`)
}

/**
 * What the client is told that the keys have signed. Of a key that was elsewhere, somebody must say it: a client that doesn't know signs the same slot or epoch
 * again, and that is slashed. @throws KeystoreError
 */
async function slashingProtectionOf(
  missing: readonly StakeKey[],
  { before, place }: { readonly before: readonly KeyExported[]; readonly place: string },
  config: ServiceConfig,
  { slashingProtectionFile: file, withoutHistory = false, network: name }: PushKeystoresOptions,
  clock: Clock,
): Promise<string | undefined> {
  const pubkeys = missing.map(({ pubkey }) => pubkey)
  if (pubkeys.length === 0) return undefined
  const network = config.networks.find((one) => one.name === name)
  const root = async () => (network?.chain === 'Ethereum' ? genesisRootOf(network, clock) : undefined)
  if (file !== undefined) return historyOf(pubkeys, await readText(file, 'the slashing protection file'), file, await root())
  const given = new Map(before.map((one) => [one.pubkey, one]))
  const mayHaveSigned = pubkeys.find((pubkey) => {
    const one = given.get(pubkey)
    return one !== undefined && (one.provisionedAt !== undefined || one.places.some((other) => other !== place))
  })
  if (mayHaveSigned !== undefined && !withoutHistory)
    throw new KeystoreError(
      `the key of ${mayHaveSigned} was elsewhere (${given.get(mayHaveSigned)?.places.join(', ')}): give what it has signed there, which its client exports (EIP-3076), as --slashing-protection. Only if it has never run, or the client that ran it has been off for three epochs and never starts again, say --without-history`,
    )
  const unused = pubkeys.filter((pubkey) => !given.has(pubkey))
  const genesisRoot = unused.length === 0 ? undefined : await root()
  return genesisRoot === undefined ? undefined : emptyHistory(unused, genesisRoot)
}

/** What slashing protection names its network by; undefined where no beacon node is configured that tells it. @throws KeystoreError */
async function genesisRootOf(network: EthereumNetworkConfig, clock: Clock): Promise<string | undefined> {
  if (network.beaconApiUrls.length === 0) return undefined
  const log = createLogger({ program: 'service', level: 'error' })
  const beacon = createBeaconChain({ network, urls: network.beaconApiUrls, clock, log, timeoutMs: 6_000 })
  const { genesisValidatorsRoot } = await beacon.genesis(AbortSignal.timeout(20_000)).catch(() => {
    throw new KeystoreError(`no beacon node of ${network.name} tells its genesis, which slashing protection must name`)
  })
  return genesisValidatorsRoot
}

const readText = (file: string, what: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new KeystoreError(`${what} ${file} cannot be read (${error.code ?? 'unknown error'})`)
  })
