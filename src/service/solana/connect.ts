import type { NodeBoard } from '../../chains/nodes/board.ts'
import type { SolanaNetworkConfig } from '../../chains/solana/networks.ts'
import { createSolanaChain } from '../../chains/solana/rpc-chain.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import type { SolanaNetworks } from './networks.ts'

/** Of one call to a node: several fit into the time that a request has. */
const timeoutMs = 6_000

/** The clusters of a configuration. Connects to nothing yet. */
export const connectSolanaNetworks = (given: {
  readonly networks: readonly SolanaNetworkConfig[]
  /** By network. */
  readonly defaultVoteAccounts: Readonly<Record<string, string>>
  readonly clock: Clock
  readonly log: Logger
  /** Shows the nodes' health, for metrics. */
  readonly nodes?: NodeBoard
}): SolanaNetworks =>
  new Map(
    given.networks.map((config) => {
      const { clock, log } = given
      const defaultVoteAccount = given.defaultVoteAccounts[config.name]
      const chain = createSolanaChain({ config, clock, log, timeoutMs, onNodes: (read) => given.nodes?.set(config.name, read) })
      return [config.name, { config, chain, ...(defaultVoteAccount === undefined ? {} : { defaultVoteAccount }) }]
    }),
  )
