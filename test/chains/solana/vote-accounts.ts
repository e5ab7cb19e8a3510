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
}

/** VoteStateV3's bytes. The vote program itself would make a V4 account, which the stake program reads the same. */
const voteAccountBytes = 3762

/**
 * A vote account as the vote program's InitializeAccount leaves it (VoteStateVersions::Current, no votes yet): the stake program reads it when a
 * stake is delegated to it.
 */
export function createValidator(
  ledger: Ledger,
  { commission = 5, delinquent = false, activatedStake = 1_000_000_000_000_000n }: ValidatorOptions,
): Validator {
  const voteAccount = Keypair.generate().publicKey.toBase58()
  const node = Keypair.generate().publicKey.toBase58()
  const withdrawer = Keypair.generate().publicKey.toBase58()
  const data = Buffer.alloc(voteAccountBytes)
  let at = data.writeUInt32LE(2, 0)
  at += Buffer.from(addressBytes(node)).copy(data, at)
  at += Buffer.from(addressBytes(withdrawer)).copy(data, at)
  at = data.writeUInt8(commission, at)
  // No votes, no root slot; one authorised voter, from epoch 0.
  at += 8
  at += 1
  at = data.writeBigUInt64LE(1n, at)
  at = data.writeBigUInt64LE(0n, at)
  at += Buffer.from(addressBytes(node)).copy(data, at)
  // 32 prior voters of 48 bytes, the index of the last (31), and that there are none.
  at += 32 * 48
  at = data.writeBigUInt64LE(31n, at)
  data.writeUInt8(1, at)
  ledger.plant(voteAccount, {
    owner: voteProgram,
    lamports: ledger.rentExemption(voteAccountBytes),
    data: new Uint8Array(data),
    executable: false,
  })
  return { voteAccount, node, commission, delinquent, activatedStake }
}
