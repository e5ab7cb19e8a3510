import { inWords, isRequired, type Requirement, requirementOf, votersOf, weigh } from '../operator/transactions/approval-rules.ts'
import { REQUESTED_BY_ANNOTATION } from '../resources/meta.ts'
import type { ShownPlan } from '../resources/plan.ts'
import { STAKING_APPROVAL_API, type StakingApproval } from '../resources/staking-approval.ts'
import type { StakingSigner } from '../resources/staking-signer.ts'

/** Whether an approval could count, asked of the operator's own rules before it is made. What can't be read from here speaks against none. */

export interface Intended {
  readonly plan: ShownPlan
  readonly requestedBy: readonly string[]
  readonly user: string
  /** Those that the approval names. */
  readonly groups: readonly string[]
  /** All whose policies are asked; undefined where that is not known. */
  readonly signers: readonly StakingSigner[] | undefined
}

/** Why it could not count; undefined where it could, by all that is known. */
export const uncounted = (intended: Intended): string | undefined => asAsker(intended) ?? unasked(intended) ?? unrecorded(intended)

const EPOCH = '1970-01-01T00:00:00Z'

/** Of whoever has asked, however they spell their name. */
function asAsker({ plan, requestedBy, user }: Intended): string | undefined {
  const { kind, namespace, name, uid } = plan.resource
  const approval = {
    ...STAKING_APPROVAL_API,
    metadata: { name, namespace, uid: '', resourceVersion: '', creationTimestamp: EPOCH },
    spec: { resourceRef: { kind, name, uid }, planHash: plan.hash, approver: user, requestedBy: [...requestedBy] },
  } as StakingApproval
  const counts = (by: readonly string[]): boolean =>
    weigh([approval], { plan, planHash: plan.hash, requestedBy: by, nowMs: 0, sinceMs: 0, denied: new Set() }).voices.length > 0
  const same = counts([]) ? requestedBy.find((one) => !counts([one])) : undefined
  return same === undefined ? undefined : `you (${user}) have asked for it as ${same}: somebody else must approve it`
}

interface Asking {
  readonly by: string
  readonly asked: Requirement
}

/** Those whose policies ask for one; undefined where that is not known. */
function askingFor({ plan, signers }: Intended): readonly Asking[] | undefined {
  const asking: Asking[] = []
  for (const { metadata, spec } of signers ?? []) {
    const asked = requirementOf(spec)
    if (asked === undefined) continue
    // It may name anybody.
    if ('problem' in asked) return undefined
    if (isRequired(asked, plan)) asking.push({ by: `StakingSigner ${metadata.name}`, asked })
  }
  return signers && asking
}

/** Of what nobody is recorded to have asked for, where a policy takes none of that. */
function unrecorded(intended: Intended): string | undefined {
  if (intended.requestedBy.length > 0) return undefined
  const refusing = askingFor(intended)?.find(({ asked }) => !asked.allowUnrecorded)
  return refusing === undefined
    ? undefined
    : `who has asked for it is not recorded (annotation ${REQUESTED_BY_ANNOTATION}): no approval would count, as ${refusing.by} takes none of that (spec.policy.approval.allowUnrecorded)`
}

/** Of whom no policy asks for one. */
function unasked(intended: Intended): string | undefined {
  const { user, groups, signers = [] } = intended
  const asking = askingFor(intended)
  if (asking === undefined) return undefined
  if (asking.length === 0)
    return `no approval of it is asked for by ${signers.map(({ metadata }) => `StakingSigner ${metadata.name}`).join(' or ')} (spec.policy.approval)`
  const voice = { user, groups, approval: '', createdMs: 0 }
  if (asking.some(({ asked }) => votersOf(asked, [voice], 0).voters.length > 0)) return undefined
  const wanted = asking.map(({ by, asked }) => `${by} asks for ${inWords(asked)}`)
  return `the policy names neither you (${user}) nor a group of yours: ${wanted.join('; ')} (spec.policy.approval)`
}
