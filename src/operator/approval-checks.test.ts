import { describe, expect, test } from 'vitest'
import { approvalPolicy, requesterPolicy, type ValidatingPolicy, validatingPolicies } from '../resources/admission-policies.ts'
import { createApprovalChecks, type Installed, shortcomingOf } from './approval-checks.ts'
import { KubeError } from './kube/errors.ts'

/** Policies as the API server has them: with what it fills in. */
const installed = ({ name, spec }: ValidatingPolicy, change: object = {}, metadata: object = {}): Installed =>
  ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name, uid: 'u', resourceVersion: '1', generation: 1, creationTimestamp: '2030-01-01T00:00:00Z', ...metadata },
    spec: {
      ...spec,
      matchConstraints: {
        matchPolicy: 'Equivalent',
        namespaceSelector: {},
        objectSelector: {},
        resourceRules: spec.matchConstraints.resourceRules.map((rule) => ({ ...rule, scope: '*' })),
      },
      ...change,
    },
  }) as Installed
const binding = ({ name }: ValidatingPolicy, change: object = {}, metadata: object = {}): Installed =>
  ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name, uid: 'u', resourceVersion: '1', generation: 1, creationTimestamp: '2030-01-01T00:00:10Z', ...metadata },
    spec: { policyName: name, validationActions: ['Deny'], ...change },
  }) as Installed

describe.each(validatingPolicies.map((policy) => [policy.name, policy] as const))('%s', (_name, policy) => {
  test('as the chart installs it falls short of nothing', () => {
    expect(shortcomingOf(policy, installed(policy), binding(policy))).toBeUndefined()
    expect(
      shortcomingOf(policy, installed(policy), binding(policy, { validationActions: ['Deny', 'Audit'], matchResources: {} })),
    ).toBeUndefined()
  })

  const constraints = (change: object) => ({
    matchConstraints: { ...(installed(policy).spec?.matchConstraints as object), ...change },
  })
  test.each<[string, Installed | undefined, Installed | undefined]>([
    ['is missing', undefined, binding(policy)],
    ['is being deleted', installed(policy, {}, { deletionTimestamp: '2030-01-01T00:00:00Z' }), binding(policy)],
    ['has no binding', installed(policy), undefined],
    ['lets pass what fails', installed(policy, { failurePolicy: 'Ignore' }), binding(policy)],
    ['has conditions', installed(policy, { matchConditions: [{ name: 'not-mallory', expression: 'false' }] }), binding(policy)],
    ['is of parameters', installed(policy, { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } }), binding(policy)],
    ['leaves out namespaces', installed(policy, constraints({ namespaceSelector: { matchLabels: { a: 'b' } } })), binding(policy)],
    [
      'leaves out objects',
      installed(policy, constraints({ objectSelector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } })),
      binding(policy),
    ],
    ['has exceptions', installed(policy, constraints({ excludeResourceRules: [{ resourceNames: ['x'] }] })), binding(policy)],
    [
      'looks at fewer operations',
      installed(
        policy,
        constraints({ resourceRules: policy.spec.matchConstraints.resourceRules.map((rule) => ({ ...rule, operations: ['CREATE'] })) }),
      ),
      binding(policy),
    ],
    [
      'looks at some names',
      installed(
        policy,
        constraints({ resourceRules: policy.spec.matchConstraints.resourceRules.map((rule) => ({ ...rule, resourceNames: ['x'] })) }),
      ),
      binding(policy),
    ],
    ['lacks a rule', installed(policy, { validations: policy.spec.validations.slice(1) }), binding(policy)],
    [
      'has a rule changed',
      installed(policy, { validations: policy.spec.validations.map((one) => ({ ...one, expression: 'true' })) }),
      binding(policy),
    ],
    ['has variables changed', installed(policy, { variables: [{ name: 'user', expression: "'bob'" }] }), binding(policy)],
    ['is bound to another', installed(policy), binding(policy, { policyName: 'other' })],
    ['only warns', installed(policy), binding(policy, { validationActions: ['Warn', 'Audit'] })],
    [
      'is bound for some namespaces',
      installed(policy),
      binding(policy, { matchResources: { namespaceSelector: { matchLabels: { a: 'b' } } } }),
    ],
    ['is bound for some resources', installed(policy), binding(policy, { matchResources: { resourceRules: [{ resources: ['x'] }] } })],
    ['is bound with parameters', installed(policy), binding(policy, { paramRef: { name: 'x' } })],
  ])('that %s does', (_what, one, other) => {
    expect(shortcomingOf(policy, one, other)).toMatch(/admission|ValidatingAdmissionPolicy/i)
  })
})

