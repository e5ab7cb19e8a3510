import { ChainError, type EthereumChain, type Hex } from '../../chains/ethereum/chain.ts'
import type { Logger } from '../../lib/log.ts'
import { chainUnavailable } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import { keyPath, type ValidatorKeys } from '../seed.ts'
import type { Store } from '../store/database.ts'
import type { KeyIndices } from '../store/key-index.ts'
import { hasStakeOf } from '../store/stakes.ts'

export interface NewKey {
  readonly index: bigint
  readonly pubkey: Hex
  /** 32 bytes. */
  readonly secretKey: Uint8Array
}

/** @throws ProblemError `chain-unavailable` when the chain can't say whether the key is new. */
export type TakeNewKey = (chain: EthereumChain, signal: AbortSignal) => Promise<NewKey>

/** So many keys after the one that is handed out are looked at too. */
const lookAhead = 32n
/** Each time the counter goes far ahead: a database that is so far behind needs a person. */
const maxSkips = 16

/**
 * Takes a validator key that nobody has ever used. The index never comes again (see KeyIndices), but a database may have been restored from
 * an older backup. Therefore the chain is asked: a key that has a deposit is not handed out, for a second deposit would only top up the
 * first; and a deposit of a later key, which this database doesn't know, tells that the keys before it were handed out too.
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

  async function isDeposited(chain: EthereumChain, pubkey: Hex, signal: AbortSignal): Promise<boolean> {
    try {
      return (await chain.depositsFor(pubkey, signal)).length > 0
    } catch (error) {
      throw error instanceof ChainError ? chainUnavailable(chain.network, error) : error
    }
  }

  /** The first of an index and those after it whose key has a deposit that isn't of a stake in this database. */
  async function firstUnknownDeposit(chain: EthereumChain, index: bigint, signal: AbortSignal): Promise<bigint | undefined> {
    const seen = lookedTo.get(chain.network) ?? index
    const indices = [index]
    for (let ahead = seen < index ? index + 1n : seen + 1n; ahead <= index + lookAhead; ahead++) indices.push(ahead)
    const pubkeys = indices.map((one) => keys.derive(one).publicKey)
    const deposited = await Promise.all(pubkeys.map((pubkey) => isDeposited(chain, pubkey, signal)))
    for (const [position, one] of indices.entries()) {
      const pubkey = pubkeys[position]
      // The key itself must be new whatever this database says.
      if (deposited[position] && pubkey !== undefined && (one === index || !(await hasStakeOf(store.db, pubkey)))) return one
    }
    if (index + lookAhead > seen) lookedTo.set(chain.network, index + lookAhead)
    return undefined
  }

  return async (chain, signal) => {
    for (let skips = 0; skips < maxSkips; skips++) {
      const index = await indices.next()
      const { publicKey: pubkey, secretKey } = keys.derive(index)
      const known = await firstUnknownDeposit(chain, index, signal)
      if (known === undefined) return { index, pubkey, secretKey }
      metrics.knownKeySkipped(chain.network)
      log.warn(
        { network: chain.network, path: keyPath(known), pubkey: keys.derive(known).publicKey },
        'a validator key that was not handed out yet has a deposit already and is skipped, with those next to it: was the database restored from an older backup? Then raise keyIndexFloor',
      )
      await indices.skipBeyond(known)
    }
    throw new Error(
      'the database is far behind the chain: raise keyIndexFloor in the configuration beyond every key that was ever handed out',
    )
  }
}
