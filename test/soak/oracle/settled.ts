import type { LastEvidence } from './evidence.ts'
import { at, conditionOf, isReady, type KubernetesObject, nameOf } from './kubernetes.ts'
import { depositsFor } from './money.ts'
import { ofKind } from './wishes.ts'

/** Reasons with which a resource has its answer, though it is not the one that was hoped for: what the users did to each other's wishes. */
const answers = new Set([
  // A validator is asked to leave twice, or for more than it has, or after it has left.
  'AlreadyExiting',
  'ValidatorNotEligible',
  'OverAvailable',
  'RequestDropped',
  'RequestRefused',
  'RequestCancelled',
  'PaymentVoid',
  // After etcd was set back: the request was made, and its resource is a new one.
  'AlreadyRequested',
])

/** Once the faults are over, each resource is Ready, has its answer, or waits for its owner. */
export function unsettled(evidence: LastEvidence): readonly string[] {
  return evidence.objects.flatMap((object) => {
    const why = waits(evidence, object)
    return why === undefined ? [] : [`${nameOf(object)} ${why}`]
  })
}

const fleet = new Set(['EthereumStake', 'ValidatorExit', 'ValidatorWithdrawal', 'SolanaStake', 'StakingSigner'])

function waits(evidence: LastEvidence, object: KubernetesObject): string | undefined {
  if (!fleet.has(object.kind) || isReady(object)) return undefined
  const ready = conditionOf(object, 'Ready')
  if (at(object, 'spec', 'suspend') === true) return undefined
  if (object.metadata.deletionTimestamp !== undefined)
    return holdsMoney(evidence, object) ? undefined : 'was deleted, holds nothing, and is still there'
  if (conditionOf(object, 'Stalled')?.status === 'True' && answers.has(ready?.reason ?? '')) return undefined
  if (ready?.reason === 'WaitingForStake' && !isStakeThere(evidence, object)) return undefined
  return `is not settled: ${ready?.reason ?? 'no condition'}, ${ready?.message ?? ''}`
}

/** A stake with money stays until it is out, or its owner confirms. */
function holdsMoney(evidence: LastEvidence, { kind, metadata }: KubernetesObject): boolean {
  if (kind === 'SolanaStake') return true
  const wish = ofKind(evidence.wishes, 'EthereumStake').find(
    ({ namespace, name }) => kind === 'EthereumStake' && namespace === metadata.namespace && name === metadata.name,
  )
  return wish !== undefined && depositsFor(evidence, wish).length > 0
}

const isStakeThere = ({ objects }: LastEvidence, { spec, metadata }: KubernetesObject): boolean =>
  objects.some(
    (stake) =>
      stake.kind === 'EthereumStake' &&
      stake.metadata.namespace === metadata.namespace &&
      stake.metadata.name === at(spec, 'validator', 'stakeRef', 'name') &&
      isReady(stake),
  )

/** Each final deposit is a validator with the credentials that it was paid with, or waits for its turn: none was lost for its signature. */
export function lostDeposits({ ethereum, beacon }: LastEvidence): readonly string[] {
  return ethereum.deposits.flatMap(({ pubkey, credentials, block, hash }) => {
    if (block > ethereum.finalBlock) return []
    const validator = beacon.validators.get(pubkey)
    if (validator === undefined) return beacon.queued.has(pubkey) ? [] : [`the beacon chain made no validator of the deposit ${hash}`]
    return validator.credentials === credentials ? [] : [`validator ${pubkey} has credentials ${validator.credentials}, not ${credentials}`]
  })
}
