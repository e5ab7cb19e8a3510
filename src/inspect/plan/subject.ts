import type { Origin } from '../../operator/engine/origin.ts'
import { goesByLabels, type NamespaceFacts, type Refusal } from '../../operator/transactions/policy.ts'
import { mayBeHandedOver } from '../../operator/transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../operator/transactions/store.ts'
import { type Asking, asksForSignature, isPlanOnly } from '../../resources/mode.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { LiveObject } from './cluster-view.ts'
import { type Draft, refuse } from './draft.ts'
import type { Rooms } from './rooms.ts'
import { admissionOver, type World } from './world.ts'

/** A resource that moves money, with what is there of it. */
export interface Subject<Spec> {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly spec: Spec
  /** As it is in the cluster; undefined where it is not there, or where none was asked. */
  readonly live: LiveObject | undefined
  /** Its own records in the log. */
  readonly own: readonly RecordObject[]
  /** Those of another resource that had its name before. */
  readonly former: readonly RecordObject[]
  /** The API server takes it without a word of who asks for it. False where that is not known. */
  readonly isUnrecorded: boolean
}

/** What the plan of one resource is made with. */
export interface PlanContext {
  readonly world: World
  readonly rooms: Rooms
  /** Exits that are asked for so far: by which resource, by validator. */
  readonly exits: Map<string, string>
  readonly signal: AbortSignal
}

/** Who it would be for the operator. No key of idempotency that is made of it is used: a plan asks the staking API nothing. */
export const originOf = <Kind extends string>(subject: {
  readonly kind: Kind
  readonly namespace: string
  readonly name: string
  readonly live: LiveObject | undefined
}): Origin & { readonly kind: Kind } => ({
  kind: subject.kind,
  namespace: subject.namespace,
  name: subject.name,
  uid: subject.live?.metadata.uid ?? 'not-created',
})

export const uidsOf = (records: readonly RecordObject[]): ReadonlySet<string> => new Set(records.map(({ metadata }) => metadata.uid))

/** Something of it may land, or has: what is applied over it pays nothing again. What has come to nothing (cancelled, expired) is made again, and pays. */
export const isSigned = (record: RecordObject): boolean => record.status?.outcome !== undefined || !mayBeHandedOver(recordOf(record))

/** What a resource that had the name before has done, or may yet. What was reverted has done nothing. */
export const doneBefore = ({ former }: Pick<Subject<unknown>, 'former'>): RecordObject | undefined =>
  former.find((record) => isSigned(record) && record.status?.outcome?.is !== 'Reverted')

/**
 * A resource that is made anew under the name of one that has paid: the staking API keeps the name, and gives it to nobody else. To take that stake over is another
 * matter. @returns whether all is said with that
 */
export function tellMadeAnew(
  draft: Draft,
  subject: Pick<Subject<{ readonly adopt?: { readonly stakeId: string } | undefined }>, 'former' | 'kind' | 'namespace' | 'name' | 'spec'>,
): boolean {
  const before = doneBefore({ former: subject.former.filter(({ spec }) => spec.purpose === 'Deposit' || spec.purpose === 'SolanaStake') })
  if (before === undefined) return false
  const { apiId = '', amount, owner } = before.spec
  const { adopt } = subject.spec
  if (adopt !== undefined && adopt.stakeId !== apiId) return false
  const what = `${subject.kind} ${subject.namespace}/${subject.name} of UID ${owner.originUid} has paid ${amount} before (StakingTransaction ${before.metadata.name})`
  if (adopt !== undefined) {
    draft.does.push(`takes over stake ${apiId} of the staking API: ${what}, and nothing is paid again`)
    return true
  }
  refuse(draft, {
    by: 'operator',
    reason: 'AlreadyStaked',
    message: `${what}, and the staking API keeps its name. Nothing is bought again. To take that stake over as it is, set spec.adopt.stakeId to ${apiId}; for another stake, choose another name.`,
  })
  return true
}

/** The signer of a name; undefined where it is not known, which is told. One that is known to be nowhere is told by who admits. */
export function signerNamed(draft: Draft, world: World, name: string): StakingSigner | undefined {
  const signer = world.signers.get(name)
  if (signer === undefined && !world.knowsAllSigners)
    draft.unknown.push(
      `whether StakingSigner ${name} admits it: it is not in these manifests, and ${world.records === undefined ? 'no cluster was asked (--server)' : 'you may not read StakingSigners'}`,
    )
  return signer
}

/**
 * Asks a signer's policy, as the operator does, and takes down what it says. A namespace whose labels are not known is neither admitted nor refused: all else
 * is asked as if it were.
 */
export function askPolicy(
  draft: Draft,
  { world, signer, namespace }: { readonly world: World; readonly signer: StakingSigner; readonly namespace: string },
  what: string,
  refusalOf: (signer: StakingSigner, facts: NamespaceFacts) => Refusal | undefined,
): { readonly assumed: string | undefined; readonly isRefused: boolean } {
  const labels = world.labels(namespace)
  const assumed = labels === undefined && goesByLabels(signer, namespace) ? namespace : undefined
  const asked = admissionOver(world, assumed).signers.get(signer.metadata.name) ?? signer
  const refusal = refusalOf(asked, { name: namespace, labels })
  const answer = { signer: signer.metadata.name }
  if (refusal?.isWait === true) {
    draft.waits.push({ by: 'operator', reason: refusal.reason, message: refusal.message })
    draft.policy.push({ ...answer, says: 'unknown', message: 'it is suspended: its policy is asked when that is taken back' })
  } else if (refusal !== undefined) {
    refuse(draft, { by: 'operator', reason: refusal.reason, message: refusal.message })
    draft.policy.push({ ...answer, says: 'refuses', message: refusal.message })
  } else if (assumed !== undefined) {
    const message = `it admits namespaces by their labels, and those of ${namespace} are not known here`
    draft.unknown.push(`whether StakingSigner ${signer.metadata.name} admits namespace ${namespace}: ${message}`)
    draft.policy.push({ ...answer, says: 'unknown', message })
  } else draft.policy.push({ ...answer, says: 'admits', message: `it admits ${what}` })
  return { assumed, isRefused: refusal !== undefined }
}

export const tellUnknownNetwork = (draft: Draft, network: string): void =>
  void draft.unknown.push(
    `whether the operator has network ${network}, what a fee is now and what the address holds: no networks file was given (--networks)`,
  )

/** Says why nothing is signed for a resource that asks for nothing now. @returns whether it is so */
export function tellIdle(draft: Draft, spec: Asking): boolean {
  const wait = (reason: string, message: string): void => void draft.waits.push({ by: 'operator', reason, message })
  if (spec.suspend === true) wait('Suspended', 'spec.suspend is true: nothing is created, signed or sent until it is taken away.')
  else if (isPlanOnly(spec)) wait('Planned', 'spec.mode is Plan: it is verified, and nothing is signed until it is Apply.')
  return !asksForSignature(spec)
}
