import { sameHex } from '../../lib/hex.ts'
import {
  type ClosedPlace,
  MOST_ATTEMPTS,
  type StakingTransactionStatus,
  type TransactionAttempt,
  type TransactionOutcome,
  type TransactionOwner,
} from '../../resources/staking-transaction.ts'

/**
 * The rules of the transaction log, pure: what may be written, signed and concluded, from what is there. `lane.ts` carries them out; `explorer`
 * tries them in all orders. A rule marked ▸ has a way of paying twice without it.
 */

/** A place of a lane: a SignerNonce. */
export interface Place {
  readonly nonce: number
  /** The StakingTransaction that it was taken for; undefined for a filler. */
  readonly transaction: { readonly uid: string; readonly generation: number; readonly name?: string } | undefined
  /** Validators that a transaction which the log does not have may pay under it, lower case. */
  readonly subjects?: readonly string[]
}

/** A StakingTransaction as the rules see it. */
export interface TransactionRecord {
  readonly uid: string
  /** What it is about, lower case; undefined where that doesn't matter. */
  readonly subject?: string
  /** Of the hand-over (spec.generation). */
  readonly generation: number
  readonly status: Pick<StakingTransactionStatus, 'place' | 'attempts' | 'closed' | 'outcome' | 'claims'>
}

/** What the nodes count for a lane: the highest that any of them says. */
export interface Counts {
  readonly final: number
  readonly latest: number
  readonly pending: number
  /** The lowest final count, when every configured node answers; undefined when one does not. */
  readonly finalEverywhere: number | undefined
}

/** What a signer says about transactions of its key that the log doesn't know. */
export interface KeyUse {
  /** Transactions below this nonce were looked at by a person. */
  readonly acknowledged: number | undefined
  /** The key is used elsewhere on purpose. */
  readonly shared: boolean
}

export const attemptsOf = (record: Pick<TransactionRecord, 'status'>): readonly TransactionAttempt[] => record.status.attempts ?? []
export const closedOf = (record: Pick<TransactionRecord, 'status'>): readonly ClosedPlace[] => record.status.closed ?? []
/**
 * The attempts under the nonce in use. ▸ Of this hand-over only: a record that passes to another lane comes upon the same numbers there, and a cancel
 * of the old lane must not count as one of the new.
 */
export const openAttempts = ({ status, generation }: Pick<TransactionRecord, 'status' | 'generation'>): readonly TransactionAttempt[] =>
  status.place === undefined
    ? []
    : (status.attempts ?? []).filter((attempt) => attempt.nonce === status.place && isOfGeneration(attempt, generation))
/** What has no generation was written before there was any hand-over. */
const isOfGeneration = (one: { readonly generation?: number | undefined }, generation: number): boolean =>
  (one.generation ?? generation) === generation
/** Something of it may land. */
export const isOpen = ({ status }: Pick<TransactionRecord, 'status'>): boolean => status.place !== undefined && status.outcome === undefined
/** Its cancel was written down: nothing but the cancel is sent under this nonce any more. */
export const isCancelling = (record: Pick<TransactionRecord, 'status' | 'generation'>): boolean =>
  openAttempts(record).some(({ kind }) => kind === 'Cancel')

export function highestPlace(places: ReadonlyMap<number, Place>): number | undefined {
  let highest: number | undefined
  for (const nonce of places.keys()) if (highest === undefined || nonce > highest) highest = nonce
  return highest
}

export type NextPlace =
  | { readonly is: 'free'; readonly nonces: readonly number[] }
  /** The chain has, or a node's pool holds, transactions that no place accounts for: from this nonce on, up to below `count`. A person must look. */
  | { readonly is: 'unaccounted'; readonly from: number; readonly count: number }
  /** The same, acknowledged or expected: until they are final one may be what is about to be made once more. */
  | { readonly is: 'not-final'; readonly from: number; readonly count: number }
  /** A number below the highest place has none: the lane fills it first. */
  | { readonly is: 'hole'; readonly nonce: number }

