import { ChainError, type EthereumChain } from '../../chains/ethereum/chain.ts'
import type { EthereumNetworkConfig } from '../../chains/ethereum/networks.ts'
import type { Metrics } from '../metrics.ts'

/** A network that the service serves: its constants, and its chain. */
export interface EthereumNetwork {
  readonly config: EthereumNetworkConfig
  readonly chain: EthereumChain
}
export type EthereumNetworks = ReadonlyMap<string, EthereumNetwork>

/** The same chain, with every failed call counted. */
export function countErrors(chain: EthereumChain, metrics: Metrics): EthereumChain {
  const counted =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      try {
        return await call(...args)
      } catch (error) {
        metrics.rpcError(chain.network, error instanceof ChainError ? error.code : 'unknown')
        throw error
      }
    }
  return {
    network: chain.network,
    head: counted((signal) => chain.head(signal)),
    transactionCount: counted((address, at, signal) => chain.transactionCount(address, at, signal)),
    balance: counted((address, signal) => chain.balance(address, signal)),
    priorityFee: counted((signal) => chain.priorityFee(signal)),
    estimateGas: counted((call, signal) => chain.estimateGas(call, signal)),
    broadcast: counted((raw, signal) => chain.broadcast(raw, signal)),
    transaction: counted((hash, signal) => chain.transaction(hash, signal)),
    receipt: counted((hash, signal) => chain.receipt(hash, signal)),
    depositsFor: counted((pubkey, signal) => chain.depositsFor(pubkey, signal)),
  }
}
