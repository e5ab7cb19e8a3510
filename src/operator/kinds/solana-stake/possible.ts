import { lockText, lockupInForce } from '../../../chains/solana/stake-account.ts'
import { inSol } from '../../../lib/amounts.ts'
import { stall, wait } from '../../engine/verdict.ts'
import { metaOf, protocolOf, type StakeLook } from './chain.ts'
import type { ActionKind, StakeTerms } from './steps.ts'

/**
 * Whether the chain lets a transaction do its work now, by the operator's own reading of it.
 * @param made A slot at which the stake account was there, 0 if it never was. `poll`, `activating`: how often a network, and a stake that cools down, is looked
 * at, in ms @throws Halt
 */
export function assertPossible(
  kind: ActionKind,
  terms: StakeTerms,
  look: StakeLook,
  { made, poll, activating }: { readonly made: number; readonly poll: number; readonly activating: number },
): void {
  if (kind !== 'stake' && look.state === undefined)
    throw wait(
      'ChainUnavailable',
      `The node does not show the stake account ${terms.stakeAccount} that was there in slot ${made}: it lags. It is asked again.`,
      poll,
    )
  if (look.rewardsActive)
    throw wait(
      'EpochRewards',
      'Rewards are being distributed at the beginning of the epoch: stakes cannot change until that is over.',
      poll,
    )
  if (kind === 'stake' && look.state !== undefined && look.state.kind !== 'stake')
    throw stall(
      'DelegationChanged',
      `The stake account ${terms.stakeAccount} is there with ${inSol((look.account?.lamports ?? 0n).toString())}, ${look.state.kind === 'initialized' ? 'initialised and not delegated' : 'and not initialised'}: somebody has made it with this stake's keys, and not by this resource's transaction. Nothing was signed, and nothing is paid into it. Find out who did; delegate it to ${terms.voteAccount} (solana delegate-stake), or withdraw it and create another resource.`,
    )
  if (kind !== 'withdrawal') return
  const { status, activeLamports } = protocolOf(look, made, undefined)
  if (status !== 'Inactive')
    throw wait(
      'AwaitingDeactivation',
      `The stake is ${status.toLowerCase()}: ${inSol(activeLamports)} are active still, and only an inactive stake can be withdrawn. It cools down at the end of an epoch.`,
      activating,
    )
  const meta = metaOf(look.state)
  if (meta !== undefined && lockupInForce(meta, look.clock))
    throw stall(
      'LockupInForce',
      `The stake account ${terms.stakeAccount} has a lockup in force until ${lockText(meta, look.clock)} (custodian ${meta.lockup.custodian}), which this resource did not make. Nothing was signed. It goes on when the lockup is over or lifted by its custodian.`,
    )
}
