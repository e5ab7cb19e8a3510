import { type Statement, someOf } from '../../../resources/conditions.ts'
import { isDeletionConfirmed } from '../../../resources/meta.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { say } from '../../engine/progress.ts'
import type { NetworkFunds } from './funding.ts'

/** Who still needs a signer's key, as far as this cluster knows. */
export interface KeyNeed {
  /** By network: stakes of resources that only this key can get at. */
  readonly controls: ReadonlyMap<string, number>
  /** Networks on which somebody else pays a deposit, or is admitted to and may pay it yet, that only this key can get at then. */
  readonly awaits: ReadonlySet<string>
  /** A resource that names the signer is not settled, and may have to sign yet. */
  readonly hasUsers: boolean
  /** Another StakingSigner, which stays, declares the same address: as long as that is there, nobody takes the key for one that nothing needs. */
  readonly hasTwin?: boolean
}

/**
 * Whether a signer may go though only its key can get at stakes: another one declares that key, or somebody has confirmed. The key is another matter: nothing here
 * deletes that.
 */
export const mayGo = ({ metadata }: Pick<StakingSigner, 'metadata'>, { hasTwin }: Pick<KeyNeed, 'hasTwin'>): boolean =>
  hasTwin === true || isDeletionConfirmed({ metadata })

/** Whether only its key can get at stakes, or at what will be one. */
export const isAlone = ({ controls, awaits }: Pick<KeyNeed, 'controls' | 'awaits'>): boolean => controls.size > 0 || awaits.size > 0

/** Why the key must be kept whatever becomes of the signer. No number is in it: each stake would be a write. */
export function controlsMessage({ spec }: Pick<StakingSigner, 'spec'>, { controls, awaits }: Pick<KeyNeed, 'controls' | 'awaits'>): string {
  const list = (networks: Iterable<string>): string => someOf([...networks].toSorted())
  if (spec.chain === 'Solana')
    return `${spec.address} is an authority of stake accounts on ${list(controls.keys())} that hold money: only its key can deactivate or withdraw them. kubectl get solanastakes -A names them.`
  const what = [
    ...(controls.size === 0 ? [] : [`validators on ${list(controls.keys())} that hold money`]),
    ...(awaits.size === 0 ? [] : [`deposits on ${list(awaits)} that are not final, or not paid yet`]),
  ].join(', and of ')
  const until = awaits.size === 0 ? 'they have left' : 'their validators have left'
  const counted = controls.size === 0 ? '' : 'status.lanes counts them; '
  return `${spec.address} is the withdrawal address of ${what}. A withdrawal address can never be changed, and only its key can ask for an exit or a withdrawal (EIP-7002): keep this key, and a signer for it, until ${until} and were paid out. ${counted}kubectl get ethereumstakes -A names them.`
}

/** Whether the key is still needed: who rotates it waits for False. `isInFlight`: something that was signed with it may land, or waits to be signed. */
export function neededStatement(
  signer: StakingSigner,
  { need, isInFlight, networks }: { readonly need: KeyNeed; readonly isInFlight: boolean; readonly networks: readonly NetworkFunds[] },
): Statement {
  const { name } = signer.metadata
  if (isInFlight || need.hasUsers)
    return say(
      'True',
      'KeyInUse',
      `A transaction that was signed with this key may still land, or a resource that names this signer has yet to sign: kubectl get stx --field-selector spec.signer=${name}, kubectl get staking -A.`,
    )
  if (isAlone(need)) return say('True', 'ControlsStakes', controlsMessage(signer, need))
  return say(
    'False',
    'Settled',
    `Nothing that was signed with this key may still land, no resource has yet to sign with it, and no stake of a resource of this cluster is its alone to get at. What was forgotten here, or made elsewhere, is not known here.${left(networks)}`,
  )
}

/** Where its address holds money of its own. How much would be a write for each change: status.balance says it. */
function left(networks: readonly NetworkFunds[]): string {
  const funded = networks.filter(({ funds }) => funds !== undefined && funds.balance > 0n).map(({ name }) => name)
  const unknown = networks.filter(({ funds }) => funds === undefined).map(({ name }) => name)
  const known =
    funded.length === 0 ? '' : ` Its address holds money on ${someOf(funded)} (status.balance): send that elsewhere while you have the key.`
  return unknown.length === 0
    ? known
    : `${known} What its address holds on ${someOf(unknown)} is not known: look there before the key is thrown away.`
}
