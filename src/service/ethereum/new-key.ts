import type { EthereumChain, Hex } from '../../chains/ethereum/chain.ts'
import { ChainError } from '../../chains/ethereum/chain.ts'
import type { Logger } from '../../lib/log.ts'
import { chainUnavailable } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import { keyPath, type ValidatorKeys } from '../seed.ts'
import type { KeyIndices } from '../store/key-index.ts'

export interface NewKey {
  readonly index: bigint
  readonly pubkey: Hex
  /** 32 bytes. */
  readonly secretKey: Uint8Array
}

/** More known keys in a row than this mean a database that is far behind: a person must set the floor. */
const maxSkipped = 256

/**
 * Takes a validator key that nobody has ever used. The index never comes again (see KeyIndices); and since a database may have been restored
 * from an older backup, the chain is asked as well: a key with a deposit is skipped, for a second deposit would only top up the first.
 * @throws ProblemError `chain-unavailable` when the chain can't say.
 */
export async function takeNewKey(
  deps: { keys: ValidatorKeys; indices: KeyIndices; chain: EthereumChain; log: Logger; metrics: Metrics },
  signal: AbortSignal,
): Promise<NewKey> {
  const { keys, indices, chain, log, metrics } = deps
  for (let skipped = 0; skipped < maxSkipped; skipped++) {
    const index = await indices.next()
    const { publicKey: pubkey, secretKey } = keys.derive(index)
    const deposits = await chain.depositsFor(pubkey, signal).catch((error: unknown) => {
      throw error instanceof ChainError ? chainUnavailable(chain.network, error) : error
    })
    if (deposits.length === 0) return { index, pubkey, secretKey }
    metrics.knownKeySkipped(chain.network)
    log.warn(
      { network: chain.network, keyIndex: index.toString(), path: keyPath(index), pubkey, transactionHash: deposits[0]?.transactionHash },
      'a new validator key has a deposit already and is skipped: was the database restored from an older backup? Then raise keyIndexFloor',
    )
  }
  throw new Error(`${maxSkipped} validator keys in a row have deposits already: raise keyIndexFloor in the configuration`)
}
