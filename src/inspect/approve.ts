import { randomBytes } from 'node:crypto'
import { KubeError, KubeTransportError } from '../operator/kube/errors.ts'
import type { KubeObject } from '../operator/kube/objects.ts'
import { definitionOf } from '../operator/saga-collection.ts'
import { type Condition, findCondition } from '../resources/conditions.ts'
import { REQUESTED_BY_ANNOTATION } from '../resources/meta.ts'
import { readPlan, type ShownPlan } from '../resources/plan.ts'
import type { LimitUse } from '../resources/signer-limits.ts'
import {
  approvableKinds,
  isGroupName,
  MOST_GROUPS,
  MOST_REQUESTERS,
  STAKING_APPROVAL_API,
  type StakingApproval,
  stakingApproval,
} from '../resources/staking-approval.ts'
import { type StakingSigner, stakingSigner } from '../resources/staking-signer.ts'
import { uncounted } from './approval-counts.ts'
import type { Cluster } from './cluster.ts'
import { InspectError } from './error.ts'
import { findResource } from './life.ts'
import { oneLine } from './output.ts'

/** What can be approved, as a person is to see it before. */
export interface Approvable {
  readonly plan: ShownPlan
  /** Who has asked for it; empty where that is not recorded. */
  readonly requestedBy: readonly string[]
  /** The operator says that no approval counts, as nobody can prove who has asked. */
  readonly isUnproven: boolean
  readonly signers: SignersSeen
  /** Who would approve. */
  readonly user: string
  readonly groups: readonly string[]
}

/** What whoever asks may see of those who would sign. */
export interface SignersSeen {
  /** What of the limits of whoever pays is used; or why that is not known, as a clause. */
  readonly limits: readonly LimitUse[] | string
  /** Groups that their policies ask for the approval of; undefined where not all of them can be read. */
  readonly asks: readonly string[] | undefined
  /** All whose policies are asked; undefined where not all of them are known, or can be read. */
  readonly all: readonly StakingSigner[] | undefined
}

type Planned = KubeObject & { readonly status?: { readonly plan?: unknown; readonly conditions?: readonly Condition[] } }

/**
 * The plan of a resource that waits for an approval. Its hash is computed here: status can be written by others than the operator.
 * @throws InspectError where there is none, or none to be believed
 */
export async function readApprovable(cluster: Cluster, target: string, namespace: string, signal: AbortSignal): Promise<Approvable> {
  const resource = await findResource<Planned>(cluster, target, namespace, signal)
  const { kind, metadata, status } = resource
  const what = `${kind} ${namespace}/${metadata.name}`
  if (status?.plan === undefined) throw new InspectError(`nothing of ${what} waits for an approval: its status has no plan`)
  const plan = readPlan(status.plan)
  if (plan === undefined)
    throw new InspectError(
      `status.plan of ${what} does not have the hash that it shows: somebody changed it. The operator puts it right in a moment: look again`,
    )
  const { resource: of } = plan
  if (of.kind !== kind || of.namespace !== namespace || of.name !== metadata.name || of.uid !== metadata.uid)
    throw new InspectError(
      `status.plan of ${what} is of ${of.kind} ${of.namespace}/${of.name} (uid ${of.uid}): somebody put it there. Do not approve it`,
    )
  const { username, groups = [] } = await whoAmI(cluster, signal)
  const requestedBy = (metadata.annotations?.[REQUESTED_BY_ANNOTATION] ?? '').split('\n').filter((user) => user !== '')
  const isUnproven = findCondition(status.conditions, 'Ready')?.reason === 'ApprovalUnproven'
  return { plan, requestedBy, isUnproven, signers: await signersOf(cluster, plan, signal), user: username, groups }
}

/** Approves it as whoever asks. @returns the approval's name @throws InspectError where the cluster refuses it, or nobody knows what it did */
export async function approve(
  cluster: Cluster,
  { plan, requestedBy, isUnproven, user, groups, signers }: Approvable,
  expiresAt: Date | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { kind, namespace, name, uid } = plan.resource
  if (requestedBy.includes(user)) throw new InspectError(`you (${user}) have asked for it: somebody else must approve it`)
  if (isUnproven)
    throw new InspectError('nobody can prove who has asked for it: no approval would count, as the message of its condition Ready says')
  const ofKind = approvableKinds.find((one) => one === kind)
  if (ofKind === undefined) throw new InspectError(`nothing of a ${kind} is approved`)
  const named = approverGroups(groups, signers.asks)
  const why = uncounted({ plan, requestedBy, user, groups: named, signers: signers.all })
  if (why !== undefined) throw new InspectError(why)
  const object = {
    ...STAKING_APPROVAL_API,
    metadata: {
      namespace,
      name: `${name.slice(0, 200)}-${randomBytes(5).toString('hex')}`,
      // It goes with the resource, of which it says nothing any more then: what was signed by it stands in the log.
      ownerReferences: [{ apiVersion: STAKING_APPROVAL_API.apiVersion, kind, name, uid }],
    },
    spec: {
      resourceRef: { kind: ofKind, name, uid },
      planHash: plan.hash,
      approver: user,
      approverGroups: named,
      // Of more, the operator goes by the annotation, which has all of them.
      requestedBy: requestedBy.slice(0, MOST_REQUESTERS),
      ...(expiresAt === undefined ? {} : { expiresAt: expiresAt.toISOString() }),
    },
  }
  try {
    const made = await cluster.api.resource<StakingApproval & KubeObject>(definitionOf(stakingApproval)).create(object, signal)
    return made.metadata.name
  } catch (error) {
    throw notApproved(error, object.metadata)
  }
}

