import { DISREGARD_SUBMISSION_ANNOTATION, type ObjectMeta } from '../../resources/meta.ts'
import { type Asking, isPlanOnly } from '../../resources/mode.ts'
import { type Origin, readOrigin } from '../engine/origin.ts'
import { Halt, stall, wait } from '../engine/verdict.ts'
import { openClaims } from './claims.ts'
import type { TransactionLog } from './log.ts'
import type { Standing } from './memory.ts'
import { nameBySpec } from './names.ts'
import { disregardedIn, isOpen, openAttempts } from './protocol.ts'
import { liveAttempts } from './solana/rules.ts'
import { type RecordObject, recordOf } from './store.ts'

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

/** Whether the call that is to be sent stands in the log with its signature, as of a remote signer: it is sent without its key. */
export const isSigned = (record: RecordObject): boolean =>
  openAttempts(recordOf(record)).findLast(({ kind }) => kind === 'Call')?.signature !== undefined

const othersAmong = (records: readonly RecordObject[], { spec, metadata }: RecordObject): readonly RecordObject[] =>
  records.filter(
    (other) =>
      other.spec.purpose === spec.purpose && other.spec.owner.originUid === spec.owner.originUid && other.metadata.name !== metadata.name,
  )

/** The other records of what a resource asks for once: of stakes that its spec.adopt has named, or that the staking API made for it, or on another chain. */
export const otherPayments = (log: Pick<TransactionLog, 'ofOwner'>, record: RecordObject): readonly RecordObject[] =>
  othersAmong(log.ofOwner(record.spec.owner), record)

/**
 * The record of a resource that is being deleted, whichever origin it says that it has: what was signed at its place and may land keeps it, and of one that says that
 * it is another than it is, whatever was signed there. `recordFor`: by its place and a UID, or by its place alone.
 */
export function recordOfDeleted(
  recordFor: (uid: string | undefined) => RecordObject | undefined,
  { uid }: Pick<ObjectMeta, 'uid'>,
  origin: Origin | undefined,
): RecordObject | undefined {
  const own = recordFor(origin?.uid ?? uid) ?? recordFor(uid)
  if (own !== undefined) return own
  const here = recordFor(undefined)
  return here !== undefined && (origin?.uid !== uid || isOpen(recordOf(here))) ? here : undefined
}

/** What an earlier version may have sent for a record, and is not looked up yet. */
export const isClaimed = ({ metadata, status = {} }: RecordObject): boolean =>
  openClaims({ status }, disregardedIn(metadata.annotations?.[DISREGARD_SUBMISSION_ANNOTATION])).length > 0

/** How far a record has come: nothing, a place, an attempt or what may be one, an outcome. */
const stageOf = (record: RecordObject): number => {
  const { outcome, attempts = [], place } = record.status ?? {}
  return outcome !== undefined ? 3 : attempts.length > 0 || isClaimed(record) ? 2 : place !== undefined ? 1 : 0
}

/** Which of two records of one resource goes on, once one of them has begun: the one that has come further; of two that are equal, by name. */
export function standsBefore(other: RecordObject, record: RecordObject): boolean {
  const ahead = stageOf(other) - stageOf(record)
  return ahead > 0 || (ahead === 0 && stageOf(other) > 0 && other.metadata.name < record.metadata.name)
}

/** Something of it was signed, may have been sent, and is not proven dead. */
const mayLand = (record: RecordObject): boolean =>
  isClaimed(record) ||
  (record.spec.chain === 'Solana'
    ? liveAttempts(recordOf(record)).length > 0
    : openAttempts(recordOf(record)).some(({ kind }) => kind === 'Call'))

/**
 * ▸ The record that is what a resource asks for, in place of this one: what a resource asks for is done once, whatever names the staking API or the spec have for it.
 * `fresh`: right before the first sending, when each stands in the log with what was signed of it. All are seen that were written before this one was, which a cache
 * may never have heard of: so of two that were signed at once the last to be written sees the other, which may have been sent. It is not sent too, whichever would go on.
 */
export async function doneInstead(
  log: Pick<TransactionLog, 'ofOwner' | 'beside'>,
  record: RecordObject,
  fresh: boolean,
  signal: AbortSignal,
): Promise<RecordObject | undefined> {
  const others = othersAmong(fresh ? await log.beside(record, signal) : log.ofOwner(record.spec.owner), record)
  return others.find((other) => standsBefore(other, record) || (fresh && mayLand(other)))
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

/** The record has no room for what making it once more may take. It goes by itself some time after its resource, since nothing of it can land. */
export const recordFull = ({ metadata, status }: RecordObject): Halt =>
  stall(
    'RemadeTooOften',
    `StakingTransaction ${metadata.name} holds ${status?.attempts?.length} versions of it, and has no room for more (see its status.closed). It is not made again. To go on, delete the resource, wait until that StakingTransaction is gone (it goes by itself, some time after), and create the resource anew.`,
  )
