import { sameHex } from '../../../lib/hex.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { Halt, stall } from '../../engine/verdict.ts'
import type { Visit } from '../../engine/visit.ts'
import type { EthereumNetwork } from '../../ports.ts'
import type { ValidatorRequestDeps } from './deps.ts'
import { isPaidIn, type StakedValidators } from './staked.ts'
import type { FoundValidator, RequestOrder } from './steps.ts'

/**
 * Whether a policy that admits requests for a namespace's own validators alone admits this one: a stake of the namespace has paid for it, by the log, or has
 * it at the staking API. What a tenant can write decides nothing.
 */
export function createOwnership(
  deps: Pick<ValidatorRequestDeps, 'stakesOn'> & { readonly log: Pick<ValidatorRequestDeps['log'], 'ofSubject'> },
  networkOf: (name: string) => EthereumNetwork,
  { stakeOf }: Pick<StakedValidators, 'stakeOf'>,
) {
  /** @throws Halt (ValidatorNotOwned) */
  return async (order: RequestOrder, signer: StakingSigner, target: FoundValidator, visit: Visit, signal: AbortSignal): Promise<void> => {
    // That the stake is the namespace's, and the validator the stake's, was found out with the target.
    if (signer.spec.policy.validators === 'Any' || order.validator.stakeRef !== undefined) return
    const { namespace } = order.origin
    const { chainId } = networkOf(target.network).config
    if (isPaidIn(deps.log, { namespace, chainId, pubkey: target.pubkey })) return
    for (const { metadata } of deps.stakesOn(target)) {
      if (metadata.namespace !== namespace) continue
      try {
        const { body } = await stakeOf(order, metadata.name, new Map(visit), signal)
        if (sameHex(body.depositData.pubkey, target.pubkey)) return
      } catch (error) {
        // One that is not paid, or was forged, is none.
        if (!(error instanceof Halt) || (error.verdict.kind !== 'stall' && error.verdict.kind !== 'wait')) throw error
      }
    }
    throw stall(
      'ValidatorNotOwned',
      `No EthereumStake of namespace ${namespace} has validator ${target.pubkey} of ${target.network}, and StakingSigner ${signer.metadata.name} admits requests for a namespace's own validators only (spec.policy.validators: Own). Nothing was signed. Adopt its stake with an EthereumStake in this namespace (spec.adopt.stakeId), or ask the owner of the signer for validators: Any.`,
    )
  }
}
