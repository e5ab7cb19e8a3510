import { Keypair } from '@solana/web3.js'
import { addressBytes } from '../../../src/chains/solana/addresses.ts'
import { voteProgram } from '../../../src/chains/solana/programs.ts'
import type { Ledger } from './ledger.ts'

/** One validator's vote account. `delinquent` is the cluster's word, and may be changed. */
export interface Validator {
  readonly voteAccount: string
  readonly node: string
  readonly commission: number
  delinquent: boolean
  /** Lamports of others that are delegated to it. */
  readonly activatedStake: bigint
}

export interface ValidatorOptions {
  /** Percent. Default 5. */
  readonly commission?: number
  readonly delinquent?: boolean
  /** Default 1,000,000 SOL. */
  readonly activatedStake?: bigint
  /** Default true. */
  readonly hasBlsKey?: boolean
}

/** The bytes of a vote account, of version 3 and 4 alike. */
const voteAccountBytes = 3762

/**
 * A vote account as the vote program's InitializeAccount leaves it (VoteStateVersions::V4, SIMD-0185; no votes yet): the stake program reads it when a
 * stake is delegated to it.
 */
export function createValidator(
  ledger: Ledger,
  { commission = 5, delinquent = false, activatedStake = 1_000_000_000_000_000n, hasBlsKey = true }: ValidatorOptions,
): Validator {
  const voteAccount = Keypair.generate().publicKey.toBase58()
  const node = Keypair.generate().publicKey.toBase58()
  const withdrawer = Keypair.generate().publicKey.toBase58()
  const data = Buffer.alloc(voteAccountBytes)
  const put = (address: string) => Buffer.from(addressBytes(address)).copy(data, at)
  let at = data.writeUInt32LE(3, 0)
  // Then the collectors of inflation rewards and of block revenue.
  for (const address of [node, withdrawer, voteAccount, node]) at += put(address)
  at = data.writeUInt16LE(commission * 100, at)
  at = data.writeUInt16LE(10_000, at)
  // No rewards of delegators to be paid yet.
  at += 8
  // A BLS key: the cluster admits no validator without one (SIMD-0357).
  at = data.writeUInt8(hasBlsKey ? 1 : 0, at)
  if (hasBlsKey) at += Buffer.alloc(48, 7).copy(data, at)
  // No votes, no root slot; one authorised voter, from epoch 0; no credits, no time.
  at += 8 + 1
  at = data.writeBigUInt64LE(1n, at)
  at = data.writeBigUInt64LE(0n, at)
  put(node)
  ledger.plant(voteAccount, {
    owner: voteProgram,
    lamports: ledger.rentExemption(voteAccountBytes),
    data: new Uint8Array(data),
    executable: false,
  })
  return { voteAccount, node, commission, delinquent, activatedStake }
}