/**
 * ▸ The next places: the lowest numbers at or above the final count that have none, in an empty lane too. Never "highest + 1" alone, and never the
 * pool's count: both would step over what was sent and forgotten. While a node shows more than that number nothing is taken.
 */
export function nextPlaces(places: ReadonlyMap<number, Place>, counts: Counts, use: KeyUse, wanted: number): NextPlace {
  const shown = Math.max(counts.latest, counts.pending)
  const highest = highestPlace(places)
  const placed = highest === undefined ? 0 : highest + 1
  const known = Math.max(placed, use.acknowledged ?? 0)
  if (!use.shared && shown > known) return { is: 'unaccounted', from: known, count: shown }
  let nonce = counts.final
  while (places.has(nonce)) nonce++
  // Above a place that was given out nothing is skipped: whatever is missing below it comes first.
  if (highest !== undefined && nonce < highest) return { is: 'hole', nonce }
  // ▸ By the count of every node: one that takes its pool for final would step over what may yet land.
  const everywhere = Math.max(counts.finalEverywhere ?? 0, placed)
  if (shown > Math.min(nonce, everywhere)) return { is: 'not-final', from: Math.min(nonce, everywhere), count: shown }
  return { is: 'free', nonces: Array.from({ length: wanted }, (_, index) => nonce + index) }
}

/** So many numbers no lane can lack: each of its own was taken after the one before it. A place beyond a wider gap was made by hand. */
export const MAX_HOLES = 1_000

/**
 * Numbers below the highest place, not final, that have no place and under which no node shows anything: the lane takes them as fillers. None where they are
 * too many to be its own.
 */
export function holesOf(places: ReadonlyMap<number, Place>, counts: Counts): readonly number[] {
  const highest = highestPlace(places)
  const holes: number[] = []
  if (highest === undefined) return holes
  for (let nonce = Math.max(counts.final, counts.latest, counts.pending); nonce < highest && holes.length <= MAX_HOLES; nonce++)
    if (!places.has(nonce)) holes.push(nonce)
  return holes.length > MAX_HOLES ? [] : holes
}

/** The lowest place that no lane has given out: more numbers than it can lack are missing between the final count and it. Undefined where there is none. */
export function strayPlace(places: ReadonlyMap<number, Place>, { final }: Pick<Counts, 'final'>): number | undefined {
  let next = final
  for (const nonce of [...places.keys()].filter((one) => one >= final).toSorted((a, b) => a - b)) {
    if (nonce - next > MAX_HOLES) return nonce
    next = nonce + 1
  }
  return undefined
}

/**
 * ▸ Signed is only what the StakingTransaction itself names.
 * @param record of the uid that the place names, when it takes its places in this lane; undefined when there is none, or it uses another lane
 * @param isFollowed another record names the number: a witness knew of a transaction of it under this nonce, and it is followed
 * @returns `named`: its transaction uses it. `free`: it was taken for a transaction that has no place, so that this one goes on with it.
 * `filler`: nobody uses it; it is filled with 0 wei to the signer itself.
 */
export function useOf(place: Place, record: TransactionRecord | undefined, isFollowed = false): 'named' | 'free' | 'filler' {
  if (isFollowed) return 'named'
  if (record === undefined || place.transaction?.uid !== record.uid) return 'filler'
  if (record.status.place === place.nonce) return 'named'
  const isFresh =
    record.status.place === undefined &&
    record.status.outcome === undefined &&
    place.transaction.generation === record.generation &&
    !attemptsOf(record).some((attempt) => attempt.nonce === place.nonce && isOfGeneration(attempt, record.generation))
  return isFresh ? 'free' : 'filler'
}

/** Whether a record goes on with a place that it has not named. ▸ Not where a node shows something already: that may be what fills it. */
export const mayGoOn = (place: Place, record: TransactionRecord, counts: Pick<Counts, 'latest' | 'pending'>): boolean =>
  useOf(place, record) === 'free' && Math.max(counts.latest, counts.pending) <= place.nonce

