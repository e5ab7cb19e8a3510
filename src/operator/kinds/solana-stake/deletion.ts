import { inSol } from '../../../lib/amounts.ts'
import { CONFIRM_DELETE_ANNOTATION, isDeletionConfirmed } from '../../../resources/meta.ts'
import { asksForSignature } from '../../../resources/mode.ts'
import type { SolanaStake, SolanaStakeStatus } from '../../../resources/solana-stake.ts'
import type { Deletion } from '../../engine/deletion.ts'

/** What the log has of the resource's stake, whatever its status says. */
export type LoggedStake =
  /** Nothing was ever signed for it. */
  | { readonly is: 'none' }
  /** The log has nothing of a stake that was verified: it may be younger than the stake, or have been set back. */
  | { readonly is: 'unknown' }
  /** Each attempt is proven dead. */
  | { readonly is: 'idle' }
  | { readonly is: 'open'; readonly signature: string }
  | { readonly is: 'landed'; readonly stakeAccount: string }
  /** All of it was withdrawn, to where the resource says. */
  | { readonly is: 'withdrawn' }

const howToForget = ({ metadata: { name, namespace = '' } }: SolanaStake): string =>
  `To forget it in Kubernetes all the same (no money moves by that), confirm: kubectl annotate solanastake ${name} -n ${namespace} ${CONFIRM_DELETE_ANNOTATION}=${name}`
const howToWithdraw = ({ metadata: { name, namespace = '' } }: SolanaStake): string =>
  `To get the money out first: kubectl patch solanastake ${name} -n ${namespace} --type merge -p '{"spec":{"desiredState":"Withdrawn"}}'.`

/** Decided by the log alone: nothing that a tenant can write has a say, and what was refused before anything was signed goes at once. */
export function decideSolanaDeletion(resource: SolanaStake, logged: LoggedStake): Deletion {
  const { spec } = resource
  if (isDeletionConfirmed(resource)) return { do: 'release', because: 'its deletion was confirmed by annotation' }
  switch (logged.is) {
    case 'none':
      return { do: 'release', because: 'nothing was ever signed for it' }
    case 'unknown':
      return {
        do: 'watch',
        message: `Deleted; the staking API and the chain are asked whether anything was staked before it goes. ${howToForget(resource)}`,
      }
    case 'idle':
      return { do: 'release', because: 'nothing was ever staked, and nothing of it can land' }
    case 'withdrawn':
      return { do: 'release', because: 'all its money was withdrawn' }
    case 'open':
      return {
        do: 'watch',
        message: `Deleted, but its transaction ${logged.signature} may still land; nothing more is signed. It goes once that is certain. ${howToForget(resource)}`,
      }
    case 'landed': {
      const holds = `${inSol(spec.amountLamports)} were staked in ${logged.stakeAccount}, and are not withdrawn`
      if (spec.desiredState === 'Withdrawn' && asksForSignature(spec))
        return {
          do: 'withdraw',
          message: `Deleted, but ${holds}: as spec.desiredState says, they are being withdrawn, and then it goes. ${howToForget(resource)}`,
        }
      return {
        do: 'hold',
        message: `Deleted, but ${holds}. It goes once they are. ${spec.desiredState === 'Withdrawn' ? `${spec.suspend === true ? 'spec.suspend' : 'spec.mode: Plan'} keeps it from withdrawing.` : howToWithdraw(resource)} ${howToForget(resource)}`,
      }
    }
  }
}

/**
 * What is released since nothing was paid for it is cancelled at the staking API first: a stake that stays there keeps its name for ever. One that was adopted
 * is not this resource's to cancel.
 */
export function cancelFirst(
  resource: SolanaStake,
  { cancelled }: Pick<SolanaStakeStatus, 'cancelled'>,
  logged: LoggedStake,
  decision: Deletion,
): Deletion {
  if (decision.do !== 'release' || resource.spec.adopt !== undefined) return decision
  if (logged.is !== 'none' && logged.is !== 'idle') return decision
  if (cancelled === false)
    return { do: 'release', because: `${decision.because}; the staking API cannot cancel stakes, so that its name stays taken there` }
  if (cancelled === true) return decision
  return {
    do: 'cancel',
    message: `Deleted: the log has no payment of it that has landed or may land, and its stake is being cancelled at the staking API. ${howToForget(resource)}`,
    ...(isDeletionConfirmed(resource) ? { orRelease: decision.because } : {}),
  }
}
