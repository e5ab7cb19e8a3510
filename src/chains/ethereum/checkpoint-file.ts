import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { type DepositCheckpoint, DepositCheckpointError, decodeCheckpoint, encodeCheckpoint } from './deposit-checkpoint.ts'
import type { EthereumNetworkConfig } from './networks.ts'
import type { ChainLog } from './rpc-nodes.ts'

/**
 * The deposit history that a network's configuration names. One that is missing, damaged or of another network is said and not used: the logs are read instead, which
 * takes longer and is as right.
 */
export function readCheckpointFile(
  { name, chainId, depositContractAddress, depositHistoryFile: file, depositHistorySha256: expected }: EthereumNetworkConfig,
  log: ChainLog | undefined,
): DepositCheckpoint | undefined {
  if (file === undefined) return undefined
  const unused = (why: string): undefined =>
    void log?.warn({ network: name, file }, `the deposit history file is not used, and all deposits are read from the chain: ${why}`)
  let bytes: Uint8Array
  try {
    bytes = readFileSync(file)
  } catch (error) {
    return unused(`it cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`)
  }
  if (expected !== undefined && sha256Of(bytes) !== expected)
    return unused('it is another file than the one that depositHistorySha256 is of: it was changed, damaged, or made anew')
  try {
    const checkpoint = decodeCheckpoint(bytes)
    if (checkpoint.chainId !== chainId || checkpoint.contract !== depositContractAddress.toLowerCase())
      return unused(`it is of chain id ${checkpoint.chainId} and contract ${checkpoint.contract}`)
    log?.info(
      { network: name, file, block: Number(checkpoint.block), deposits: Number(checkpoint.count) },
      'the deposit history begins with a file',
    )
    return checkpoint
  } catch (error) {
    if (error instanceof DepositCheckpointError) return unused(error.message)
    throw error
  }
}

/** Whole or not at all: beside the file, and then in its place. @returns its SHA-256, for `depositHistorySha256` */
export function writeCheckpointFile(file: string, checkpoint: DepositCheckpoint): string {
  const beside = `${file}.new`
  const bytes = encodeCheckpoint(checkpoint)
  writeFileSync(beside, bytes)
  renameSync(beside, file)
  return sha256Of(bytes)
}

const sha256Of = (bytes: Uint8Array): string => bytesToHex(sha256(bytes))