/**
 * ▸ Places of any lane that were taken for this record, in whatever generation, and of which the log does not say what became of them. A restored log
 * may have forgotten that it was signed for one of them. No other place is taken, and none of them gone on with beside another, before every node
 * counts beyond them: then history shows it. The same for places under which an earlier version may have paid for what the record is about.
 * @param places of one lane
 * @param finalEverywhere the lowest final count in that lane; undefined when a node does not answer
 */
export function forgottenPlaces(
  record: TransactionRecord,
  places: Iterable<Place>,
  finalEverywhere: number | undefined,
): readonly number[] {
  const forgotten: number[] = []
  for (const { nonce, transaction, subjects = [] } of places) {
    const own = transaction?.uid === record.uid ? transaction : undefined
    const mayPay = record.subject !== undefined && subjects.includes(record.subject)
    if ((own === undefined && !mayPay) || (finalEverywhere !== undefined && nonce < finalEverywhere)) continue
    const isAccounted = own !== undefined && closedOf(record).some((one) => one.nonce === nonce && isOfGeneration(one, own.generation))
    if (!isAccounted) forgotten.push(nonce)
  }
  return forgotten
}

/**
 * ▸ Whether the place that a record names is to be made again under its number: what happens in the lane must not depend on whether somebody deleted it.
 * Of a settled one only where it would be the highest, which says where the lane's own numbers end.
 */
export function isMissing(record: TransactionRecord, places: ReadonlyMap<number, Place>): boolean {
  const { place, outcome } = record.status
  if (place === undefined || places.has(place)) return false
  return outcome === undefined || place > (highestPlace(places) ?? -1)
}

/**
 * How many times it is made again without a person after what is no doing of ours: a foreign transaction under its nonce, or a revert. Each is proven, and a
 * third is no accident.
 */
export const MAX_REMAKES = 2
/** Own cancels are no accident and raise no alarm; but the log of a record is bounded, and so is what they cost. */
export const MAX_CANCELS = 24
/** Versions under one nonce. The last four are the cancel's. */
export const MAX_CALLS = 12
export const MAX_VERSIONS = 16

/** Places that were closed since it was asked for last: a landing that was dropped ends one asking. */
const closedSinceAsked = (record: Pick<TransactionRecord, 'status'>): readonly ClosedPlace[] => {
  const closed = closedOf(record)
  return closed.slice(closed.findLastIndex(({ by }) => by === 'Dropped') + 1)
}
/** How many times it was cancelled by the lane itself, and how many times something else came in its place, since it was asked for last. */
export function remakesOf(record: Pick<TransactionRecord, 'status'>): { readonly cancelled: number; readonly lost: number } {
  const closed = closedSinceAsked(record)
  const cancelled = closed.filter(({ by }) => by === 'Cancel').length
  return { cancelled, lost: closed.length - cancelled }
}

/** Blocks to wait after the second own cancel in a row; twice as many after each further one. */
const BACK_OFF_BLOCKS = 4
const MAX_BACK_OFF_BLOCKS = 512
/**
 * The block from which on another place may be taken after own cancels: each costs gas, and what made the last one necessary is likely to be there still.
 * Undefined where there is nothing to wait for.
 */
export function backsOffUntil(record: Pick<TransactionRecord, 'status'>): number | undefined {
  const { cancelled } = remakesOf(record)
  const last = closedSinceAsked(record).at(-1)
  if (last?.by !== 'Cancel' || cancelled < 2) return undefined
  return last.blockNumber + Math.min(BACK_OFF_BLOCKS * 2 ** (cancelled - 2), MAX_BACK_OFF_BLOCKS)
}

export type MayTakePlace = 'yes' | 'has-place' | 'settled' | 'too-many-remakes'
/** ▸ Another place is taken only when every earlier one is proven closed by something that is there. `allowed`: remakes that a person has allowed besides. */
export function mayTakePlace(record: TransactionRecord, allowed: number): MayTakePlace {
  if (record.status.outcome !== undefined) return 'settled'
  if (record.status.place !== undefined) return 'has-place'
  // What has attempts and no open place has each of its nonces among the closed ones: `closePlace` is the only way out of a place.
  // An attempt without a nonce, as Solana's are, is closed by its place among them.
  const isClosed = ({ nonce, generation = record.generation }: TransactionAttempt, index: number): boolean =>
    closedOf(record).some((one) => (nonce === undefined ? one.nonce === index : one.nonce === nonce && isOfGeneration(one, generation)))
  if (attemptsOf(record).some((attempt, index) => !isClosed(attempt, index))) return 'has-place'
  const { cancelled, lost } = remakesOf(record)
  if (lost > MAX_REMAKES + allowed || cancelled > MAX_CANCELS + allowed) return 'too-many-remakes'
  return 'yes'
}

