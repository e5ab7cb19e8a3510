import { isDeepStrictEqual } from 'node:util'
import { shareNextCall } from '../lib/shared-call.ts'
import { approvalPolicy, pluralOf, requesterPolicy, type ValidatingPolicy } from '../resources/admission-policies.ts'
import { timeMs } from '../resources/conditions.ts'
import { GROUP } from '../resources/meta.ts'
import type { KubeApi } from './kube/api.ts'
import { isForbidden, isNotFound } from './kube/errors.ts'
import type { KubeObject } from './kube/objects.ts'
import type { ResourceDefinition } from './kube/resource-client.ts'
import type { ApprovalChecks, PoliciesInForce } from './ports.ts'

const definitionOf = (kind: string, plural: string): ResourceDefinition => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural,
  kind,
  namespaced: false,
})
export const validatingAdmissionPolicies = definitionOf('ValidatingAdmissionPolicy', 'validatingadmissionpolicies')
export const validatingAdmissionPolicyBindings = definitionOf('ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings')

/** How long after it was made or changed a policy is in force at every API server, in ms: each follows them by a watch of its own, and times have whole seconds. */
const SETTLE_MS = 5_000

type Fields = { readonly [field: string]: unknown }
/** A policy, or a binding, as the API server has it. */
export type Installed = KubeObject & { readonly spec?: Fields }

/** What the API server says of approvals. */
export function createApprovalChecks(api: Pick<KubeApi, 'resource' | 'call'>): ApprovalChecks {
  const never = new AbortController().signal
  async function read(definition: ResourceDefinition, name: string): Promise<Installed | undefined> {
    try {
      return await api.resource<Installed>(definition).get({ name }, never)
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  async function sinceOf(policy: ValidatingPolicy): Promise<number | string> {
    const [installed, binding] = await Promise.all([
      read(validatingAdmissionPolicies, policy.name),
      read(validatingAdmissionPolicyBindings, policy.name),
    ])
    return shortcomingOf(policy, installed, binding) ?? inForceSince(installed, binding)
  }

  const policies = shareNextCall(async (): Promise<PoliciesInForce | { readonly missing: string }> => {
    try {
      const [approvals, requesters] = await Promise.all([sinceOf(approvalPolicy), sinceOf(requesterPolicy)])
      if (typeof approvals === 'string') return { missing: approvals }
      if (typeof requesters === 'string') return { missing: requesters }
      return { approvalsSinceMs: approvals, requestersSinceMs: requesters }
    } catch (error) {
      if (isForbidden(error)) return { missing: 'the admission policies may not be read' }
      throw error
    }
  })

  return {
    policies,
    async mayApprove({ user, groups }, { kind, namespace, name }, signal) {
      const review = await api.call<{ readonly status?: { readonly allowed?: boolean } }>(
        {
          verb: 'create',
          resource: 'subjectaccessreviews',
          method: 'POST',
          path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
          body: JSON.stringify({
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SubjectAccessReview',
            spec: { user, groups, resourceAttributes: { group: GROUP, resource: pluralOf(kind), namespace, name, verb: 'approve' } },
          }),
          contentType: 'application/json',
        },
        signal,
      )
      return review.status?.allowed === true
    },
  }
}

/** Since when policy and binding are both in force as they are; or why that can't be known, as a clause. */
function inForceSince(...objects: readonly (Installed | undefined)[]): number | string {
  const times = objects.map((object) => (object === undefined ? Number.POSITIVE_INFINITY : unchangedSince(object)))
  return times.find((time) => typeof time === 'string') ?? Math.max(...times.map(Number)) + SETTLE_MS
}

/**
 * Since when an object's spec is as it is. An update keeps creationTimestamp, so that a policy which was loosened for a moment would seem never to have been.
 * ▸ The API server counts changes of the spec (generation, 1 at the creation), and says for each manager when it last took a field. A change that only took
 * something away leaves no time: where no later time is left of what was changed, nobody can tell. What has no time is in force never.
 */
function unchangedSince({ kind, metadata }: Installed): number | string {
  const created = timeMs(metadata.creationTimestamp ?? '') || Number.POSITIVE_INFINITY
  if (metadata.generation === 1) return created
  const changes = listOf(metadata.managedFields).filter(
    ({ subresource = '', fieldsV1 = null }) => subresource === '' && (fieldsV1 === null || 'f:spec' in fieldsOf(fieldsV1)),
  )
  const changed = Math.max(...changes.map(({ time }) => (typeof time === 'string' ? timeMs(time) : Number.NaN)))
  return changed > created ? changed : `${kind} ${metadata.name} was changed, and nobody can tell when (delete it, and install it anew)`
}

/** In what an installed policy, with its binding, falls short of what it should be, as a clause; undefined where it does not. */
export function shortcomingOf(
  { name, spec: expected }: ValidatingPolicy,
  installed: Installed | undefined,
  binding: Installed | undefined,
): string | undefined {
  const policy = `ValidatingAdmissionPolicy ${name}`
  if (installed === undefined || installed.metadata.deletionTimestamp !== undefined) return `there is no ${policy}`
  if (binding === undefined || binding.metadata.deletionTimestamp !== undefined)
    return `there is no ValidatingAdmissionPolicyBinding ${name}`
  const { spec = {} } = installed
  const constraints = fieldsOf(spec.matchConstraints)
  const narrowed = isNarrowed(constraints) || !isNothing(spec.matchConditions) || !isNothing(spec.paramKind)
  if ((spec.failurePolicy ?? 'Fail') !== 'Fail') return `${policy} lets pass what it can't check (failurePolicy)`
  if (narrowed || !isDeepStrictEqual(rulesOf(constraints), rulesOf(expected.matchConstraints)))
    return `${policy} does not look at everything that it should`
  const has = new Set(listOf(spec.validations).map(({ expression }) => expression))
  if (
    !expected.validations.every(({ expression }) => has.has(expression)) ||
    !isDeepStrictEqual(namesOf(spec.variables), namesOf(expected.variables))
  )
    return `${policy} is another one than the chart of this version installs`
  const bound = binding.spec ?? {}
  const actions = Array.isArray(bound.validationActions) ? bound.validationActions : []
  if (
    bound.policyName !== name ||
    !actions.includes('Deny') ||
    isNarrowed(fieldsOf(bound.matchResources), true) ||
    !isNothing(bound.paramRef)
  )
    return `ValidatingAdmissionPolicyBinding ${name} does not have everything denied that the policy refuses`
  return undefined
}

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {})
const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : [])
const isNothing = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'object' && Object.values(value).every(isNothing))
/** Something is left out by selectors or exceptions; of a binding also by rules of its own. */
const isNarrowed = ({ namespaceSelector, objectSelector, excludeResourceRules, resourceRules }: Fields, isBinding = false): boolean =>
  !isNothing(namespaceSelector) ||
  !isNothing(objectSelector) ||
  !isNothing(excludeResourceRules) ||
  (isBinding && !isNothing(resourceRules))
/** Rules without what the API server fills in. */
const rulesOf = ({ resourceRules }: Fields | ValidatingPolicy['spec']['matchConstraints']) =>
  listOf(resourceRules).map(({ scope, ...rule }) => ({ ...rule, ...(scope === undefined || scope === '*' ? {} : { scope }) }))
const namesOf = (variables: unknown) => listOf(variables).map(({ name, expression }) => ({ name, expression }))
