import { isGone } from '../../../contract/client-error.ts'
import { sameHex } from '../../../lib/hex.ts'
import { findCondition, isTrue } from '../../../resources/conditions.ts'
import { asksForSignature } from '../../../resources/mode.ts'
import type { Reason } from '../../../resources/reasons.ts'
import { readOrigin } from '../../engine/origin.ts'
import { Halt, type Verdict, wait } from '../../engine/verdict.ts'
import type { EthereumNetwork } from '../../ports.ts'
import { pubkeyOf } from '../../transactions/ethereum-texts.ts'
import type { Admission } from '../../transactions/kind.ts'
import { isOpen } from '../../transactions/protocol.ts'
import { type RecordObject, recordOf } from '../../transactions/store.ts'
import type { ValidatorRequestDeps, ValidatorRequestResource } from './deps.ts'
import { requestTypeOf } from './request-type.ts'
import { rulesIn } from './rules.ts'
import { isDecided, isRequestSettled } from './status.ts'
import type { FoundValidator, RequestOrder } from './steps.ts'
import type { RequestTargets } from './target.ts'

/** What the validator itself has to wait for: the same for all that ask it for something, and nobody's own wish. */
const ofTheValidator: ReadonlySet<Reason> = new Set([
  'ValidatorNotActive',
  'ValidatorTooYoung',
  'PendingWithdrawals',
  'WaitingForValidator',
])
/** Caps, limits, funds, approvals and suspensions: somebody else may have others. */
const ofItsOwn: ReadonlySet<Reason> = new Set([
  'RequestFeeTooHigh',
  'FeeTooHigh',
  'LimitReached',
  'InsufficientFunds',
  'WaitingForStake',
  'ApprovalRequired',
  'Suspended',
  'SignerSuspended',
])
/** …of those what is told by the lane alone, which gives out what there is. */
const ofItsLane: ReadonlySet<string> = new Set<Reason>(['LimitReached', 'FeeTooHigh', 'InsufficientFunds'])
/** So many polls an older one that does nothing is waited for. */
const PATIENCE_POLLS = 10
/** For so many polls what waits for its owner's own wish keeps what somebody else asks for too. Each that asks has that time, in turn. */
const TURN_POLLS = 25
/** Somebody asks no more who has not for so many times the time from one look to the next. */
const QUIET_TIMES = 3
/** How long what was noted of a resource counts, in ms. */
const NOTED_MS = 600_000

/** A request that this one comes after. */
interface InFlight {
  readonly record: RecordObject
  readonly needsPerson: boolean
  /** Its transaction has, and what the consensus layer made of it is not known. */
  readonly hasLanded: boolean
}

export type Turns = ReturnType<typeof createTurns>

/**
 * Requests on one validator are ordered, not raced: the older first, and none while another's outcome is unknown. What is in flight is read from the log;
 * what a resource says of itself in its status can only make it give way. ▸ Nobody's wish holds others: one that is suspended, only planned, deleted, stalled or
 * waits for its own fee holds back nobody, and one that does nothing only for some polls.
 */
