import type { NodeLook, SignatureStatus } from '../../../chains/solana/chain.ts'
import {
  type ClosedPlace,
  MOST_ATTEMPTS,
  type StakingTransactionStatus,
  type TransactionAttempt,
} from '../../../resources/staking-transaction.ts'
import { attemptsOf, closedOf, type TransactionRecord } from '../protocol.ts'

/**
 * The rules of a Solana step, pure. Its attempts stand in its record before each is sent; attempt k is dead when, in one look of **every** configured
 * node, the finalized height has passed it, the whole history has none of its signatures, and the account's finalized state does not show the step done.
 */

/** One node's look, with what the kind reads from the account. */
export interface Look extends Pick<NodeLook, 'finalizedBlockHeight' | 'slot' | 'statuses' | 'historySince'> {
  /** The account's state shows that the step was done. */
  readonly done: boolean
}
/** Of every configured node, in their order; undefined for one that gave no answer. */
export type Looks = readonly (Look | undefined)[]

export interface Step {
  /** A transaction that succeeded has done the step. Not a withdrawal: lamports that came meanwhile keep the account open. */
  readonly landedIsDone: boolean
  /** Only the history tells that it was never done: what it makes may be gone again. */
  readonly leavesNoTrace: boolean
  /** What follows can't be taken back (a key is let go, a resource goes): every configured node must show it, and not only those that answer. */
  readonly needsEveryNode: boolean
}

/** The failure of a withdrawal that landed and paid out, and whose account is open still: it had got lamports meanwhile. */
export const NOT_CLOSED = 'AccountNotClosed'

/** Attempts of one step without a person. */
export const MAX_ATTEMPTS = 16
/** Attempts that landed and failed, each of which cost a fee though its simulation succeeded, without a person. */
export const MAX_FAILURES = 3
/** As many as the record has room for, but for those that the chain shows and the log did not know. */
const MAX_EVER = MOST_ATTEMPTS - 32

export type Conclusion =
  /** Final, and it succeeded; no node that could know says otherwise. */
  | { readonly is: 'landed'; readonly signature: string; readonly slot: bigint }
  /** The finalized state shows the step done, and none of the attempts is seen to have done it. `settled`: none of them can have, unseen. */
  | { readonly is: 'done'; readonly slot: bigint; readonly settled: boolean }
  /** Node `node`, counted from 1, shows it as of a slot. ▸ `awaited` are not there yet, or gave no answer that counts: one node's word settles nothing. */
  | { readonly is: 'awaited'; readonly about: string; readonly slot: bigint; readonly node: number; readonly awaited: readonly number[] }
  /** In a block that is not final. */
  | { readonly is: 'mined'; readonly signature: string; readonly slot: bigint }
  /** Nodes, counted from 1, that contradict each other. */
  | { readonly is: 'disagreement'; readonly nodes: readonly number[]; readonly about: string }
  /** Attempts newly proven dead. */
  | { readonly is: 'closed'; readonly closed: readonly ClosedPlace[] }
  /** It may land; `awaited`: nodes, counted from 1, that are not there yet, or gave no answer. */
  | { readonly is: 'open'; readonly attempt: TransactionAttempt; readonly canLand: boolean; readonly awaited: readonly number[] }
  /** It can't land any more, and no node's history reaches back far enough to say that it never did. */
  | { readonly is: 'history-missing'; readonly attempt: TransactionAttempt }
  /** Nothing of it can land. */
  | { readonly is: 'free' }

interface Numbered {
  readonly attempt: TransactionAttempt
  readonly index: number
}

/** Attempts that may still land, or have landed unseen: each that is not proven dead. */
export function liveAttempts(record: Pick<TransactionRecord, 'status'>): readonly Numbered[] {
  const dead = new Set(closedOf(record).map(({ nonce }) => nonce))
  return attemptsOf(record).flatMap((attempt, index) => (dead.has(index) ? [] : [{ attempt, index }]))
}

const isFinal = (status: SignatureStatus | undefined): status is SignatureStatus => status?.commitment === 'finalized'
const succeeded = (status: SignatureStatus | undefined): status is SignatureStatus => isFinal(status) && status.failure === undefined
/** The node's ledger reaches back to where the attempt can have landed. One that doesn't tell is taken at its word. */
const reachesBack = ({ historySince }: Look, since: number | undefined): boolean =>
  historySince === undefined || since === undefined || historySince <= BigInt(since)

