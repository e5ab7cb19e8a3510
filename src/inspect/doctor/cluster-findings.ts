import { createApprovalChecks } from '../../operator/approval-checks.ts'
import { type CustomResourceDefinition, createCrdGuard, customResourceDefinitions } from '../../operator/crd-guard.ts'
import { type Lease, leases } from '../../operator/kube/lease.ts'
import { definitionOf } from '../../operator/saga-collection.ts'
import { isSuspended } from '../../operator/suspension.ts'
import { findCondition } from '../../resources/conditions.ts'
import { kinds } from '../../resources/kinds.ts'
import { GROUP, SUSPEND_ANNOTATION } from '../../resources/meta.ts'
import { type StakingSigner, stakingSigner } from '../../resources/staking-signer.ts'
import type { Cluster } from '../cluster.ts'
import { type Finding, failed, ok, saying, skipped, warning } from './finding.ts'

/** The CRDs of this version, as they are installed. */
export async function lookAtDefinitions(cluster: Cluster, signal: AbortSignal): Promise<readonly Finding[]> {
  const guard = createCrdGuard(kinds)
  for (const { plural } of kinds) {
    const name = `${plural}.${GROUP}`
    const found = await cluster.get<CustomResourceDefinition>(customResourceDefinitions, { name }, signal)
    if (found === 'forbidden') return [skipped('cluster', 'CRDs', 'you may not read CustomResourceDefinitions')]
    guard.seen(name, found === 'absent' ? undefined : found)
  }
  const [outdated, lax] = [guard.outdated(), guard.lax()]
  if (outdated !== undefined) return [failed('cluster', 'CRDs', `OutdatedCRD: ${outdated}`)]
  return [lax === undefined ? ok('cluster', 'CRDs', `all ${kinds.length} are of this version`) : warning('cluster', 'CRDs', lax)]
}

/** Who leads, and whether somebody has stopped all signing. @param now in ms since 1970 */
export async function lookAtLeader(
  cluster: Cluster,
  ref: { readonly namespace: string; readonly name: string },
  now: number,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const about = `lease ${ref.namespace}/${ref.name}`
  const lease = await cluster.get<Lease>(leases, ref, signal)
  if (lease === 'forbidden') return [skipped('cluster', about, 'you may not read it')]
  if (lease === 'absent')
    return [warning('cluster', about, 'it is not there: no operator has led yet, or it has another name (--lease-namespace, --lease-name)')]
  const { holderIdentity = '', renewTime, leaseDurationSeconds = 15 } = lease.spec ?? {}
  const stopped = lease.metadata.annotations?.[SUSPEND_ANNOTATION]
  const ageS = renewTime === undefined ? Number.POSITIVE_INFINITY : (now - Date.parse(renewTime)) / 1000
  return [
    holderIdentity === ''
      ? warning('cluster', about, 'nobody holds it: no operator leads')
      : ageS > leaseDurationSeconds
        ? failed(
            'cluster',
            about,
            `${holderIdentity} has not renewed it for ${Math.round(ageS)} s: no operator leads. Look at the pods of the operator`,
          )
        : ageS < -5
          ? failed(
              'cluster',
              about,
              `${holderIdentity} renewed it ${Math.round(-ageS)} s in the future: its clock or this one is wrong (NTP)`,
            )
          : ok('cluster', about, `${holderIdentity} leads`),
    ...(isSuspended(lease.metadata.annotations ?? {})
      ? [warning('cluster', about, `all signing is stopped by the annotation ${SUSPEND_ANNOTATION}=${stopped ?? ''}`)]
      : []),
  ]
}

/** Whether approvals can count, where a signer asks for any. */
export async function lookAtApprovals(
  cluster: Cluster,
  signers: readonly StakingSigner[],
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const asking = signers.filter(({ spec }) => spec.policy.approval !== undefined).map(({ metadata }) => metadata.name)
  if (asking.length === 0) return []
  const about = 'approvals'
  try {
    const found = await createApprovalChecks(cluster.api).policies(signal)
    return 'missing' in found
      ? [
          failed(
            'cluster',
            about,
            `${found.missing}: no approval for ${asking.join(', ')} counts. Install the chart with approvals.policies`,
          ),
        ]
      : [ok('cluster', about, 'the admission policies that they rest on are in force')]
  } catch (error) {
    return [skipped('cluster', about, saying(error))]
  }
}

/** What the signers say of themselves. */
export async function lookAtSigners(
  cluster: Cluster,
  signal: AbortSignal,
): Promise<{ readonly findings: readonly Finding[]; readonly signers: readonly StakingSigner[] }> {
  const signers = await cluster.list<StakingSigner>(definitionOf(stakingSigner), {}, signal)
  if (signers === 'forbidden') return { findings: [skipped('cluster', 'signers', 'you may not list StakingSigners')], signers: [] }
  if (signers.length === 0)
    return { findings: [warning('cluster', 'signers', 'there is no StakingSigner: nothing can be paid before there is one')], signers }
  return { findings: signers.flatMap(signerFindings), signers }
}

function signerFindings({ metadata, spec, status }: StakingSigner): readonly Finding[] {
  const about = `signer ${metadata.name}`
  const ready = findCondition(status?.conditions, 'Ready')
  const funded = findCondition(status?.conditions, 'Funded')
  return [
    ready === undefined
      ? warning('cluster', about, 'no operator has looked at it yet')
      : ready.status === 'True'
        ? ok('cluster', about, `${spec.address} is ready${status?.balance === undefined ? '' : `, with ${status.balance}`}`)
        : failed('cluster', about, `${ready.reason}: ${ready.message}`),
    ...(spec.suspend === true ? [warning('cluster', about, 'it is suspended: nothing more is signed with it')] : []),
    ...(funded?.status === 'False' ? [warning('cluster', about, `${funded.reason}: ${funded.message}`)] : []),
  ]
}
