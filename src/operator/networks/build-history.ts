import { writeCheckpointFile } from '../../chains/ethereum/checkpoint-file.ts'
import { createEthereumChain } from '../../chains/ethereum/rpc-chain.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log.ts'
import { NetworksFileError, readNetworksFile } from './networks-file.ts'

/**
 * Reads all deposits of a network into a file, from the nodes of the networks file; the contract's own count and root say that none is missing. What was made
 * before is not begun with: a file is as good as the nodes that it was made by. @throws NetworksFileError, ChainError
 */
export async function buildHistory(options: {
  readonly networks: string
  readonly network: string
  readonly out: string
  readonly log: Logger
  readonly signal: AbortSignal
}): Promise<{ readonly count: bigint; readonly block: bigint }> {
  const { log, signal } = options
  const { ethereum } = await readNetworksFile(options.networks)
  const found = ethereum.find(({ config }) => config.name === options.network)
  if (found === undefined) throw new NetworksFileError(`${options.networks} has no Ethereum network ${options.network}`)
  const { depositHistoryFile: _before, ...config } = found.config
  const chain = createEthereumChain({ config: { ...config, depositHistoryFile: undefined }, clock: systemClock, log, signal })
  const checkpoint = await chain.depositCheckpoint(signal)
  writeCheckpointFile(options.out, checkpoint)
  return checkpoint
}
