import type { Clock } from '../../lib/clock.ts'
import { ChainError, type EthereumChain } from './chain.ts'
import { quantity, read } from './rpc-formats.ts'
import type { RpcNodes } from './rpc-nodes.ts'
import { dearer, fromAmsterdam, measureStorageGas, type StorageGas } from './storage-gas.ts'

/** A fork is announced for months: what a slot costs is measured so often. */
const storageGasMs = 600_000

/** What a new slot costs, as the nodes' own estimates tell it. */
export function createStorageGasReads(nodes: RpcNodes, clock: Clock): EthereumChain['storageGas'] {
  let storage: { readonly at: number; readonly gas: StorageGas } | undefined
  return async (signal) => {
    const now = clock.monotonicMs()
    if (storage !== undefined && now - storage.at < storageGasMs) return storage.gas
    // A node refuses a creation that it can't afford to look at, or has no estimates of any: what is known is taken then, for a while too.
    const gas = await nodes
      .first(
        (node) =>
          measureStorageGas(async (data) => read(quantity, await node.call('eth_estimateGas', [{ data }], signal), 'eth_estimateGas')),
        signal,
      )
      .then(
        (measured) => dearer(measured),
        (error: unknown) => {
          signal.throwIfAborted()
          if (error instanceof ChainError || error instanceof RangeError) return fromAmsterdam
          throw error
        },
      )
    storage = { at: now, gas }
    return gas
  }
}
