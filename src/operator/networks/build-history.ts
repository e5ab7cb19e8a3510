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
}): Promise<{ readonly count: bigint; readonly block: bigint; readonly sha256: string }> {
  const { log, signal } = options
  const { ethereum } = await readNetworksFile(options.networks)
  const found = ethereum.find(({ config }) => config.name === options.network)
  if (found === undefined) throw new NetworksFileError(`${options.networks} has no Ethereum network ${options.network}`)
  const config = { ...found.config, depositHistoryFile: undefined, depositHistorySha256: undefined }
  const chain = createEthereumChain({ config, clock: systemClock, log, signal })
  const checkpoint = await chain.depositCheckpoint(signal)
  const { count, block } = checkpoint
  return { count, block, sha256: writeCheckpointFile(options.out, checkpoint) }
}
