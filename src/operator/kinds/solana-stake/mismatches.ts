import type { SolanaAddress } from '../../../chains/solana/addresses.ts'
import { type ExpectedTransaction, type TransactionMismatch, verifyTransaction } from '../../../chains/solana/verify-transaction.ts'
import { type Lamports, lamports } from '../../../lib/amounts.ts'
import { allocates, feePayerOf } from './message.ts'
import type { ActionKind, StakeTerms } from './steps.ts'

/** Compute units that a transaction may ask for (MAX_COMPUTE_UNIT_LIMIT of the cluster). What it needs, a simulation tells. */
const MAX_COMPUTE_UNITS = 1_400_000

/** The step that a spec asks for, and how much is staked. */
export type Asked = { readonly kind: 'stake'; readonly amount: Lamports } | { readonly kind: Exclude<ActionKind, 'stake'> }

/** What a message is compared with, besides the spec. `withdrawn`: all that the account holds. */
export interface Given {
  readonly withdrawn: bigint
  readonly blockhash: string | undefined
  readonly feeCap: bigint
}

/** What a transaction must do, by the spec and the keys. */
function expected(
  asked: Asked,
  terms: StakeTerms,
  destination: SolanaAddress,
  more: Given & { readonly feePayer: string; readonly prefunded: boolean },
): ExpectedTransaction {
  const { stakeAuthority, withdrawAuthority, stakeAccount, voteAccount, stakeId } = terms
  const frame = {
    feePayer: more.feePayer,
    limits: { maxComputeUnits: MAX_COMPUTE_UNITS, maxPriorityFeeLamports: more.feeCap },
    ...(more.blockhash === undefined ? {} : { recentBlockhash: more.blockhash }),
  }
  switch (asked.kind) {
    case 'stake':
      return {
        ...frame,
        kind: asked.kind,
        seed: stakeId,
        amount: asked.amount,
        stakeAuthority,
        withdrawAuthority,
        voteAccount,
        prefunded: more.prefunded,
      }
    case 'deactivation':
      return { ...frame, kind: asked.kind, stakeAccount, stakeAuthority }
    case 'withdrawal':
      return { ...frame, kind: asked.kind, stakeAccount, withdrawAuthority, destination, amount: lamports(more.withdrawn) }
  }
}

/**
 * Compares a message with the spec. A stake account may be made in either of two ways, which both pay the same amount to the same account once:
 * which of them can land depends on whether strangers have sent lamports to the address, and a simulation tells.
 */
export function mismatches(
  asked: Asked,
  terms: StakeTerms,
  destination: SolanaAddress,
  message: Uint8Array,
  more: Given,
): readonly TransactionMismatch[] {
  const feePayer = feePayerOf(asked.kind, terms, message)
  const plain = verifyTransaction(message, expected(asked, terms, destination, { ...more, feePayer, prefunded: false }))
  if (plain.length === 0 || asked.kind !== 'stake' || !allocates(message)) return plain
  return verifyTransaction(message, expected(asked, terms, destination, { ...more, feePayer, prefunded: true }))
}