/**
 * ▸ Another place is taken only where all versions that it may come to have room in the record: a cancel that can't be written down is not sent, and holds its
 * lane for good. The rest is for what the chain shows and the log did not know.
 */
export const hasRoomForPlace = (record: Pick<TransactionRecord, 'status'>): boolean =>
  attemptsOf(record).length <= MOST_ATTEMPTS - 2 * MAX_VERSIONS

/** The cancel that has used the nonce of a version: it is final, so that the version can't land. */
export function cancelOf(record: TransactionRecord, version: string): ClosedPlace | undefined {
  const of = attemptsOf(record).find(({ kind, hash }) => kind === 'Call' && sameHex(hash, version))
  return of && closedOf(record).find(({ by, nonce }) => by === 'Cancel' && nonce === of.nonce)
}

/** ▸ A record passes to another resource, or to the signer's new lane, only when nothing of it can land and nothing has. */
export const mayBeHandedOver = (record: TransactionRecord): boolean => mayTakePlace(record, Number.MAX_SAFE_INTEGER) === 'yes'

/** The status in which the record names its place, with the first attempt. */
export const withPlace = (record: TransactionRecord, nonce: number, attempt: TransactionAttempt): StakingTransactionStatus => ({
  ...record.status,
  state: 'Open',
  place: nonce,
  attempts: [...attemptsOf(record), { ...attempt, generation: record.generation }],
})
/** The status with one more attempt under the place in use. None is ever forgotten. */
export const withAttempt = (record: TransactionRecord, attempt: TransactionAttempt): StakingTransactionStatus => ({
  ...record.status,
  state: 'Open',
  attempts: [...attemptsOf(record), { ...attempt, generation: record.generation }],
})

export type MayAttempt = 'yes' | 'cancelling' | 'only-cancel' | 'none-left'
/** Whether another version may be written down. Once the cancel is, nothing else is. */
export function mayAttempt(record: TransactionRecord, kind: TransactionAttempt['kind']): MayAttempt {
  const versions = openAttempts(record)
  if (versions.length >= MAX_VERSIONS) return 'none-left'
  if (kind === 'Cancel') return 'yes'
  if (isCancelling(record)) return 'cancelling'
  return versions.length >= MAX_CALLS ? 'only-cancel' : 'yes'
}

/** A transaction that used a nonce, as the chain shows it. */
export interface Landing {
  readonly hash: string
  readonly nonce: number
  readonly blockNumber: number
  readonly blockHash: string
  /** By its content and not by its hash: the same call counts as ours, whatever the log knows of it. */
  readonly is: 'call' | 'cancel' | 'foreign'
  readonly success: boolean
  /** Of a call that succeeded: whether it did what it is for (the contract's event), first or second to somebody else. */
  readonly did: 'it' | 'second' | 'nothing'
  /** ▸ Every configured node has its block as final, with the same hash. */
  readonly proven: boolean
  /** When it was found, RFC 3339: for a call that the log did not know. */
  readonly foundAt: string
}

/** What closes a place that is being looked at; a landing is dropped later, by the consensus layer. */
type ClosedBy = Exclude<ClosedPlace['by'], 'Dropped'>
export type Conclusion =
  | { readonly is: 'outcome'; readonly status: StakingTransactionStatus; readonly outcome: TransactionOutcome['is'] }
  /** The place is closed; the transaction may take another. */
  | { readonly is: 'closed'; readonly status: StakingTransactionStatus; readonly by: ClosedBy }
  /** It makes a second one possible, and not every node has it as final yet. */
  | { readonly is: 'unproven' }

