import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { z } from 'zod'
import type { Address, BlockHash, Hex } from './chain.ts'

/**
 * The deposit history up to a block, compact: 12 bytes a deposit, sorted by what is kept of the public key. Mainnet has more than two million deposits; to
 * read their logs from a public node takes hours. The file holds no secret and no claim: the contract's own deposit root, at a block after it, tells whether it
 * is of this contract (see `createDepositHistory`).
 */
export interface DepositCheckpoint {
  readonly chainId: number
  readonly contract: Address
  /** All deposits up to here are in it, and this block does not change any more. */
  readonly block: bigint
  readonly blockHash: BlockHash
  readonly lastDepositBlock: bigint
  /** Of the contract's tree. */
  readonly count: bigint
  readonly branch: readonly Hex[]
  /** `high, low, block` of each deposit that is not there twice, sorted. */
  readonly entries: Uint32Array
}

/** A file that can't be used. */
export class DepositCheckpointError extends Error {
  override readonly name = 'DepositCheckpointError'
}

const hex = (bytes: number) => z.string().regex(new RegExp(`^0x[0-9a-f]{${bytes * 2}}$`))
const whole = z.int().nonnegative()
const headerSchema = z.strictObject({
  kind: z.literal('staking-operator deposit history'),
  version: z.literal(1),
  chainId: z.int().positive(),
  contract: hex(20),
  block: whole,
  blockHash: hex(32),
  lastDepositBlock: whole,
  count: whole,
  branch: z.array(hex(32)).length(32),
  entries: whole.max(200_000_000),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
const maxHeader = 16_384

const bytesOf = ({ buffer, byteOffset, byteLength }: Uint32Array): Uint8Array => new Uint8Array(buffer, byteOffset, byteLength)

/** A line of JSON, and the entries as they are in memory (little-endian). */
export function encodeCheckpoint(checkpoint: DepositCheckpoint): Uint8Array {
  const { chainId, contract, block, blockHash, lastDepositBlock, count, branch, entries } = checkpoint
  const body = bytesOf(entries)
  const header = JSON.stringify({
    ...{ kind: 'staking-operator deposit history', version: 1, chainId, contract: contract.toLowerCase() },
    ...{ block: Number(block), blockHash, lastDepositBlock: Number(lastDepositBlock), count: Number(count), branch },
    ...{ entries: entries.length / 3, sha256: bytesToHex(sha256(body)) },
  })
  const line = new TextEncoder().encode(`${header}\n`)
  const file = new Uint8Array(line.length + body.length)
  file.set(line)
  file.set(body, line.length)
  return file
}

/** @throws DepositCheckpointError for a file that is cut, changed, or of another version */
export function decodeCheckpoint(file: Uint8Array): DepositCheckpoint {
  const end = file.subarray(0, maxHeader).indexOf(10)
  const parsed = headerSchema.safeParse(end < 0 ? undefined : parseJson(new TextDecoder().decode(file.subarray(0, end))))
  if (!parsed.success) throw new DepositCheckpointError('it is no deposit history of this version')
  const { chainId, contract, block, blockHash, lastDepositBlock, count, branch, entries: length, sha256: digest } = parsed.data
  const body = file.subarray(end + 1)
  if (body.length !== length * 12 || length > count) throw new DepositCheckpointError('it is cut short, or has more than it says')
  if (bytesToHex(sha256(body)) !== digest)
    throw new DepositCheckpointError('its content is not what its digest says: it was changed or damaged')
  const entries = new Uint32Array(body.length / 4)
  bytesOf(entries).set(body)
  return {
    ...{
      chainId,
      contract: contract as Hex,
      block: BigInt(block),
      blockHash: blockHash as Hex,
      lastDepositBlock: BigInt(lastDepositBlock),
    },
    ...{ count: BigInt(count), branch: branch as Hex[], entries },
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
