import { type SolanaChain, SolanaError } from '../../chains/solana/chain.ts'
import type { SolanaNetworkConfig } from '../../chains/solana/networks.ts'
import { ProblemError } from '../errors.ts'
import type { Metrics } from '../metrics.ts'

/** A cluster that the service serves. */
export interface SolanaNetwork {
  readonly config: SolanaNetworkConfig
  readonly chain: SolanaChain
  /** Where a stake goes that names no vote account. */
  readonly defaultVoteAccount?: string
}
export type SolanaNetworks = ReadonlyMap<string, SolanaNetwork>

const defaultRetrySeconds = 5

/** Whatever keeps the cluster from answering is the same to a client: nothing was done, ask again later. */
export const solanaUnavailable = (network: string, error: SolanaError): ProblemError =>
  new ProblemError('chain-unavailable', `the service's node for ${network} does not answer as it should (${error.code})`, {
    retryAfterSeconds: error.retryAfterMs === undefined ? defaultRetrySeconds : Math.max(1, Math.ceil(error.retryAfterMs / 1000)),
  })

/** The network of a stake. @throws ProblemError `chain-unavailable` when it is no longer configured. */
export function networkOf(networks: SolanaNetworks, name: string): SolanaNetwork {
  const network = networks.get(name)
  if (network === undefined)
    throw new ProblemError('chain-unavailable', `the network ${name} is not configured any more`, { retryAfterSeconds: 60 })
  return network
}

/** A node that keeps no history, or serves none of an address, shows nothing: that proves nothing, and stops nobody. */
const pastOf =
  (chain: SolanaChain): SolanaChain['past'] =>
  async (...args) => {
    try {
      return await chain.past(...args)
    } catch (error) {
      if (error instanceof SolanaError && (error.code === 'no-history' || error.isLasting)) return []
      throw error
    }
  }

/** The same network, with every failed call counted and told as a problem: the service only reads, so that each failure means "later". */
export function asProblems(network: SolanaNetwork, metrics: Metrics): SolanaNetwork {
  const { chain } = network
  const told =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      try {
        return await call(...args)
      } catch (error) {
        metrics.rpcError(chain.network, error instanceof SolanaError ? error.code : 'unknown')
        throw error instanceof SolanaError ? solanaUnavailable(chain.network, error) : error
      }
    }
  return {
    ...network,
    chain: {
      network: chain.network,
      epochInfo: told(chain.epochInfo),
      blockHeight: told(chain.blockHeight),
      latestBlockhash: told(chain.latestBlockhash),
      account: told(chain.account),
      balance: told(chain.balance),
      rentExemption: told(chain.rentExemption),
      minimumDelegation: told(chain.minimumDelegation),
      stakeView: told(chain.stakeView),
      voteAccount: told(chain.voteAccount),
      landingFacts: told(chain.landingFacts),
      looks: told(chain.looks),
      past: told(pastOf(chain)),
      message: told(chain.message),
      feeFor: told(chain.feeFor),
      recentPriorityFee: told(chain.recentPriorityFee),
      simulate: told(chain.simulate),
      sendTransaction: told(chain.sendTransaction),
    },
  }
}
