import type { KubeApi } from '../../operator/kube/api.ts'
import { GROUP } from '../../resources/meta.ts'
import { type Finding, failed, ok, saying, skipped } from './finding.ts'

export interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

const sagas = ['ethereumstakes', 'solanastakeauthorizations', 'solanastakes', 'stakingsigners', 'validatorexits', 'validatorwithdrawals']

/** What the operator may and must: the chart's ClusterRole says the same, and a test compares them. */
export const operatorRules: readonly Rule[] = [
  { apiGroups: [GROUP], resources: sagas, verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: [GROUP], resources: sagas.map((one) => `${one}/status`), verbs: ['get', 'patch'] },
  { apiGroups: [GROUP], resources: ['stakingtransactions', 'signernonces'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: [GROUP], resources: ['stakingtransactions/status'], verbs: ['get', 'patch'] },
  { apiGroups: [GROUP], resources: [...sagas, 'stakingtransactions'].toSorted().map((one) => `${one}/finalizers`), verbs: ['update'] },
  { apiGroups: [GROUP], resources: ['stakingapprovals'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
    verbs: ['get'],
  },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'get'] },
]

interface Review {
  readonly status?: { readonly allowed?: boolean }
}

/** Asks the API server what whoever runs this may, one by one (SelfSubjectAccessReview). */
export async function lookAtPermissions(
  api: Pick<KubeApi, 'call'>,
  lease: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const may = async (attributes: Readonly<Record<string, string>>): Promise<boolean> => {
    const body = JSON.stringify({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: attributes },
    })
    const review = await api.call<Review>(
      {
        verb: 'create',
        resource: 'selfsubjectaccessreviews',
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        body,
        contentType: 'application/json',
      },
      signal,
    )
    return review.status?.allowed === true
  }
  const lacking: string[] = []
  let asked = 0
  try {
    for (const { apiGroups, resources, verbs } of operatorRules)
      for (const group of apiGroups)
        for (const full of resources)
          for (const verb of verbs) {
            const [resource = full, subresource] = full.split('/')
            asked += 1
            if (!(await may({ group, resource, verb, ...(subresource === undefined ? {} : { subresource }) })))
              lacking.push(`${verb} ${full}`)
          }
    for (const verb of ['get', 'update', 'patch']) {
      asked += 1
      if (!(await may({ group: 'coordination.k8s.io', resource: 'leases', verb, ...lease })))
        lacking.push(`${verb} lease ${lease.namespace}/${lease.name}`)
    }
  } catch (error) {
    return [skipped('permission', 'RBAC', `the API server does not tell: ${saying(error)}`)]
  }
  return lacking.length === 0
    ? [ok('permission', 'RBAC', `all ${asked} permissions of the operator are there`)]
    : [
        failed(
          'permission',
          'RBAC',
          `lacking: ${lacking.slice(0, 12).join(', ')}${lacking.length > 12 ? ` and ${lacking.length - 12} more` : ''}. Bind the chart's ClusterRole and Role to this service account`,
        ),
      ]
}
