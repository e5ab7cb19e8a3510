import { stakePosition } from '../../chains/solana/activation.ts'
import type { SolanaClock, StakeView } from '../../chains/solana/chain.ts'
import { stakeProgram } from '../../chains/solana/programs.ts'
import { LayoutError } from '../../chains/solana/reader.ts'
import { decodeStakeAccount, type StakeState } from '../../chains/solana/stake-account.ts'
import { firstDoer, makesStake } from '../../chains/solana/stake-maker.ts'
import type { SolanaStakeBody } from '../../contract/schemas/solana.ts'
import { lamports } from '../../lib/amounts.ts'
import { ProblemError } from '../errors.ts'
import { markSeen, reviveSolanaStake, type SolanaStakeRow } from '../store/solana-stakes.ts'
import type { SolanaDeps } from './deps.ts'
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
 * remembered, since an account that was withdrawn looks like one that never was. With `past`, one that nobody has seen is looked for in the nodes' history too:
 * it may have been made and emptied between two looks. That history shows nothing proves nothing. A cancelled stake whose account is there, or was, is cancelled no longer.
 * @throws ProblemError `chain-unavailable`
 */
export async function lookAtStake(
  { store, log }: Pick<SolanaDeps, 'store' | 'log'>,
  { chain }: SolanaNetwork,
  stake: Pick<SolanaStakeRow, 'id' | 'stake_account' | 'seen_slot' | 'external_reference' | 'cancelled_at'>,
  signal: AbortSignal,
  { past = false }: { readonly past?: boolean } = {},
): Promise<StakeLook> {
  const view = await chain.stakeView(stake.stake_account, 'finalized', signal)
  const there = view.account?.owner === stakeProgram
  let seenSlot = stake.seen_slot
  if (!there && stake.seen_slot !== null && view.slot < stake.seen_slot)
    throw new ProblemError('chain-unavailable', `the service's node for ${chain.network} is behind what it showed before`, {
      retryAfterSeconds: 5,
    })
  if (there && seenSlot === null) await markSeen(store.db, stake.id, view.slot)
  if (!there && seenSlot === null && past) {
    const { stake_account: account } = stake
    const maker = await firstDoer(chain, { account, atSlot: view.slot, does: (one) => makesStake(one, account) }, signal)
    if (maker !== undefined) {
      seenSlot = maker.slot
      await markSeen(store.db, stake.id, maker.slot)
      log.warn(
        { stakeId: stake.id, network: chain.network, stakeAccount: account, signature: maker.signature },
        'a Solana stake was made and withdrawn before anybody looked',
      )
    }
  }
  if (stake.cancelled_at !== null && (there || seenSlot !== null)) {
    const revived = await store.db.transaction().execute((transaction) => reviveSolanaStake(transaction, stake.id))
    const { referenceHeldBy } = revived ?? {}
    const held = referenceHeldBy === undefined ? {} : { reference: stake.external_reference, heldBy: referenceHeldBy }
    if (revived !== undefined)
      log.error(
        { stakeId: stake.id, network: chain.network, stakeAccount: stake.stake_account, ...held },
        'a Solana stake that was cancelled was paid: it is cancelled no longer',
      )
  }
  try {
    const account = there && view.account !== undefined ? decodeStakeAccount(view.account) : undefined
    return { protocol: protocolOf(view, seenSlot !== null), slot: view.slot, account, clock: view.clock }
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error
    throw new ProblemError('chain-unavailable', `the stake account cannot be read: ${error.message}`, { retryAfterSeconds: 60 })
  }
}
