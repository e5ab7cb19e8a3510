import { kinds } from '../../resources/kinds.ts'
import { GROUP, type KindDefinition } from '../../resources/meta.ts'
import { signerNonce } from '../../resources/signer-nonce.ts'
import { stakingTransaction } from '../../resources/staking-transaction.ts'
import { InspectError } from '../error.ts'
import type { Manifest, ManifestObject } from './manifests.ts'

/** Written by the operator alone: nobody applies them. */
const ofOperator: readonly KindDefinition[] = [stakingTransaction, signerNonce]
export const plannable = kinds.filter((kind) => !ofOperator.includes(kind))

export const isOfGroup = ({ apiVersion }: ManifestObject): boolean => apiVersion.split('/')[0] === GROUP
/** The group was left out, or written with capitals, as no group is: no cluster has such a kind. */
const isMeantForUs = ({ apiVersion, kind }: ManifestObject): boolean =>
  apiVersion.includes('/') ? apiVersion.split('/')[0]?.toLowerCase() === GROUP : plannable.some((one) => one.kind === kind)
const isOurs = (object: ManifestObject): boolean => isOfGroup(object) || isMeantForUs(object)

/** What a plan can tell of it; undefined for what it skips, and for what no cluster has. */
export const definitionFor = (object: ManifestObject): KindDefinition | undefined =>
  isOurs(object) ? plannable.find(({ kind }) => kind === object.kind) : undefined

/** Why a plan tells nothing of an object; undefined where it plans it or refuses it. */
export function skippedFor(object: ManifestObject): string | undefined {
  const { kind, apiVersion } = object
  if (isOurs(object))
    return ofOperator.some((one) => one.kind === kind) ? `a ${kind} is written by the operator alone, and is no part of a plan` : undefined
  // kubectl apply -f refuses it: it is read by kustomize, and what that makes of it is what is applied.
  if (apiVersion.split('/')[0] === 'kustomize.config.k8s.io')
    return `a plan renders no ${kind}: kustomize build DIR | kubectl staking plan -f -`
  return `a plan knows nothing of ${kind} (${apiVersion})`
}

/** That nothing would be refused is not known of nothing: a folder of other things must not read as a plan. @throws InspectError */
export function refuseNothing(manifests: readonly Manifest[], paths: readonly string[]): void {
  const reasons = manifests.flatMap(({ object }) => skippedFor(object) ?? [])
  if (reasons.length === manifests.length)
    throw new InspectError(
      `there is nothing to plan in ${paths.map((path) => (path === '-' ? 'standard input' : path)).join(', ')}: ${[...new Set(reasons)].join('; ')}`,
    )
}
