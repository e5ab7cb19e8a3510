import type { SolanaAddress } from './addresses.ts'
import { createReader, LayoutError } from './reader.ts'

/** What a vote account says of what its delegators get. */
export interface VoteTerms {
  readonly node: SolanaAddress
  /** Hundredths of a percent of the inflation rewards that the validator keeps; over 10,000 is possible and means everything. */
  readonly commissionBps: number
  /** The same of the block revenue, of which delegators get the rest once the cluster shares it (SIMD-0123); undefined before version 4. */
  readonly blockRevenueBps: number | undefined
  /** Whether it names a BLS key (SIMD-0387); undefined before version 4, which has no place for one. */
  readonly blsKey: boolean | undefined
}

/** As many bytes as are read here. */
export const voteTermsBytes = 4 + 4 * 32 + 2 + 2 + 8 + 1

/**
 * Reads the beginning of a vote account's data. Source: solana-vote-interface, VoteStateVersions (1 V1_14_11, 2 V3, 3 V4; SIMD-0185 for version 4), read
 * 28 November 2026. Tag 0 (V0_23_5) is not delegated to any more.
 * @throws LayoutError
 */
export function decodeVoteTerms(data: Uint8Array): VoteTerms {
  const reader = createReader(data, 'the vote account')
  const tag = reader.u32()
  if (tag === 1 || tag === 2) {
    const node = reader.address()
    reader.bytes(32)
    return { node, commissionBps: reader.u8() * 100, blockRevenueBps: undefined, blsKey: undefined }
  }
  if (tag !== 3) throw new LayoutError(`a vote account's version is 1 to 3, this one's is ${tag}`)
  const node = reader.address()
  // Authorised withdrawer, and the collectors of inflation rewards and block revenue.
  reader.bytes(3 * 32)
  const [commissionBps, blockRevenueBps] = [u16(reader.bytes(2)), u16(reader.bytes(2))]
  reader.u64()
  return { node, commissionBps, blockRevenueBps, blsKey: reader.u8() === 1 }
}

const u16 = ([low = 0, high = 0]: Uint8Array): number => low + high * 256
