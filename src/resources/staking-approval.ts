import { z } from 'zod'
import { lastColumns } from './columns.ts'
import { API_VERSION, type KindDefinition, type Resource } from './meta.ts'
import { planHashText } from './plan-hash.ts'
import { cel, dnsSubdomain, inWords, listSet, time } from './schema.ts'

/** Kinds whose transactions can be approved. */
export const approvableKinds = ['EthereumStake', 'ValidatorExit', 'ValidatorWithdrawal', 'SolanaStake', 'SolanaStakeAuthorization'] as const

const userName = () =>
  inWords(
    z
      .string()
      .min(1)
      .max(256)
      .regex(/^[^\p{Cc}]+$/u),
    'must be a name of at most 256 characters without control characters',
  )

/** Names that an approval repeats of those who have asked: admission refuses any of them at once. */
export const MOST_REQUESTERS = 32
/** Groups of its approver that an approval names. */
export const MOST_GROUPS = 256
const groupName = userName()
/** Whether an approval can name a group. */
export const isGroupName = (name: string): boolean => groupName.safeParse(name).success

const spec = z.strictObject({
  resourceRef: z
    .strictObject({
      kind: z.enum(approvableKinds).describe('Kind of the resource.'),
      name: dnsSubdomain().describe('Its name, in the namespace of this approval.'),
      uid: z.string().min(1).max(64).describe('Its metadata.uid: another resource of the same name is not approved.'),
    })
    .describe('The resource that asks for it.'),
  planHash: planHashText().describe('status.plan.hash of the resource: exactly that is approved.'),
  approver: userName().describe('Who approves. The admission policies admit no other name than that of whoever creates this.'),
  approverGroups: z
    .array(userName())
    .max(MOST_GROUPS)
    .meta(listSet)
    .optional()
    .describe("Groups of the approver that count for the signer's policy. The admission policies admit none that the approver is not in."),
  requestedBy: z
    .array(userName())
    .max(MOST_REQUESTERS)
    .meta(listSet)
    .describe(
      'Who has asked for it, by the annotation staking.dev/requested-by of the resource; nobody where it has none. None of them may approve.',
    ),
  expiresAt: time().optional().describe("When it stops to count, if that is before the signer's policy.approval.validFor."),
})

/** One user's word that exactly this may be signed. */
export const stakingApproval = {
  kind: 'StakingApproval',
  plural: 'stakingapprovals',
  singular: 'stakingapproval',
  shortNames: ['approval', 'approvals'],
  scope: 'Namespaced',
  description:
    'StakingApproval is the word of one user that exactly one plan of one resource may be signed: it names the hash that stands in status.plan of the resource. kubectl staking approve makes it. It never changes; delete it to take it back, which counts until the transaction is sent for the first time.',
  spec: cel(spec, { rule: 'self == oldSelf', message: 'an approval never changes: delete it, and approve again' }),
  status: z.object({}),
  printerColumns: [
    { name: 'Kind', type: 'string', jsonPath: '.spec.resourceRef.kind', description: 'Kind of the resource.' },
    { name: 'Resource', type: 'string', jsonPath: '.spec.resourceRef.name', description: 'Name of the resource.' },
    { name: 'Approver', type: 'string', jsonPath: '.spec.approver', description: 'Who approves.' },
    { name: 'Plan', type: 'string', jsonPath: '.spec.planHash', description: 'Hash of the plan.', priority: 1 },
    { name: 'Expires', type: 'date', jsonPath: '.spec.expiresAt', description: 'When it stops to count.', priority: 1 },
    ...lastColumns.slice(-1),
  ],
  selectableFields: ['.spec.planHash', '.spec.resourceRef.kind', '.spec.resourceRef.name', '.spec.approver'],
} as const satisfies KindDefinition

export type StakingApprovalSpec = z.output<typeof spec>
export type StakingApproval = Resource<StakingApprovalSpec, Record<string, never>>
export const stakingApprovalSpec: z.ZodType<StakingApprovalSpec> = spec
export const STAKING_APPROVAL_API = { apiVersion: API_VERSION, kind: stakingApproval.kind } as const
