import type { Statement } from '../../../resources/conditions.ts'
import { isDeletionConfirmed } from '../../../resources/meta.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { say } from '../../engine/progress.ts'

/** Who still needs a signer's key, as far as this cluster knows. */
export interface KeyNeed {
  /** By network: stakes of resources that only this key can get at. */
  readonly controls: ReadonlyMap<string, number>
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

/** Why the key must be kept whatever becomes of the signer. No number is in it: each stake would be a write. */
export function controlsMessage({ spec }: Pick<StakingSigner, 'spec'>, networks: readonly string[]): string {
  const where = networks.join(', ')
  return spec.chain === 'Ethereum'
    ? `${spec.address} is the withdrawal address of validators on ${where} that hold money. A withdrawal address can never be changed, and only its key can ask for an exit or a withdrawal (EIP-7002): keep this key, and a signer for it, until they have left and were paid out. status.lanes counts them; kubectl get ethereumstakes -A names them.`
    : `${spec.address} is an authority of stake accounts on ${where} that hold money: only its key can deactivate or withdraw them. kubectl get solanastakes -A names them.`
}

/** Whether the key is still needed: who rotates it waits for False. `isInFlight`: something that was signed with it may land, or waits to be signed. */
export function neededStatement(signer: StakingSigner, { controls, hasUsers }: KeyNeed, isInFlight: boolean): Statement {
  const { name } = signer.metadata
  if (isInFlight || hasUsers)
    return say(
      'True',
      'KeyInUse',
      `A transaction that was signed with this key may still land, or a resource that names this signer has yet to sign: kubectl get stx --field-selector spec.signer=${name}, kubectl get staking -A.`,
    )
  if (controls.size > 0) return say('True', 'ControlsStakes', controlsMessage(signer, [...controls.keys()].toSorted()))
  return say(
    'False',
    'Settled',
    'Nothing that was signed with this key may still land, no resource has yet to sign with it, and no stake of a resource of this cluster is its alone to get at. What was forgotten here, or made elsewhere, is not known here.',
  )
}