/**
 * What follows from a transaction that is final under the place in use. That it landed needs one view that nobody contradicts; ▸ that it did not, and
 * may be made again, needs all nodes. An outcome is looked at again like anything else: one node's word may have made it. The status stays the same
 * object where nothing changes.
 */
export function conclude(record: TransactionRecord, landing: Landing, remakeAfterRevert: boolean): Conclusion {
  const { hash, nonce, blockNumber, blockHash } = landing
  const { generation } = record
  const where = { hash, blockNumber, blockHash }
  const { place: _closed, outcome: before, ...rest } = record.status
  const known = attemptsOf(record)
  const isKnown = known.some((attempt) => attempt.hash.toLowerCase() === hash.toLowerCase())
  const attempts: TransactionAttempt[] = [
    ...known,
    ...(isKnown || landing.is !== 'call' ? [] : [{ hash, nonce, kind: 'Call' as const, generation, found: true, at: landing.foundAt }]),
  ]
  const settle = (is: TransactionOutcome['is']): Conclusion => {
    const isSame = before?.is === is && before.hash === hash && before.blockHash === blockHash
    const status = isSame ? record.status : { ...record.status, attempts, place: nonce, state: is, outcome: { is, nonce, ...where } }
    return { is: 'outcome', outcome: is, status }
  }
  const close = (by: ClosedBy): Conclusion =>
    landing.proven
      ? {
          is: 'closed',
          by,
          status: { ...rest, attempts, state: 'Waiting', closed: [...closedOf(record), { nonce, generation, by, ...where }] },
        }
      : { is: 'unproven' }
  if (landing.is === 'foreign') return close('Foreign')
  if (landing.is === 'cancel') return close('Cancel')
  if (landing.success && landing.did === 'it') return settle('Landed')
  if (landing.success && landing.did === 'second') return settle('FrontRun')
  if (remakeAfterRevert) return close('Revert')
  return landing.proven ? settle('Reverted') : { is: 'unproven' }
}

/**
 * The status of a record whose outcome is not there: every node answers, and none has its nonce as final. It is followed again under the same nonce,
 * where nothing else of it can land twice. Undefined while the outcome stands.
 */
export function takenBack(record: TransactionRecord, counts: Counts): StakingTransactionStatus | undefined {
  const { outcome, ...rest } = record.status
  if (outcome === undefined || rest.place === undefined) return undefined
  if (counts.finalEverywhere === undefined || counts.final > rest.place) return undefined
  return { ...rest, state: 'Open' }
}

/**
 * What an earlier version has signed for a record under a place that was taken for it: the record follows it. Undefined where the record has begun, or the
 * place is another's: then it is a claim.
 */
export function takenOver(
  record: TransactionRecord,
  place: Place,
  attempts: readonly TransactionAttempt[],
): StakingTransactionStatus | undefined {
  const { status, uid } = record
  const isFree = status.place === undefined && status.outcome === undefined && attemptsOf(record).length === 0
  return isFree && place.transaction?.uid === uid ? { ...status, state: 'Open', place: place.nonce, attempts: [...attempts] } : undefined
}

/** What the witnesses say of a transaction that is about to take a place. */
export interface Witnesses {
  /** The hash that the staking API was told last; undefined when none was. */
  readonly told:
    | {
        readonly hash: string
        readonly transaction: WitnessedTransaction | undefined
        /** By the API's own word it is final. */
        readonly landed?: boolean
      }
    | undefined
  /** What was done for this purpose according to the chain's history, less what the log accounts for. */
  readonly done: WitnessedTransaction | undefined
}
export interface WitnessedTransaction {
  readonly hash: string
  readonly from: string
  readonly nonce: number
  /** It makes the very call of the record. */
  readonly sameCall: boolean
  /** A node holds it, and no block has it. */
  readonly pending?: boolean
}
export type Testimony =
  | { readonly is: 'none' }
  /** It was made before: the record follows it. */
  | { readonly is: 'follow'; readonly transaction: WitnessedTransaction }
  /** A hash was told that no node knows. ▸ Absence proves nothing: a person ends the wait. */
  | { readonly is: 'unknown-submission'; readonly hash: string }
  /** It was done, by what is not ours to follow. */
  | { readonly is: 'done-elsewhere'; readonly hash: string }

