import { stakePosition } from '../../chains/solana/activation.ts'
import type { SolanaClock, StakeView } from '../../chains/solana/chain.ts'
import { stakeProgram } from '../../chains/solana/programs.ts'
import { LayoutError } from '../../chains/solana/reader.ts'
import { decodeStakeAccount, type StakeState } from '../../chains/solana/stake-account.ts'
import type { SolanaStakeBody } from '../../contract/schemas/solana.ts'
import { lamports } from '../../lib/amounts.ts'
import { ProblemError } from '../errors.ts'
import type { Store } from '../store/database.ts'
import { markSeen, type SolanaStakeRow } from '../store/solana-stakes.ts'
import type { SolanaNetwork } from './networks.ts'

export type Protocol = SolanaStakeBody['protocol']

/**
 * Where a stake is in its life, by what the cluster holds. An address without a stake account (nothing there, or only lamports that someone has
 * sent) is CREATED, or WITHDRAWN when the account is known to have been there.
 */
export function protocolOf(view: Pick<StakeView, 'account' | 'clock' | 'history' | 'arithmetic'>, wasThere: boolean): Protocol {
  const { account, clock, history, arithmetic } = view
  const epoch = Number(clock.epoch)
  if (account === undefined || account.owner !== stakeProgram)
    return { status: wasThere ? 'WITHDRAWN' : 'CREATED', activeLamports: lamports(0n), inactiveLamports: lamports(0n), epoch }
  const position = stakePosition({
    state: decodeStakeAccount(account),
    lamports: account.lamports,
    epoch: clock.epoch,
    history,
    arithmetic,
  })
  const { activationEpoch, deactivationEpoch } = position
  return {
    status: position.phase,
    ...(activationEpoch === undefined ? {} : { activationEpoch: Number(activationEpoch) }),
    ...(deactivationEpoch === undefined ? {} : { deactivationEpoch: Number(deactivationEpoch) }),
    activeLamports: lamports(position.effective),
    inactiveLamports: lamports(position.inactive),
    epoch,
  }
}

export interface StakeLook {
  readonly protocol: Protocol
  /** The finalized slot that it is of. */
  readonly slot: bigint
  /** What the stake account says, where there is one. */
  readonly account: StakeState | undefined
  readonly clock: SolanaClock
}

/**
 * Asks the cluster where a stake is, at its finalized state: what is told once isn't taken back by a fork. The first sight of the account is
 * remembered, since an account that was withdrawn looks like one that never was.
 * @throws ProblemError `chain-unavailable`
 */
export async function lookAtStake(
  store: Store,
  { chain }: SolanaNetwork,
  stake: Pick<SolanaStakeRow, 'id' | 'stake_account' | 'seen_slot'>,
  signal: AbortSignal,
): Promise<StakeLook> {
  const view = await chain.stakeView(stake.stake_account, 'finalized', signal)
  const there = view.account?.owner === stakeProgram
  if (!there && stake.seen_slot !== null && view.slot < stake.seen_slot)
    throw new ProblemError('chain-unavailable', `the service's node for ${chain.network} is behind what it showed before`, {
      retryAfterSeconds: 5,
    })
  if (there && stake.seen_slot === null) await markSeen(store.db, stake.id, view.slot)
  try {
    const account = there && view.account !== undefined ? decodeStakeAccount(view.account) : undefined
    return { protocol: protocolOf(view, stake.seen_slot !== null), slot: view.slot, account, clock: view.clock }
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error
    throw new ProblemError('chain-unavailable', `the stake account cannot be read: ${error.message}`, { retryAfterSeconds: 60 })
  }
}