describe('the policies are in force', () => {
  const signal = new AbortController().signal
  const checksOf = (get: (plural: string, name: string) => Installed | undefined) =>
    createApprovalChecks({
      resource: ({ plural }: { plural: string }) => ({
        get: async ({ name }: { name: string }) => {
          const found = get(plural, name)
          if (found === undefined) throw new KubeError(404, 'NotFound', 'not found')
          return found
        },
      }),
      call: async () => ({ status: { allowed: 'yes' } }),
    } as never)
  const all = (plural: string, name: string) => {
    const policy = validatingPolicies.find((one) => one.name === name)
    return policy && (plural === 'validatingadmissionpolicies' ? installed(policy) : binding(policy))
  }

  test('some seconds after the younger of policy and binding was made', async () => {
    const at = Date.parse('2030-01-01T00:00:15Z')
    expect(await checksOf(all).policies(signal)).toEqual({ approvalsSinceMs: at, requestersSinceMs: at })
  })

  const entry = (time: string | undefined, change: object = {}) => ({
    manager: 'kubectl-patch',
    operation: 'Update',
    time,
    fieldsV1: { 'f:spec': { 'f:validationActions': { 'v:"Audit"': {} } } },
    ...change,
  })
  /** The policy or the binding for approvals with other metadata; all others as they were made. */
  const edited = (what: 'validatingadmissionpolicies' | 'validatingadmissionpolicybindings', metadata: object) =>
    checksOf((plural, name) => {
      const found = all(plural, name)
      return found && plural === what && name === approvalPolicy.name
        ? ({ ...found, metadata: { ...found.metadata, ...metadata } } as Installed)
        : found
    }).policies(signal)
  const made = Date.parse('2030-01-01T00:00:15Z')

  test.each(['validatingadmissionpolicies', 'validatingadmissionpolicybindings'] as const)(
    'or after the spec of one of the %s was last changed in place, whoever did that',
    async (what) => {
      const managedFields = [
        entry('2030-01-01T00:00:10Z', { manager: 'helm' }),
        entry('2030-02-01T00:00:00Z'),
        entry('2030-01-02T00:00:00Z', { manager: 'helm' }),
      ]
      expect(await edited(what, { generation: 3, managedFields })).toEqual({
        approvalsSinceMs: Date.parse('2030-02-01T00:00:05Z'),
        requestersSinceMs: made,
      })
      const untold = [entry('2030-02-01T00:00:00Z', { fieldsV1: undefined }), entry('2030-01-02T00:00:00Z')]
      expect(await edited(what, { generation: 3, managedFields: untold })).toMatchObject({
        approvalsSinceMs: Date.parse('2030-02-01T00:00:05Z'),
      })
    },
  )

  test('whatever was done to labels and status since', async () => {
    const label = entry('2030-03-01T00:00:00Z', { fieldsV1: { 'f:metadata': { 'f:labels': { 'f:a': {} } } } })
    const status = entry('2030-03-01T00:00:00Z', { subresource: 'status', fieldsV1: { 'f:status': {} } })
    const spec = entry('2030-02-01T00:00:00Z')
    expect(await edited('validatingadmissionpolicies', { generation: 2, managedFields: [label, status, spec] })).toMatchObject({
      approvalsSinceMs: Date.parse('2030-02-01T00:00:05Z'),
    })
    // An upgrade that changes labels alone is written down in the entry that has the spec as well.
    const helm = entry('2030-03-01T00:00:00Z', { fieldsV1: { 'f:metadata': {}, 'f:spec': {} } })
    expect(await edited('validatingadmissionpolicies', { generation: 1, managedFields: [helm] })).toMatchObject({ approvalsSinceMs: made })
  })

  test.each<[string, object]>([
    ['nothing of it is left, as of a selector that was put in and taken out', [entry('2030-01-01T00:00:10Z', { manager: 'helm' })]],
    ['nobody has kept who changed what', undefined as never],
    ['it has no time that can be read', [entry('2030-02-01T00:00:00Z'), entry(undefined)]],
  ])('or not at all, where a spec was changed and %s', async (_what, managedFields) => {
    expect(await edited('validatingadmissionpolicybindings', { generation: 3, managedFields })).toEqual({
      missing:
        'ValidatingAdmissionPolicyBinding approvals.staking.dev was changed, and nobody can tell when (delete it, and install it anew)',
    })
  })

  test('or not at all, where one is missing', async () => {
    for (const missing of [approvalPolicy.name, requesterPolicy.name])
      expect(await checksOf((plural, name) => (name === missing ? undefined : all(plural, name))).policies(signal)).toEqual({
        missing: `there is no ValidatingAdmissionPolicy ${missing}`,
      })
  })

  test('or never, where they have no time', async () => {
    const timeless = (plural: string, name: string) => {
      const found = all(plural, name)
      return found && { ...found, metadata: { ...found.metadata, creationTimestamp: undefined } }
    }
    expect(await checksOf(timeless as never).policies(signal)).toEqual({
      approvalsSinceMs: Number.POSITIVE_INFINITY,
      requestersSinceMs: Number.POSITIVE_INFINITY,
    })
  })

  test('and are not known where the operator may not read them', async () => {
    const checks = checksOf(() => {
      throw new KubeError(403, 'Forbidden', 'forbidden')
    })
    expect(await checks.policies(signal)).toEqual({ missing: 'the admission policies may not be read' })
  })

  test('whoever the API server does not plainly allow to approve may not', async () => {
    const who = { user: 'bob', groups: [] }
    expect(await checksOf(all).mayApprove(who, { kind: 'EthereumStake', namespace: 'a', name: 'b' }, signal)).toBe(false)
  })
})