/** How an attempt is dead by one node's look; undefined while it may live. */
function deathOn(look: Look, { attempt, index }: Numbered, step: Step): 'failed' | 'not-closed' | 'expired' | undefined {
  const status = look.statuses[index]
  if (isFinal(status)) {
    if (status.failure !== undefined) return 'failed'
    return !step.landedIsDone && !look.done && look.slot >= status.slot ? 'not-closed' : undefined
  }
  const isPast = look.finalizedBlockHeight > BigInt(attempt.lastValidBlockHeight ?? Number.MAX_SAFE_INTEGER)
  return status === undefined && isPast && !look.done ? 'expired' : undefined
}

/** From what all nodes say to what may be concluded. */
export function conclude(record: TransactionRecord, looks: Looks, step: Step): Conclusion {
  const answered = looks.flatMap((look, node) => (look === undefined ? [] : [{ ...look, node: node + 1 }]))
  const attempts = attemptsOf(record).map((attempt, index) => ({ attempt, index }))
  // Of one that was closed by what it did, or by what undid it, that it succeeded is no news. One that had expired may be found after all.
  const spent = new Set(closedOf(record).flatMap(({ nonce, by }) => (by === 'Expired' ? [] : [nonce])))

  const landed = attempts
    .filter(({ index }) => !spent.has(index))
    .flatMap(({ attempt, index }) =>
      answered.flatMap((look) => {
        const status = look.statuses[index]
        return succeeded(status) && (step.landedIsDone || look.done) ? [{ attempt, index, status, node: look.node }] : []
      }),
    )
  const first = landed.at(-1)
  if (first !== undefined) {
    const { slot } = first.status
    const about = `transaction ${first.attempt.hash}`
    const against = answered.filter((look) => contradicts(look, first.index, slot, step))
    if (against.length > 0) return { is: 'disagreement', nodes: [first.node, ...against.map(({ node }) => node)], about }
    const awaited = behind(looks, (look) => look.done || isFinal(look.statuses[first.index]), slot, step)
    if (awaited.length > 0) return { is: 'awaited', about, slot, node: first.node, awaited }
    return { is: 'landed', signature: first.attempt.hash, slot }
  }

  const live = liveAttempts(record)
  const done = answered.filter((look) => look.done).toSorted((a, b) => (a.slot < b.slot ? -1 : 1))
  const last = done.at(-1)
  if (last !== undefined) {
    const against = answered.filter((look) => !look.done && look.slot >= last.slot)
    if (against.length > 0)
      return { is: 'disagreement', nodes: [last.node, ...against.map(({ node }) => node)], about: 'the state of the stake account' }
    const awaited = behind(looks, (look) => look.done, last.slot, step)
    if (awaited.length > 0) return { is: 'awaited', about: 'the work done', slot: last.slot, node: last.node, awaited }
    return { is: 'done', slot: last.slot, settled: isSettled(record, looks) }
  }

  for (const { attempt, index } of attempts)
    for (const { statuses } of answered) {
      const status = statuses[index]
      if (status !== undefined && status.commitment !== 'finalized') return { is: 'mined', signature: attempt.hash, slot: status.slot }
    }
  if (live.length === 0) return { is: 'free' }
  return ends(live, looks, step)
}

/** Every node is beyond each attempt that may have landed unseen. */
export const isSettled = (record: TransactionRecord, looks: Looks): boolean =>
  liveAttempts(record).every(({ attempt }) =>
    looks.every((look) => look !== undefined && look.finalizedBlockHeight > BigInt(attempt.lastValidBlockHeight ?? 0)),
  )

/** Whether a node that must know of a final transaction does not, or says something else of it. */
function contradicts(look: Look, index: number, slot: bigint, step: Step): boolean {
  const status = look.statuses[index]
  if (status !== undefined) return isFinal(status) && (status.failure !== undefined || status.slot !== slot)
  if (look.done || look.slot < slot) return false
  // Its work would be seen, whatever the node remembers; where it leaves no trace, a ledger that holds that slot without it.
  return !step.leavesNoTrace || look.historySince === undefined || look.historySince <= slot
}

/** Nodes, counted from 1, that do not show what another shows as of a slot, and are not there yet. */
const behind = (looks: Looks, shows: (look: Look) => boolean, slot: bigint, { needsEveryNode }: Step): readonly number[] =>
  looks.flatMap((look, node) => ((look === undefined ? needsEveryNode : look.slot < slot && !shows(look)) ? [node + 1] : []))

