import type { Clock } from '../../lib/clock.ts'
import { createGathering } from '../../lib/gather.ts'
import type { Answer } from '../idempotency.ts'
import { entityTag } from './entity-tags.ts'

/** An answer as it is sent, with its tag. */
export interface Written extends Answer {
  readonly tag: string
}

export interface WrittenAnswers {
  /** An answer that can be sent at once: nobody was told since it was true that he has changed the resource. Undefined when it must be asked for. */
  atHand(account: string, id: string): { readonly written: Written; readonly network: string } | undefined
  /** The answer of a state that the resource has after this was called. Undefined when the account has no such resource. @throws the database's error */
  get(account: string, id: string, signal: () => AbortSignal): Promise<Written | undefined>
  /** To be called when a resource may have been changed by somebody who is about to be told so. */
  forget(id: string): void
  /** He is to be told so much later: other instances go by what they have seen before for so long. */
  readonly settledMs: number
}

/** A resource as it was read, with what names the state that it was in. */
export interface Versioned<Row> {
  readonly row: Row
  readonly version: string
}

export interface WrittenAnswersDeps<Row, Key, Shown> {
  readonly clock: Clock
  /** Whether other instances may change the resources. */
  readonly isShared: boolean
  /** The version of each of the resources that there is, as it is when it is asked. @throws the database's error */
  readonly versions: (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>
  readonly read: (account: string, id: string) => Promise<Versioned<Row> | undefined>
  /** What of a resource is needed to know what else its answer shows. */
  readonly keyOf: (row: Row) => Key
  /** What an answer shows that isn't the database's. */
  readonly beside: {
    known(key: Key): Shown
    /** Whether it is time to ask for it again. */
    isDue(key: Key): boolean
    refresh(key: Key, signal: () => AbortSignal): Promise<void>
    isSame(one: Shown, other: Shown): boolean
  }
  readonly write: (row: Row, shown: Shown) => Answer
  readonly max?: number
}

/** So long an answer is sent without asking whether it still holds, where other instances may change the resource, and where none can. */
export const atHandMs = { shared: 25, alone: 50 } as const
/** A timer may fire a millisecond early. */
const marginMs = 2
/** Of some 3 kB each. */
const maxKept = 4_096
/** Resources in one question. */
const maxAsked = 200

interface Kept<Key, Shown> {
  readonly account: string
  readonly version: string
  readonly key: Key
  readonly shown: Shown
  readonly written: Written
  /** When the last look began that found this version, in monotonic ms. */
  seenAt: number
  isAsking: boolean
}

/**
 * Answers to GETs of one resource, written once and sent for as long as they hold. Whether one does, the database says: it gives the version of each resource that
 * is asked about, in one statement for all who ask at the same time. No notice has to arrive for that, so it is right with any number of instances (ADR 17).
 */
export function createWrittenAnswers<Row, Key extends { readonly network: string }, Shown>(
  deps: WrittenAnswersDeps<Row, Key, Shown>,
): WrittenAnswers {
  const { clock, read, keyOf, beside, write, max = maxKept } = deps
  const kept = new Map<string, Kept<Key, Shown>>()
  const leaseMs = deps.isShared ? atHandMs.shared : atHandMs.alone
  /** While an answer goes on being asked for, it is looked whether it holds before its time is over, so that nobody waits. */
  const aheadMs = leaseMs / 2
  let changes = 0
  const ask = async (ids: readonly string[]) => {
    const askedAt = clock.monotonicMs()
    return { askedAt, versions: await deps.versions(ids) }
  }
  const versionsOf = createGathering(ask, { atMost: maxAsked, atOnce: 1 })

  /** Whether what is kept is still so. */
  async function holds(id: string, held: Kept<Key, Shown>): Promise<boolean> {
    const { askedAt, versions } = await versionsOf([id])
    if (versions.get(id) !== held.version) {
      if (kept.get(id) === held) kept.delete(id)
      return false
    }
    held.seenAt = Math.max(held.seenAt, askedAt)
    return true
  }

  async function lookAhead(id: string, held: Kept<Key, Shown>): Promise<void> {
    held.isAsking = true
    try {
      await holds(id, held)
    } catch {
      // Who asks when the time is over learns it.
    } finally {
      held.isAsking = false
    }
  }

  async function anew(account: string, id: string, signal: () => AbortSignal): Promise<Written | undefined> {
    const seenAt = clock.monotonicMs()
    const before = changes
    const found = await read(account, id)
    if (found === undefined) return undefined
    const { row, version } = found
    const key = keyOf(row)
    await beside.refresh(key, signal)
    const shown = beside.known(key)
    const answer = write(row, shown)
    const written = { ...answer, tag: entityTag(answer.body) }
    // What was read before a change may be of before it.
    if (changes !== before) return written
    kept.delete(id)
    kept.set(id, { account, version, key, shown, written, seenAt, isAsking: false })
    const [oldest] = kept.size > max ? kept.keys() : []
    if (oldest !== undefined) kept.delete(oldest)
    return written
  }

  return {
    settledMs: deps.isShared ? leaseMs + marginMs : 0,
    forget(id) {
      changes++
      kept.delete(id)
    },
    atHand(account, id) {
      const held = kept.get(id)
      if (held === undefined || held.account !== account) return undefined
      const age = clock.monotonicMs() - held.seenAt
      if (age > aheadMs && !held.isAsking) void lookAhead(id, held)
      if (age > leaseMs || beside.isDue(held.key) || !beside.isSame(beside.known(held.key), held.shown)) return undefined
      return { written: held.written, network: held.key.network }
    },
    async get(account, id, signal) {
      const held = kept.get(id)
      if (held === undefined || held.account !== account || !(await holds(id, held))) return anew(account, id, signal)
      await beside.refresh(held.key, signal)
      return beside.isSame(beside.known(held.key), held.shown) ? held.written : anew(account, id, signal)
    },
  }
}