/** What became of an approval that was asked for. Only a refusal says that there is none: it may be there whatever else was answered. */
function notApproved(error: unknown, { namespace, name }: { readonly namespace: string; readonly name: string }): unknown {
  if (!(error instanceof KubeError || error instanceof KubeTransportError)) return error
  const says = oneLine(error.message)
  return error instanceof KubeError && error.status >= 400 && error.status < 500
    ? new InspectError(`the API server refuses the approval: ${says}`)
    : new InspectError(
        `it is not known whether it was approved: ${says}. This answers it: kubectl get stakingapproval ${name} -n ${namespace}`,
      )
}

interface UserInfo {
  readonly username: string
  readonly groups?: readonly string[]
}

/** As the API server knows whoever asks. */
async function whoAmI(cluster: Cluster, signal: AbortSignal): Promise<UserInfo> {
  const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
  try {
    const review = await cluster.api.call<{ readonly status?: { readonly userInfo?: UserInfo } }>(
      {
        verb: 'create',
        resource: 'selfsubjectreviews',
        method: 'POST',
        path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
        body,
        contentType: 'application/json',
      },
      signal,
    )
    if (review.status?.userInfo !== undefined) return review.status.userInfo
  } catch (error) {
    if (!(error instanceof KubeError || error instanceof KubeTransportError)) throw error
    throw new InspectError(`the API server does not say who you are: ${oneLine(error.message)}`)
  }
  throw new InspectError('the API server does not say who you are')
}

async function signersOf(
  cluster: Cluster,
  { signer, withdrawSigner, network, resource, purpose }: ShownPlan,
  signal: AbortSignal,
): Promise<SignersSeen> {
  const read = (name: string) => cluster.get<StakingSigner & KubeObject>(definitionOf(stakingSigner), { name }, signal)
  const payer = await read(signer)
  const others = withdrawSigner === undefined || withdrawSigner === signer ? [] : [await read(withdrawSigner)]
  const readable = [payer, ...others].flatMap((found) => (typeof found === 'string' ? [] : [found]))
  const limits =
    payer === 'forbidden'
      ? `you may not read StakingSigner ${signer} (a ClusterRole with get on stakingsigners)`
      : payer === 'absent'
        ? `there is no StakingSigner ${signer}`
        : (payer.status?.limits ?? []).filter(
            (limit) => limit.network === network && (limit.namespace === undefined || limit.namespace === resource.namespace),
          )
  const asks = readable.flatMap(({ spec }) => (spec.policy.approval?.by ?? []).flatMap(({ group }) => group ?? []))
  const areRead = readable.length === 1 + others.length
  // Who is to get an authority is asked too, and a plan has their addresses alone.
  return { limits, asks: areRead ? asks : undefined, all: areRead && purpose !== 'SolanaAuthorization' ? readable : undefined }
}

/**
 * The groups of an approver that an approval names: all that it can, and of more those first that count.
 * @throws InspectError where it can't name all, and nobody knows which ones count
 */
export function approverGroups(groups: readonly string[], asks: readonly string[] | undefined): string[] {
  const all = [...new Set(groups)].filter(isGroupName)
  if (all.length <= MOST_GROUPS) return all
  if (asks === undefined)
    throw new InspectError(
      `you are in ${all.length} groups, and an approval names at most ${MOST_GROUPS}. Which of them count stands in the policy of the StakingSigner, which you may not read: ask for a ClusterRole with get on stakingsigners`,
    )
  const [first, rest] = [all.filter((group) => asks.includes(group)), all.filter((group) => !asks.includes(group))]
  return [...first, ...rest].slice(0, MOST_GROUPS)
}

/** What the limits leave, as lines of a name and a value. */
export const limitsInWords = (limits: SignersSeen['limits']): readonly (readonly [string, string])[] =>
  typeof limits === 'string' ? [['limits', `not known: ${limits}`]] : limits.map((limit) => ['limit', limitInWords(limit)])

/** A limit in a line. */
const limitInWords = ({ window, per, countLeft, leftEth, leftSol }: LimitUse): string =>
  `${window}${per === 'Namespace' ? ' for the namespace' : ''}: ${
    [
      ...(countLeft === undefined ? [] : [`${countLeft} transactions`]),
      ...(leftEth === undefined ? [] : [`${leftEth} ETH`]),
      ...(leftSol === undefined ? [] : [`${leftSol} SOL`]),
    ].join(' and ') || 'nothing'
  } left`
