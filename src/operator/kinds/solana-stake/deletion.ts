import { inSol } from '../../../lib/amounts.ts'
import { CONFIRM_DELETE_ANNOTATION } from '../../../resources/meta.ts'
import { asksForSignature } from '../../../resources/mode.ts'
import type { SolanaStake, SolanaStakeStatus } from '../../../resources/solana-stake.ts'

/** What to do with a resource that is being deleted. Deletion never moves money by itself, and never leads to buying twice. */
export type SolanaDeletion =
  /** Nothing can land and nothing is staked, or a person said that it may be forgotten. */
  | { readonly do: 'release'; readonly because: string }
  /** Watch what is in flight until its outcome is known; sign nothing. */
  | { readonly do: 'watch'; readonly message: string }
  /** It holds money: wait until that is out, or for a person. */
  | { readonly do: 'hold'; readonly message: string }
  /** Its spec asks for the money: it is deactivated and withdrawn before the resource goes. */
  | { readonly do: 'undo'; readonly message: string }
  /** Nothing of it was paid: it is cancelled at the staking API, so that its name is free. */
  | { readonly do: 'undo'; readonly message: string; readonly unpaid: true }

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

/** A person has said that it may be forgotten. */
export const isConfirmed = ({ metadata }: SolanaStake): boolean => metadata.annotations?.[CONFIRM_DELETE_ANNOTATION] === metadata.name

/** Decided by the log alone: nothing that a tenant can write has a say, and what was refused before anything was signed goes at once. */
export function decideSolanaDeletion(resource: SolanaStake, logged: LoggedStake): SolanaDeletion {
  const { spec } = resource
  if (isConfirmed(resource)) return { do: 'release', because: 'its deletion was confirmed by annotation' }
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
          do: 'undo',
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
  decision: SolanaDeletion,
): SolanaDeletion {
  if (decision.do !== 'release' || isConfirmed(resource) || resource.spec.adopt !== undefined) return decision
  if (logged.is !== 'none' && logged.is !== 'idle') return decision
  if (cancelled === false)
    return { do: 'release', because: `${decision.because}; the staking API cannot cancel stakes, so that its name stays taken there` }
  if (cancelled === true) return decision
  return {
    do: 'undo',
    unpaid: true,
    message: `Deleted: nothing was paid for it, and its stake is being cancelled at the staking API. ${howToForget(resource)}`,
  }
}
