import { decodeMessage } from '../../chains/solana/message.ts'
import { stakeProgram } from '../../chains/solana/programs.ts'
import {
  buildDeactivationMessage,
  buildStakeMessage,
  buildWithdrawalMessage,
  computeUnits,
  type TransactionFrame,
} from '../../chains/solana/stake.ts'
import { describeFailure, type FailureMeaning } from '../../chains/solana/transaction-error.ts'
import { lamports } from '../../lib/amounts.ts'
import { ProblemError } from '../errors.ts'
import type { SolanaStakeRow } from '../store/solana-stakes.ts'
import type { SolanaTransactionRow } from '../store/solana-transactions.ts'
import type { SolanaPolicy } from './deps.ts'
import type { SolanaNetwork } from './networks.ts'

export type Action =
  | { readonly kind: 'stake' }
  | { readonly kind: 'deactivation' }
  | { readonly kind: 'withdrawal'; readonly destination: string; readonly feePayer: string }

/** What a transaction was made for, to make it anew. */
export const actionOf = ({ kind, destination, message }: Pick<SolanaTransactionRow, 'kind' | 'destination' | 'message'>): Action => {
  if (kind !== 'withdrawal') return { kind }
  if (destination === null) throw new Error('a withdrawal has no destination')
  return { kind, destination, feePayer: decodeMessage(Buffer.from(message, 'base64')).feePayer }
}

export type PreparedColumns = Pick<SolanaTransactionRow, 'message' | 'recent_blockhash' | 'last_valid_block_height' | 'prepared_slot'>

export interface PrepareOptions {
  /** From 1: each further attempt offers twice as much, as the one before did not land. */
  readonly attempt: number
  /** The most that the client lets a transaction offer; the service's policy holds as well. */
  readonly maxPriorityFeeLamports: bigint | undefined
}

/** Of a further attempt at the least, in millionths of a lamport a unit: where the recent fees are 0, twice nothing is nothing. */
const floorOfRetries = 10_000n
/** The runtime's limit for a transaction (MAX_COMPUTE_UNIT_LIMIT). */
const maxUnits = 1_400_000

/**
 * Makes the message to sign, with a fresh blockhash, compute units as a simulation used them, and a priority fee as the cluster lately took, within policy
 * and the client's cap.
 * @throws ProblemError `chain-unavailable`; `invalid-state` when the account is not as the action needs it, or the simulation says that it would fail
 */
export async function prepare(
  { chain }: SolanaNetwork,
  policy: SolanaPolicy,
  stake: SolanaStakeRow,
  action: Action,
  { attempt, maxPriorityFeeLamports }: PrepareOptions,
  signal: AbortSignal,
): Promise<PreparedColumns> {
  const feePayer = action.kind === 'withdrawal' ? action.feePayer : stake.fee_payer
  const { stake_account: stakeAccount, stake_authority: stakeAuthority, withdraw_authority: withdrawAuthority } = stake
  const [account, recentFee] = await Promise.all([
    action.kind === 'deactivation' ? undefined : chain.account(stakeAccount, 'confirmed', signal),
    chain.recentPriorityFee([feePayer, stakeAccount], signal),
  ])
  const build = (frame: TransactionFrame): Uint8Array => {
    switch (action.kind) {
      case 'stake':
        if (account?.owner === stakeProgram)
          throw new ProblemError('invalid-state', `the stake account ${stakeAccount} is on the chain already`)
        return buildStakeMessage({
          ...frame,
          seed: stake.id,
          stakeAuthority,
          withdrawAuthority,
          voteAccount: stake.vote_account,
          amount: lamports(stake.amount_lamports),
          prefunded: account !== undefined && account.lamports > 0n,
        })
      case 'deactivation':
        return buildDeactivationMessage({ ...frame, stakeAccount, stakeAuthority })
      case 'withdrawal':
        if (account?.owner !== stakeProgram)
          throw new ProblemError('invalid-state', `the stake account ${stakeAccount} is not on the chain`)
        return buildWithdrawalMessage({
          ...frame,
          stakeAccount,
          withdrawAuthority,
          destination: action.destination,
          amount: lamports(account.lamports),
        })
    }
  }
  // Any blockhash does for a simulation: the node puts its own in its place.
  const tried = build({ feePayer, recentBlockhash: feePayer, computeUnitLimit: maxUnits, computeUnitPriceMicroLamports: 0n })
  const { failure, meaning, unitsConsumed } = await chain.simulate(tried, { replaceBlockhash: true }, signal)
  if (failure !== undefined && meaning !== undefined && refused.has(meaning)) {
    throw new ProblemError(
      'invalid-state',
      `the ${action.kind} would fail on the chain: ${refused.get(meaning)} (${describeFailure(failure)})`,
    )
  }
  const units = failure === undefined ? unitsFor(action, unitsConsumed) : computeUnits[action.kind]
  const cap = least(policy.maxPriorityFeeLamports, maxPriorityFeeLamports)
  const wanted = attempt <= 1 ? recentFee : most(recentFee, floorOfRetries) << BigInt(Math.min(attempt - 1, 20))
  // Last, so that as much as possible of its life is left.
  const { blockhash, lastValidBlockHeight, slot } = await chain.latestBlockhash(signal)
  const message = build({
    feePayer,
    recentBlockhash: blockhash,
    computeUnitLimit: units,
    computeUnitPriceMicroLamports: least(wanted, (cap * 1_000_000n) / BigInt(units)),
  })
  return {
    message: Buffer.from(message).toString('base64'),
    recent_blockhash: blockhash,
    last_valid_block_height: lastValidBlockHeight,
    prepared_slot: slot,
  }
}

/**
 * What the client can't mend by waiting or by funding an account. Other failures are of the moment (rewards are distributed, the payer is empty) and are found
 * again when the transaction is sent.
 */
const refused: ReadonlyMap<FailureMeaning, string> = new Map([
  ['wrong-authority', "the stake account has other authorities than this stake's"],
  ['lockup-in-force', "the stake account's lockup is in force"],
  ['already-deactivated', 'the stake is deactivated already'],
  ['too-soon-to-redelegate', 'the stake was deactivated in this epoch'],
  ['insufficient-delegation', "the amount is under the cluster's minimum delegation"],
])

/** What was measured for the action, or what a simulation used with a third on top: a stake that cooled down over many epochs takes more. */
function unitsFor({ kind }: Action, used: bigint): number {
  const measured = Number((used * 4n) / 3n)
  return Math.min(maxUnits, Math.max(computeUnits[kind], measured))
}

const least = (a: bigint, b: bigint | undefined): bigint => (b === undefined || a < b ? a : b)
const most = (a: bigint, b: bigint): bigint => (a > b ? a : b)
