import { type Plan, planHash } from '../../resources/plan.ts'
import { type StakingApproval, type StakingApprovalSpec, stakingApproval } from '../../resources/staking-approval.ts'
import type { OperatorParts } from '../compose.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { PoliciesInForce } from '../ports.ts'
import type { FakeKube } from './fake-kube.ts'

/** Approvals, and what the API server says of them: policies that are in force since ever, until a test says otherwise, and users who may approve. */
export function createFakeApprovals(kube: FakeKube) {
  const objects = kube.collection<StakingApproval & KubeObject>(stakingApproval)
  const state = {
    policies: { approvalsSinceMs: 0, requestersSinceMs: 0 } as PoliciesInForce | { readonly missing: string },
    /** Who has not the verb `approve`. */
    mayNot: new Set<string>(),
    /** Each user that the API server was asked about. */
    reviewed: [] as string[],
  }
  const ports: Pick<OperatorParts, 'approvalChecks'> = {
    approvalChecks: {
      policies: async () => state.policies,
      async mayApprove({ user }) {
        state.reviewed.push(user)
        return !state.mayNot.has(user)
      },
    },
  }
  let count = 0
  return {
    objects,
    state,
    ports,
    /** As a user approves a plan, past all admission. @returns the key of the approval */
    approve(plan: Plan, approver: string, change: Partial<StakingApprovalSpec> = {}, metadata: object = {}): string {
      const { kind, namespace, name, uid } = plan.resource
      const object = objects.create({
        metadata: { namespace, name: `${name}-${++count}`, ...metadata },
        spec: {
          resourceRef: { kind, name, uid },
          planHash: planHash(plan),
          approver,
          approverGroups: ['system:authenticated'],
          requestedBy: ['somebody'],
          ...change,
        },
      })
      return `${object.metadata.namespace}/${object.metadata.name}`
    },
  }
}
