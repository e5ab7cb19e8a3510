import { ethereumStake } from './ethereum-stake.ts'
import { GROUP, REQUESTED_BY_ANNOTATION } from './meta.ts'
import { solanaStake } from './solana-stake.ts'
import { solanaStakeAuthorization } from './solana-stake-authorization.ts'
import { stakingApproval } from './staking-approval.ts'
import { validatorExit } from './validator-exit.ts'
import { validatorWithdrawal } from './validator-withdrawal.ts'

/**
 * What the API server must see to, so that an approval is known to be the word of whoever it names, and a resource to say who has asked for it. The chart
 * installs these; the operator counts no approval where they are missing or other than here.
 */

interface Validation {
  readonly expression: string
  readonly message?: string
  readonly messageExpression?: string
  readonly reason?: 'Forbidden' | 'Invalid'
}
/** A ValidatingAdmissionPolicy's spec (admissionregistration.k8s.io/v1), as far as these use it. */
export interface ValidatingPolicySpec {
  readonly failurePolicy: 'Fail'
  readonly matchConstraints: {
    readonly resourceRules: readonly {
      readonly apiGroups: readonly string[]
      readonly apiVersions: readonly string[]
      readonly operations: readonly string[]
      readonly resources: readonly string[]
    }[]
  }
  readonly variables?: readonly { readonly name: string; readonly expression: string }[]
  readonly validations: readonly Validation[]
}
export interface ValidatingPolicy {
  /** Of the policy and of its binding: one of each in a cluster. */
  readonly name: string
  readonly spec: ValidatingPolicySpec
}

const approvable = [ethereumStake, solanaStake, solanaStakeAuthorization, validatorExit, validatorWithdrawal]
/** The plural of a kind that can be approved; '' for any other. */
export const pluralOf = (kind: string): string => approvable.find((one) => one.kind === kind)?.plural ?? ''
const rulesFor = (resources: readonly string[]) => ({
  resourceRules: [{ apiGroups: [GROUP], apiVersions: ['*'], operations: ['CREATE', 'UPDATE'], resources }],
})
/** CEL: the value of the annotation, '' where there is none. */
const requestedBy = (object: string): string => `${object}.metadata.?annotations[?'${REQUESTED_BY_ANNOTATION}'].orValue('')`
/** CEL: the plural of a kind. */
const plurals = `{${approvable.map(({ kind, plural }) => `'${kind}': '${plural}'`).join(', ')}}`

/** An approval is made by whom it names, who is in the groups that it names, may approve the resource, and has not asked for it. */
export const approvalPolicy: ValidatingPolicy = {
  name: `approvals.${GROUP}`,
  spec: {
    failurePolicy: 'Fail',
    matchConstraints: rulesFor([stakingApproval.plural]),
    validations: [
      {
        expression: 'oldObject != null || object.spec.approver == request.userInfo.username',
        messageExpression: "'spec.approver must be who creates the approval: ' + request.userInfo.username",
        reason: 'Forbidden',
      },
      {
        expression:
          'oldObject != null || object.spec.?approverGroups.orValue([]).all(group, has(request.userInfo.groups) && group in request.userInfo.groups)',
        message: 'spec.approverGroups names a group that its creator is not in',
        reason: 'Forbidden',
      },
      {
        expression: 'oldObject != null || !(request.userInfo.username in object.spec.requestedBy)',
        messageExpression: "request.userInfo.username + ' has asked for it, and may not approve it'",
        reason: 'Forbidden',
      },
      {
        expression: `oldObject != null || authorizer.group('${GROUP}').resource(${plurals}[object.spec.resourceRef.kind]).namespace(object.metadata.namespace).name(object.spec.resourceRef.name).check('approve').allowed()`,
        messageExpression:
          "request.userInfo.username + ' may not approve ' + object.spec.resourceRef.kind + ' ' + object.metadata.namespace + '/' + object.spec.resourceRef.name + ': that takes the verb approve on it'",
        reason: 'Forbidden',
      },
      {
        expression: 'oldObject == null || object.spec == oldObject.spec',
        message: 'an approval never changes: delete it, and approve again',
      },
    ],
  },
}

/** CEL: what the annotation must be, where anything has to be recorded. Of what has no record (it is older than the policies) there never is one. */
const expected = `oldObject == null ? variables.user : variables.before == '' || object.spec == oldObject.spec || variables.user in variables.before.split('\\n') ? variables.before : variables.before + '\\n' + variables.user`
const variables = [
  { name: 'user', expression: 'request.userInfo.username' },
  { name: 'before', expression: `oldObject == null ? '' : ${requestedBy('oldObject')}` },
]

/**
 * CEL: all that a change does to the spec is to stop it. Whoever does that asks for nothing, and is let through in a hurry without a line of their own; to go on
 * takes one.
 */
const stops = `oldObject != null && object.spec.?suspend.orValue(false) == true && object.spec.all(field, field == 'suspend' || (field in oldObject.spec && object.spec[field] == oldObject.spec[field])) && oldObject.spec.all(field, field == 'suspend' || field in object.spec)`

/** A resource says who created it and who changed its spec, or nothing at all, which no approval can mend. */
export const requesterPolicy: ValidatingPolicy = {
  name: `requesters.${GROUP}`,
  spec: {
    failurePolicy: 'Fail',
    matchConstraints: rulesFor(approvable.map(({ plural }) => plural)),
    variables: [
      ...variables,
      { name: 'now', expression: requestedBy('object') },
      { name: 'expected', expression: expected },
      { name: 'stops', expression: stops },
    ],
    validations: [
      {
        expression: `variables.now == variables.expected || (oldObject == null && variables.now == '') || (variables.now == variables.before && variables.stops)`,
        // A message of several lines is none to the API server, which shows the expression instead.
        messageExpression: `"annotation ${REQUESTED_BY_ANNOTATION} says who has asked for it, a user a line. It must be " + (variables.expected == '' ? 'left out, since it was when this was created' : 'exactly: ' + variables.expected.split('\\n').join(', then on a line of its own '))`,
        reason: 'Forbidden',
      },
    ],
  },
}
export const validatingPolicies: readonly ValidatingPolicy[] = [approvalPolicy, requesterPolicy]

/** Writes that annotation, where the cluster serves MutatingAdmissionPolicy. What it writes is checked by `requesterPolicy` like anybody's. */
export const recordingPolicy = {
  name: requesterPolicy.name,
  spec: {
    failurePolicy: 'Fail',
    reinvocationPolicy: 'Never',
    matchConstraints: requesterPolicy.spec.matchConstraints,
    matchConditions: [{ name: 'has-a-record', expression: `oldObject == null || ${requestedBy('oldObject')} != ''` }],
    variables: [...variables, { name: 'expected', expression: expected }],
    mutations: [
      {
        // Not ApplyConfiguration: that needs an object of the schema's types, and refuses any other with words of its own before the schema can say which field
        // is wrong (`amountEth: 32`, without quotes).
        patchType: 'JSONPatch',
        jsonPatch: {
          expression: `has(object.metadata.annotations) ? [JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('${REQUESTED_BY_ANNOTATION}'), value: variables.expected}] : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {'${REQUESTED_BY_ANNOTATION}': variables.expected}}]`,
        },
      },
    ],
  },
} as const