function ends(live: readonly Numbered[], looks: Looks, step: Step): Conclusion {
  const closed: ClosedPlace[] = []
  for (const one of live) {
    const { attempt, index } = one
    const deaths = looks.map((look) => (look === undefined ? undefined : deathOn(look, one, step)))
    const awaited = deaths.flatMap((death, node) => (death === undefined ? [node + 1] : []))
    if (awaited.length > 0) {
      const canLand = looks.every((look) => look === undefined || look.finalizedBlockHeight <= BigInt(attempt.lastValidBlockHeight ?? 0))
      return { is: 'open', attempt, canLand, awaited }
    }
    const at = deaths.findIndex((death) => death === 'failed' || death === 'not-closed')
    const status = at < 0 ? undefined : looks[at]?.statuses[index]
    if (status !== undefined) {
      const failure = deaths[at] === 'not-closed' ? NOT_CLOSED : failureOf(status)
      closed.push({ nonce: index, by: 'Revert', hash: attempt.hash, blockNumber: Number(status.slot), failure })
      continue
    }
    if (step.leavesNoTrace && !looks.some((look) => look !== undefined && reachesBack(look, attempt.sinceSlot)))
      return { is: 'history-missing', attempt }
    const slot = looks.reduce((least, look) => (look !== undefined && look.slot < least ? look.slot : least), looks[0]?.slot ?? 0n)
    closed.push({ nonce: index, by: 'Expired', hash: attempt.hash, blockNumber: Number(slot) })
  }
  return { is: 'closed', closed }
}

const failureOf = ({ failure }: SignatureStatus): string =>
  failure === undefined ? 'Unknown' : failure.custom === undefined ? failure.name : `${failure.name}(${failure.custom})`

/** Why no other attempt is made before a person has looked; undefined while one may be. `allowed`: how many more a person has allowed. */
export function tooMany(record: TransactionRecord, allowed: number): 'full' | 'attempts' | 'failures' | undefined {
  // What others have told of was not made by itself.
  const count = attemptsOf(record).filter(({ found }) => found !== true).length
  const failures = closedOf(record).filter(({ by }) => by === 'Revert').length
  if (attemptsOf(record).length >= MAX_EVER) return 'full'
  if (failures >= MAX_FAILURES + allowed) return 'failures'
  return count >= MAX_ATTEMPTS + allowed ? 'attempts' : undefined
}

/** The status with one more attempt. None is ever forgotten. */
export const withAttempt = (record: TransactionRecord, attempt: TransactionAttempt): StakingTransactionStatus => ({
  ...record.status,
  state: 'Open',
  attempts: [...attemptsOf(record), { ...attempt, generation: record.generation }],
})
export const withClosed = (record: TransactionRecord, closed: readonly ClosedPlace[]): StakingTransactionStatus => {
  const next = { ...record.status, closed: [...closedOf(record), ...closed] }
  return { ...next, state: liveAttempts({ status: next }).length > 0 ? 'Open' : 'Waiting' }
}
/** `hash` is empty where nobody knows which transaction it was. One that the record doesn't have was made elsewhere. */
export function withOutcome(
  record: TransactionRecord,
  landing: { readonly hash: string; readonly slot: bigint; readonly at: string },
): StakingTransactionStatus {
  const { hash, slot, at } = landing
  const known = attemptsOf(record)
  const isKnown = hash === '' || known.some((attempt) => attempt.hash === hash)
  return {
    ...record.status,
    state: 'Landed',
    attempts: [...known, ...(isKnown ? [] : [{ hash, kind: 'Call' as const, generation: record.generation, found: true, at }])],
    outcome: { is: 'Landed', hash, blockNumber: Number(slot) },
  }
}
/** What had landed was undone by somebody, and a person wants it done again. */
export function undone(record: TransactionRecord): StakingTransactionStatus {
  const { outcome, ...rest } = record.status
  const { hash = '', blockNumber = 0 } = outcome ?? {}
  const index = attemptsOf(record).findIndex((attempt) => attempt.hash === hash)
  const closed = closedOf(record).filter(({ nonce }) => nonce !== index)
  return {
    ...rest,
    state: 'Waiting',
    closed: [...closed, ...(index < 0 ? [] : [{ nonce: index, by: 'Foreign' as const, hash, blockNumber }])],
  }
}
