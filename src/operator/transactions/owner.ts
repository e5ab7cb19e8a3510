import type { ObjectMeta } from '../../resources/meta.ts'
import { type Asking, isPlanOnly } from '../../resources/mode.ts'
import { type Origin, readOrigin } from '../engine/origin.ts'
import { Halt, stall, wait } from '../engine/verdict.ts'
import type { TransactionLog } from './log.ts'
import type { Standing } from './memory.ts'
import { nameBySpec } from './names.ts'
import type { RecordObject } from './store.ts'

/** A resource that a record may be for, as it stands now. */
export interface OwnerResource {
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly spec: Asking
}

/**
 * Whether the resource that a record is for still asks for it: it is there, it is the very same one, and it is neither suspended nor only planned, nor being deleted.
 * Asked before every signature. `deleting`: it is also done for a resource that is being deleted, as the money's way out is. @throws Halt
 */
export function assertOwnerAsks(
  record: RecordObject,
  resource: OwnerResource | undefined,
  { deleting = false }: { readonly deleting?: boolean } = {},
): Origin {
  const { kind, namespace, name, originUid } = record.spec.owner
  const origin = resource === undefined ? undefined : readOrigin(kind, resource.metadata)
  if (resource === undefined || resource.kind !== kind || origin?.is !== 'own' || origin.origin.uid !== originUid)
    throw stall('OwnerGone', `${kind} ${namespace}/${name}, which this was to be done for, is gone. Nothing more of it is signed.`)
  if (resource.metadata.deletionTimestamp !== undefined && !deleting)
    throw wait('Deleting', `${kind} ${namespace}/${name} is being deleted: nothing more of it is signed.`, 60_000)
  if (resource.spec.suspend === true)
    throw wait('Suspended', `spec.suspend of ${kind} ${namespace}/${name} is true: nothing more of it is signed.`, 60_000)
  if (isPlanOnly(resource.spec))
    throw wait('Planned', `spec.mode of ${kind} ${namespace}/${name} is Plan: nothing more of it is signed.`, 60_000)
  return origin.origin
}

/** Whether an Ethereum record has a place in its lane, or an outcome: its owner follows it from then on, and makes no other. */
export const isBegun = ({ status }: RecordObject): boolean => status?.place !== undefined || status?.outcome !== undefined

/** The other records of what pays for a resource: of stakes that its spec.adopt has named, or that the staking API made for it. */
export const otherPayments = (log: Pick<TransactionLog, 'ofOwner'>, { spec, metadata }: RecordObject): readonly RecordObject[] =>
  log
    .ofOwner(spec.owner)
    .filter(
      (other) =>
        other.spec.purpose === spec.purpose && other.spec.owner.originUid === spec.owner.originUid && other.metadata.name !== metadata.name,
    )

/** How far a record has come: nothing, a place, an attempt, an outcome. */
const stageOf = ({ status }: RecordObject): number =>
  status?.outcome !== undefined ? 3 : (status?.attempts ?? []).length > 0 ? 2 : status?.place !== undefined ? 1 : 0

/** Which of two payments for one resource goes on, once one of them has begun: the one that has come further; of two that are equal, by name. */
export function standsBefore(other: RecordObject, record: RecordObject): boolean {
  const ahead = stageOf(other) - stageOf(record)
  return ahead > 0 || (ahead === 0 && stageOf(other) > 0 && other.metadata.name < record.metadata.name)
}

/** The log wakes the owner of a record whenever that has news; this is for what no wake reaches, in ms. */
export const LOOK_AGAIN_MS = 60_000

/** What a record without an outcome waits for, as its owner's verdict. `what`: the transaction, where its lane has not looked at it yet. */
export function pending(standing: Standing | undefined, what: string): Halt {
  if (standing === undefined) return wait('InProgress', `${what} is about to be made.`, LOOK_AGAIN_MS)
  return standing.kind === 'stall'
    ? new Halt(standing)
    : wait(standing.reason, standing.message, Math.max(standing.afterMs ?? 0, LOOK_AGAIN_MS))
}

/** ▸ The name of a record is what has its purpose done once: one under another name was made by hand, and is nobody's second chance. @throws Halt */
export function assertOwnName({ metadata, spec }: Pick<RecordObject, 'metadata' | 'spec'>): void {
  const own = nameBySpec(spec)
  if (metadata.name !== own)
    throw stall(
      'VerificationFailed',
      `StakingTransaction ${metadata.name} says that it is for what ${own} is for: somebody has made it by hand. Nothing is signed for it. Delete it.`,
    )
}