/** Hashes that a person says will never land, lower case: comma-separated in an annotation of the record, which only whoever may write the log can set. */
export const disregardedIn = (annotation: string | undefined): readonly string[] =>
  (annotation ?? '')
    .toLowerCase()
    .split(',')
    .flatMap((one) => one.trim() || [])

/**
 * ▸ The witnesses are asked before every place, the first and each later one: any of them may have been set back.
 * @param disregarded the annotation in which a person says what will never land. ▸ What a node holds all the same, and makes the call, may; what the API
 * itself says is final, has.
 */
export function testimony(
  record: TransactionRecord,
  lane: { readonly address: string },
  witnesses: Witnesses,
  disregarded: string | undefined,
): Testimony {
  const isOurs = (hash: string) => attemptsOf(record).some((attempt) => attempt.hash.toLowerCase() === hash.toLowerCase())
  const { done, told } = witnesses
  const followable = (one: WitnessedTransaction) => one.sameCall && one.from.toLowerCase() === lane.address.toLowerCase()
  if (done !== undefined) return followable(done) ? { is: 'follow', transaction: done } : { is: 'done-elsewhere', hash: done.hash }
  // Of ours: its place is proven closed, or none would be taken.
  if (told === undefined || isOurs(told.hash)) return { is: 'none' }
  const mayLand = told.landed === true || (told.transaction?.sameCall === true && told.transaction.pending === true)
  if (disregardedIn(disregarded).includes(told.hash.toLowerCase()) && !mayLand) return { is: 'none' }
  if (told.transaction === undefined) return { is: 'unknown-submission', hash: told.hash }
  return followable(told.transaction) ? { is: 'follow', transaction: told.transaction } : { is: 'done-elsewhere', hash: told.hash }
}

/** Why nothing of the call is to be sent now. `lasting`: it needs a person or a price; `passing`: an answer is missing. */
export type Hindrance = 'none' | 'lasting' | 'passing'

/**
 * ▸ The lane always moves: what to do with the place in use. A call that can't be sent gives way as soon as somebody waits behind it, at once if nothing
 * of it was ever sent. Nobody's wish holds what others share.
 */
export function wish(
  record: TransactionRecord,
  now: {
    readonly hindrance: Hindrance
    /** Whether a version of the call may have reached a node. */
    readonly maybeSent: boolean
    /**
     * Behind it in the lane; for the record itself, which another resource of the same purpose gets once the owner is gone and nothing can land; or
     * for the lane: its signer is being deleted.
     */
    readonly somebodyWaits: boolean
    /** How long it has been hindered, in ms of monotonic time. */
    readonly hinderedMs: number
  },
): 'send' | 'cancel' | 'hold' {
  if (isCancelling(record)) return 'cancel'
  switch (now.hindrance) {
    case 'none':
      return 'send'
    case 'lasting':
      return !now.maybeSent || now.somebodyWaits ? 'cancel' : 'hold'
    case 'passing':
      return now.somebodyWaits && now.hinderedMs >= PATIENCE_MS ? 'cancel' : 'hold'
  }
}
/**
 * ▸ Whether the lane itself fills a place, with 0 wei to the signer. A place that was taken and is not named yet blocks its lane like any other: it is
 * filled when its transaction can't go on with it. `use` is judged by the record as it is in the store, not in a cache: a cache that lags makes
 * fillers of places that are in use.
 * @param now.hindrance why its transaction can't take the place now, what the witnesses say and the limit of remakes included
 */
export function isFilled(
  use: ReturnType<typeof useOf>,
  now: { readonly hindrance: Hindrance; readonly somebodyWaits: boolean; readonly hinderedMs: number },
): boolean {
  if (use !== 'free') return use === 'filler'
  switch (now.hindrance) {
    case 'none':
      return false
    case 'lasting':
      return true
    case 'passing':
      return now.somebodyWaits && now.hinderedMs >= PATIENCE_MS
  }
}