export function createTurns(deps: ValidatorRequestDeps, { networkOf }: RequestTargets) {
  const { log } = deps
  const { note, goesFirst } = createPatience(deps)
  /** Landings that the staking API said the consensus layer has decided on. */
  const decided = new Set<string>()

  /** Whether the consensus layer has decided on what landed. What the service does not know any more is not waited for. */
  async function isDecidedOn(record: RecordObject, validator: FoundValidator, signal: AbortSignal): Promise<boolean> {
    const { apiId, owner } = record.spec
    const hash = record.status?.outcome?.hash ?? ''
    const key = `${record.metadata.uid}/${hash.toLowerCase()}`
    const type = requestTypeOf(owner.kind)
    if (decided.has(key) || type === undefined || apiId === undefined) return true
    try {
      const { status, consensus, transaction } = await type.read(networkOf(validator.network).requests, pubkeyOf(record), apiId, signal)
      if (status !== 'confirmed' || consensus.status === 'pending' || !sameHex(transaction.hash ?? '', hash)) return false
      // Dropped by nothing, it may wait in the contract's queue still.
      if (consensus.status === 'dropped' && rulesIn(type.kind, consensus.reason).length === 0) return false
    } catch (error) {
      if (!isGone(error)) throw error
    }
    decided.add(key)
    return true
  }

  /** A record that this one comes after; undefined where there is none. */
  async function inFlight(
    own: RecordObject | undefined,
    ownName: string,
    validator: FoundValidator,
    peers: readonly ValidatorRequestResource[],
    signal: AbortSignal,
  ): Promise<InFlight | undefined> {
    const { chainId } = networkOf(validator.network).config
    const ownPlace = own?.status?.place
    for (const record of log.ofSubject(validator.pubkey)) {
      const { spec, status, metadata } = record
      if (metadata.name === ownName || spec.chainId !== chainId || requestTypeOf(spec.owner.kind)?.purpose !== spec.purpose) continue
      if (isOpen(recordOf(record))) {
        // Of two that both have places the lower one goes first: it is mined first.
        if (ownPlace !== undefined && (status?.place ?? 0) > ownPlace) continue
        return { record, needsPerson: log.standing(metadata.name)?.kind === 'stall', hasLanded: false }
      }
      if (status?.outcome?.is !== 'Landed') continue
      const owner = peers.find((peer) => ownsRecord(peer, record))
      if (owner === undefined || isDecided(owner.status)) continue
      if (!(await isDecidedOn(record, validator, signal)))
        return { record, needsPerson: isTrue(owner.status?.conditions, 'Stalled'), hasLanded: true }
    }
    return undefined
  }

  return {
    note,
    ...createContention(deps),

    /** Others than the owner of a record that ask for something of this validator, now: a later one of its name is another. */
    rivals: (record: RecordObject, validator: FoundValidator): readonly ValidatorRequestResource[] =>
      [...deps.requestsOn(validator)].filter(
        (peer) =>
          !ownsRecord(peer, record) &&
          asksForSignature(peer.spec) &&
          peer.metadata.deletionTimestamp === undefined &&
          !isRequestSettled(peer.status),
      ),

    /** @throws Halt (WaitingForValidator) while another comes first */
    async assertTurn(
      order: RequestOrder,
      validator: FoundValidator,
      own: RecordObject | undefined,
      ownName: string,
      signal: AbortSignal,
    ): Promise<void> {
      const { pollIntervalMs } = networkOf(validator.network).config
      const peers = [...deps.requestsOn(validator)]
      const busy = await inFlight(own, ownName, validator, peers, signal)
      if (busy !== undefined) {
        const { kind, namespace, name } = busy.record.spec.owner
        const person = busy.needsPerson ? 'That one needs a person: see its condition Stalled. ' : ''
        // What can't be told any more would be waited for for ever.
        const landed = busy.hasLanded
          ? 'Its transaction has landed: should nobody be able to tell any more what came of it, look at the validator, delete that one, and confirm it as its message says. '
          : ''
        throw waiting(
          `${kind} ${namespace}/${name} is for the same validator and its outcome is not known yet: this one comes after it. ${person}${landed}It goes on by itself${busy.needsPerson ? ' once that is settled' : ''}.`,
          pollIntervalMs,
        )
      }
      if (own?.status?.place !== undefined) return
      const self = peers.find((peer) => isOf(peer, order))
      const first = peers.find((peer) => !isOf(peer, order) && isOlder(peer, self) && goesFirst(peer, own, PATIENCE_POLLS * pollIntervalMs))
      if (first !== undefined)
        throw waiting(
          `${first.kind} ${first.metadata.namespace}/${first.metadata.name} is for the same validator and older: this one comes after it. Suspend or delete that one to let this one go first. It goes on by itself.`,
          pollIntervalMs,
        )
    },
  }
}

const waiting = (message: string, afterMs: number): Halt => wait('WaitingForValidator', message, afterMs)

const ownsRecord = ({ kind, metadata }: ValidatorRequestResource, { spec }: RecordObject): boolean => {
  const origin = readOrigin(kind, metadata)
  return (
    kind === spec.owner.kind &&
    metadata.namespace === spec.owner.namespace &&
    metadata.name === spec.owner.name &&
    origin.is === 'own' &&
    origin.origin.uid === spec.owner.originUid
  )
}

const isOf = ({ kind, metadata }: ValidatorRequestResource, { origin }: Pick<RequestOrder, 'origin'>): boolean =>
  kind === origin.kind && metadata.namespace === origin.namespace && metadata.name === origin.name

/** By creation, then by namespace and name. One that isn't in the cache yet is the youngest. */
function isOlder(one: ValidatorRequestResource, than: ValidatorRequestResource | undefined): boolean {
  if (than === undefined) return true
  const keyOf = ({ kind, metadata }: ValidatorRequestResource) =>
    [metadata.creationTimestamp ?? '', metadata.namespace ?? '', metadata.name, kind].join('\0')
  return keyOf(one) < keyOf(than)
}

