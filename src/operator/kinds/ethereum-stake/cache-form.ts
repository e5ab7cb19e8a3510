import type { EthereumStake, EthereumStakeSpec, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { KEPT } from '../../engine/kept.ts'
import { nextStep } from '../../engine/step.ts'
import { createCompact } from '../../kube/compact.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { createPool } from '../../kube/pool.ts'
import { isConfirmed } from './status.ts'
import { ethereumStakeSteps } from './steps.ts'

type CachedStake = EthereumStake & KubeObject

/** Its transaction is final: it is looked at now and then, and nothing of it is signed. */
export const isSettledStake = ({ status }: Pick<EthereumStake, 'status'>): boolean => isConfirmed(status)

/**
 * What of a stake the cache holds. Of one whose every step is done nothing is signed any more, so what only a signature needs is left empty: half of what is its
 * own, for years. Nothing else reads those fields; whoever tried to sign from them would be refused, as by any deposit data that doesn't verify. They are never
 * written back either: evidence is carried over from what was read, so both sides of a patch are empty.
 */
export function createStakeCacheForm(): (stake: CachedStake) => CachedStake {
  const compact = createCompact(KEPT)
  const specs = createPool<EthereumStakeSpec>(512)
  return (stake) => {
    const { status } = stake
    const isOver = status !== undefined && isConfirmed(status) && nextStep(ethereumStakeSteps, status) === undefined
    const held = compact(isOver ? { ...stake, status: withoutSignature(status) } : stake)
    // Most stakes of a fleet have the same spec.
    return Object.assign(held, { spec: specs.share(JSON.stringify(held.spec), held.spec) })
  }
}

function withoutSignature(status: EthereumStakeStatus): EthereumStakeStatus {
  const { depositData, transaction, verifiedRoot } = status
  if (depositData === undefined || transaction === undefined) return status
  // That it was verified is told by the two being equal.
  const isVerified = verifiedRoot === depositData.depositDataRoot
  return {
    ...status,
    depositData: { ...depositData, signature: '', ...(isVerified ? { depositDataRoot: '' } : {}) },
    ...(isVerified ? { verifiedRoot: '' } : {}),
    transaction: { ...transaction, dataHash: '', blockHash: '' },
  }
}