/** How long others wait behind a place whose call waits for an answer. */
export const PATIENCE_MS = 30_000

/**
 * A place may be pruned when all nodes count beyond it and no transaction names it. The highest stays: it says where the lane's own numbers begin.
 */
export function mayBePruned(
  place: Place,
  places: ReadonlyMap<number, Place>,
  record: TransactionRecord | undefined,
  finalEverywhere: number | undefined,
): boolean {
  if (finalEverywhere === undefined || place.nonce >= finalEverywhere || place.nonce === highestPlace(places)) return false
  return record === undefined || record.status.place !== place.nonce || record.status.outcome !== undefined
}

/** What landed is not there any more: the record is open again under the same nonce, where nothing else of it can land twice. */
export function reopened(record: TransactionRecord): StakingTransactionStatus {
  const { outcome: _gone, ...rest } = record.status
  return { ...rest, state: 'Open' }
}

/** So often one thing may be asked for again after it was dropped: the log of a record is bounded. */
export const MAX_DROPPED = 8

/**
 * What landed came to nothing, for good and by the consensus layer's own decision: it may be asked for once more, by another resource. The landing goes
 * among the closed places as what it is, with the resource that has had its answer.
 * ▸ Only the landing that the decision is about: nothing may be open, and none of it is forgotten.
 * @returns undefined where it may not
 */
export function withDropped(record: TransactionRecord, owner: TransactionOwner, hash: string): StakingTransactionStatus | undefined {
  const { outcome, place: _place, ...rest } = record.status
  if (outcome?.is !== 'Landed' || outcome.nonce === undefined || outcome.hash.toLowerCase() !== hash.toLowerCase()) return undefined
  if (closedOf(record).filter(({ by }) => by === 'Dropped').length >= MAX_DROPPED) return undefined
  const { nonce, blockNumber, blockHash } = outcome
  const closed: ClosedPlace = {
    nonce,
    generation: record.generation,
    by: 'Dropped',
    hash: outcome.hash,
    blockNumber,
    ...(blockHash === undefined ? {} : { blockHash }),
    owner,
  }
  return { ...rest, state: 'Waiting', closed: [...closedOf(record), closed] }
}

/** What a record is to one of its owners, the present or a former one: a former one has its own landing, the present one what was made since. */
export function seenBy(record: TransactionRecord, originUid: string): TransactionRecord {
  const dropped = closedOf(record).filter(({ by }) => by === 'Dropped')
  const isUnder = (attempt: TransactionAttempt, { nonce, generation = 0 }: ClosedPlace): boolean =>
    attempt.nonce === nonce && isOfGeneration(attempt, generation)
  const own = dropped.findLast(({ owner }) => owner?.originUid === originUid)
  if (own !== undefined) {
    const { nonce, hash, blockNumber, blockHash, generation = 0 } = own
    const attempts = attemptsOf(record).filter((attempt) => isUnder(attempt, own))
    const outcome = { is: 'Landed' as const, nonce, hash, blockNumber, ...(blockHash === undefined ? {} : { blockHash }) }
    return { ...record, generation, status: { place: nonce, attempts, outcome } }
  }
  if (dropped.length === 0) return record
  const attempts = attemptsOf(record).filter((attempt) => !dropped.some((one) => isUnder(attempt, one)))
  return { ...record, status: { ...record.status, attempts } }
}

/**
 * ▸ Whether nothing of a record can land any more, so that it may go. One with an outcome: when every node counts beyond its nonce, for one node's word may
 * have made the outcome, and while the call can still land, the record is what keeps another from being made. One without: when each of its places is
 * proven closed. Places that were taken for it and that it does not account for (`forgottenPlaces`) are the caller's to look for.
 */
export function recordMayBePruned(record: TransactionRecord, finalEverywhere: number | undefined): boolean {
  const { outcome, place } = record.status
  if (outcome === undefined) return mayBeHandedOver(record)
  return place === undefined || (finalEverywhere !== undefined && place < finalEverywhere)
}