/** Whether a record that somebody else asks for has been with its owner for long enough. */
function createContention({ log, clock, assertApproved, stallRecheckMs }: ValidatorRequestDeps) {
  /** Since when somebody else asks for what a record is for, and when somebody did last, monotonic ms, by the record and its owner. */
  const contended = new Map<string, { readonly since: number; readonly last: number }>()

  /** Whether its time is over, as its owner waits for this. Asked each time that somebody else asks for it. */
  function isOver({ metadata, spec }: RecordObject, reason: Reason | undefined, pollIntervalMs: number): boolean {
    const key = `${metadata.uid}/${spec.generation}`
    if (reason === undefined || !(ofItsOwn.has(reason) || reason === 'ApprovalUnproven')) {
      contended.delete(key)
      return false
    }
    const now = clock.monotonicMs()
    const known = contended.get(key)
    const isNew = known === undefined || now - known.last > QUIET_TIMES * Math.max(stallRecheckMs, pollIntervalMs)
    const since = isNew ? now : known.since
    if (contended.size > 50_000) contended.clear()
    contended.set(key, { since, last: now })
    return now - since >= TURN_POLLS * pollIntervalMs
  }

  return {
    /**
     * Whether a record that somebody else asks for has been with its owner for long enough: what that waits for is its own, such as an approval or a limit. ▸ What
     * is done once for a validator would wait with it for ever. One that has just got what it waited for keeps it, though its lane has not looked again.
     * `admission`: what the owner is admitted with now.
     */
    async hasHadItsTurn(
      record: RecordObject,
      { config }: Pick<EthereumNetwork, 'config'>,
      admission: () => Promise<Admission | undefined>,
      signal: AbortSignal,
    ): Promise<boolean> {
      const reason = log.standing(record.metadata.name)?.reason
      if (!isOver(record, reason, config.pollIntervalMs)) return false
      if (ofItsLane.has(reason ?? '')) return true
      const admitted = await admission()
      if (admitted === undefined) return true
      try {
        await assertApproved(record, admitted.approvable, signal)
        return false
      } catch (error) {
        if (error instanceof Halt) return true
        throw error
      }
    },
  }
}

/** Whether one that is older and does nothing goes first: by how its last effect ended, and by how long it was waited for. */
function createPatience({ clock }: Pick<ValidatorRequestDeps, 'clock'>) {
  /** How the last effect of a resource ended in this process, by the origin's UID. */
  const noted = new Map<string, { readonly verdict: Verdict | undefined; readonly at: number }>()
  /** Since when somebody waits for an older one that is not in flight, monotonic ms, by that one's UID. */
  const waitedSince = new Map<string, number>()

  /** Remembers how an effect of a resource ended: a tenant can't write that. */
  function note(uid: string, verdict: Verdict | undefined): void {
    if (noted.size > 50_000) noted.clear()
    noted.set(uid, { verdict, at: clock.monotonicMs() })
  }

  /** Whether one that is older and not in flight goes first. `own`: of the one that would come after it, where there is one: its request is made. */
  function goesFirst(peer: ValidatorRequestResource, own: RecordObject | undefined, patienceMs: number): boolean {
    const { metadata, status, spec } = peer
    if (isRequestSettled(status) || !asksForSignature(spec) || metadata.deletionTimestamp !== undefined) return false
    const ready = findCondition(status?.conditions, 'Ready')
    if (isTrue(status?.conditions, 'Stalled') || ofItsOwn.has(ready?.reason as Reason)) return false
    const origin = readOrigin(peer.kind, metadata)
    const known = origin.is === 'own' ? noted.get(origin.origin.uid) : undefined
    const now = clock.monotonicMs()
    if (known !== undefined && now - known.at < NOTED_MS && known.verdict !== undefined && known.verdict.kind !== 'conflict') {
      if (known.verdict.kind === 'stall' || ofItsOwn.has(known.verdict.reason)) return false
      // The exit waits for what was asked for before it: that is this one as well.
      if (known.verdict.reason === 'PendingWithdrawals' && own?.spec.purpose === 'Withdrawal') return false
      if (ofTheValidator.has(known.verdict.reason)) return true
    }
    const since = waitedSince.get(metadata.uid) ?? now
    waitedSince.set(metadata.uid, since)
    return now - since < patienceMs
  }

  return { note, goesFirst }
}
