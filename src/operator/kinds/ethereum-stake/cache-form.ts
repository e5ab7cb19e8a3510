import { findCondition } from '../../../resources/conditions.ts'
import type { EthereumStake, EthereumStakeSpec, EthereumStakeStatus } from '../../../resources/ethereum-stake.ts'
import { KEPT } from '../../engine/kept.ts'
import { nextStep } from '../../engine/step.ts'
import { createCompact } from '../../kube/compact.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { createPool } from '../../kube/pool.ts'
import { isConfirmed } from './status.ts'
import { ethereumStakeSteps } from './steps.ts'

type CachedStake = EthereumStake & KubeObject

/**
 * How the cache holds stakes. Of one whose every step is done nothing is signed any more, so what only a signature needs is left empty: a fifth of its
 * memory, for years. Nothing else reads those fields; whoever tried to sign from them would be refused, as by any deposit data that doesn't verify. They
 * are never written back either: evidence is carried over from what was read, so both sides of a patch are empty.
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
  const { stakeId, depositData, transaction, verifiedRoot, validator } = status
  if (depositData === undefined || transaction === undefined) return status
  const said = (type: string): string => findCondition(status.conditions, type)?.message ?? ''
  const pubkey = within(said('Ready'), depositData.pubkey)
  const hash = within(said('Broadcast'), transaction.hash)
  // That it was verified is told by the two being equal.
  const isVerified = verifiedRoot === depositData.depositDataRoot
  return {
    ...status,
    ...(stakeId === undefined ? {} : { stakeId: within(said('Created'), stakeId) }),
    depositData: { ...depositData, pubkey, signature: '', ...(isVerified ? { depositDataRoot: '' } : {}) },
    ...(isVerified ? { verifiedRoot: '' } : {}),
    transaction: { ...transaction, hash, dataHash: '', blockHash: '' },
    ...(validator === undefined ? {} : { validator: { ...validator, pubkey: within(said('Ready'), validator.pubkey) } }),
  }
}

/** The text as a part of the longer one, where it stands in there: V8 then holds the place and not a copy. */
function within(whole: string, text: string): string {
  const at = whole.indexOf(text)
  return at < 0 ? text : whole.slice(at, at + text.length)
}
