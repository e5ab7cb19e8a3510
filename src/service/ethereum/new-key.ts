import { BeaconError } from '../../chains/ethereum/beacon.ts'
import { ChainError, type Hex } from '../../chains/ethereum/chain.ts'
import type { Logger } from '../../lib/log.ts'
import { beaconUnavailable, chainUnavailable } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import { keyPath, type ValidatorKeys } from '../seed.ts'
import type { Store } from '../store/database.ts'
import type { KeyIndices } from '../store/key-index.ts'
import { hasStakeOf } from '../store/stakes.ts'
import type { EthereumNetwork } from './networks.ts'

export interface NewKey {
  readonly index: bigint
  readonly pubkey: Hex
  /** 32 bytes. */
  readonly secretKey: Uint8Array
}

/** @throws ProblemError `chain-unavailable` when the chain can't say whether the key is new. */
export type TakeNewKey = (network: EthereumNetwork, signal: AbortSignal) => Promise<NewKey>

/** So many keys after the one that is handed out are looked at too. */
const lookAhead = 32n
/** Each time the counter goes far ahead: a database that is so far behind needs a person. */
const maxSkips = 16

/**
 * Takes a validator key that nobody has ever used. The index never comes again (see KeyIndices), but a database may have been restored from
 * an older backup. Therefore the chain is asked: a key that has a deposit is not handed out, for a second deposit would only top up the
 * first; and a deposit of a later key, which this database doesn't know, tells that the keys before it were handed out too. Where a Beacon API is
 * configured, the beacon chain is asked as well: a validator may be there from genesis, or the node's deposit logs may be incomplete.
 */
export function createTakeNewKey(deps: {
  keys: ValidatorKeys
  indices: KeyIndices
  store: Store
  log: Logger
  metrics: Metrics
}): TakeNewKey {
  const { keys, indices, store, log, metrics } = deps
  /** By network: the highest index that was looked at. */
  const lookedTo = new Map<string, bigint>()

  /** For each key, whether a deposit was ever made for it or the beacon chain knows it. */
  async function areUsed({ config, chain, validators }: EthereumNetwork, pubkeys: readonly Hex[], signal: AbortSignal): Promise<boolean[]> {
    try {
      const [deposits, view] = await Promise.all([
        Promise.all(pubkeys.map((pubkey) => chain.depositsFor(pubkey, signal))),
        validators?.beacon.validators(pubkeys, 'head', signal),
      ])
      return pubkeys.map((pubkey, position) => (deposits[position]?.length ?? 0) > 0 || view?.validators.has(pubkey) === true)
    } catch (error) {
      if (error instanceof ChainError) throw chainUnavailable(config.name, error)
      throw error instanceof BeaconError ? beaconUnavailable(config.name, error) : error
    }
  }

  /** The first of an index and those after it whose key has a deposit that isn't of a stake in this database. */
  async function firstUnknownDeposit(network: EthereumNetwork, index: bigint, signal: AbortSignal): Promise<bigint | undefined> {
    const { name } = network.config
    const seen = lookedTo.get(name) ?? index
    const indices = [index]
    for (let ahead = seen < index ? index + 1n : seen + 1n; ahead <= index + lookAhead; ahead++) indices.push(ahead)
    const pubkeys = indices.map((one) => keys.derive(one).publicKey)
    const deposited = await areUsed(network, pubkeys, signal)
    for (const [position, one] of indices.entries()) {
      const pubkey = pubkeys[position]
      // The key itself must be new whatever this database says.
      if (deposited[position] && pubkey !== undefined && (one === index || !(await hasStakeOf(store.db, pubkey)))) return one
    }
    if (index + lookAhead > seen) lookedTo.set(name, index + lookAhead)
    return undefined
  }

  return async (network, signal) => {
    const { name } = network.config
    for (let skips = 0; skips < maxSkips; skips++) {
      const index = await indices.next()
      const { publicKey: pubkey, secretKey } = keys.derive(index)
      const known = await firstUnknownDeposit(network, index, signal)
      if (known === undefined) return { index, pubkey, secretKey }
      metrics.knownKeySkipped(name)
      log.warn(
        { network: name, path: keyPath(known), pubkey: keys.derive(known).publicKey },
        'a validator key that was not handed out yet has a deposit already and is skipped, with those next to it: was the database restored from an older backup? Then raise keyIndexFloor',
      )
      await indices.skipBeyond(known)
    }
    throw new Error(
      'the database is far behind the chain: raise keyIndexFloor in the configuration beyond every key that was ever handed out',
    )
  }
}
