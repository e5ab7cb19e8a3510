import { stakeProgram } from '../../chains/solana/programs.ts'
import {
  buildDeactivationMessage,
  buildStakeMessage,
  buildWithdrawalMessage,
  computeUnits,
  type TransactionFrame,
} from '../../chains/solana/stake.ts'
import { lamports } from '../../lib/amounts.ts'
import { ProblemError } from '../errors.ts'
import type { SolanaStakeRow } from '../store/solana-stakes.ts'
import type { SolanaTransactionRow } from '../store/solana-transactions.ts'
import type { SolanaPolicy } from './deps.ts'
import type { SolanaNetwork } from './networks.ts'

export type Action =
  | { readonly kind: 'stake' }
  | { readonly kind: 'deactivation' }
  | { readonly kind: 'withdrawal'; readonly destination: string }

/** What a transaction was made for, to make it anew. */
export const actionOf = ({ kind, destination }: Pick<SolanaTransactionRow, 'kind' | 'destination'>): Action => {
  if (kind !== 'withdrawal') return { kind }
  if (destination === null) throw new Error('a withdrawal has no destination')
  return { kind, destination }
}

export type PreparedColumns = Pick<SolanaTransactionRow, 'message' | 'recent_blockhash' | 'last_valid_block_height' | 'prepared_slot'>

/**
 * Makes the message to sign, with a fresh blockhash and a priority fee as the cluster lately took, within the policy.
 * @throws ProblemError `chain-unavailable`; `invalid-state` when the account is not as the action needs it
 */
export async function prepare(
  { chain }: SolanaNetwork,
  policy: SolanaPolicy,
  stake: SolanaStakeRow,
  action: Action,
  signal: AbortSignal,
): Promise<PreparedColumns> {
  const feePayer = action.kind === 'withdrawal' ? stake.withdrawal_fee_payer : stake.fee_payer
  const { stake_account: stakeAccount, stake_authority: stakeAuthority, withdraw_authority: withdrawAuthority } = stake
  const units = computeUnits[action.kind]
  const [account, recentFee] = await Promise.all([
    action.kind === 'deactivation' ? undefined : chain.account(stakeAccount, 'confirmed', signal),
    chain.recentPriorityFee([feePayer, stakeAccount], signal),
  ])
  const highest = (policy.maxPriorityFeeLamports * 1_000_000n) / BigInt(units)
  // Last, so that as much as possible of its life is left.
  const { blockhash, lastValidBlockHeight, slot } = await chain.latestBlockhash(signal)
  const frame: TransactionFrame = {
    feePayer,
    recentBlockhash: blockhash,
    computeUnitLimit: units,
    computeUnitPriceMicroLamports: recentFee < highest ? recentFee : highest,
  }
  const message = ((): Uint8Array => {
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
  })()
  return {
    message: Buffer.from(message).toString('base64'),
    recent_blockhash: blockhash,
    last_valid_block_height: lastValidBlockHeight,
    prepared_slot: slot,
  }
}
