import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import { newId } from './ids.ts'
import { type AuditOutcome, type AuditRow, insertAudit, insertAuditOfKeys, noteOutcomes, noteUses, pruneAudit } from './store/audit-log.ts'
import type { Store } from './store/database.ts'
import { gathered } from './store/gathered.ts'

export interface AuditSettings {
  /** Also requests that only read. */
  readonly reads: boolean
  readonly keepDays: number
}
export const defaultAuditSettings: AuditSettings = { reads: false, keepDays: 400 }

/** Who asked what. */
export interface AuditEntry {
  readonly account: string
  readonly keyId: string
  readonly operation: string
  readonly method: string
  readonly path: string
  readonly idempotencyKey: string | undefined
  readonly requestId: string
  /** Undefined where the client has left before it was asked for. */
  readonly address: string | undefined
}

export interface Audit {
  readonly reads: boolean
  /** Writes down who asks what; only afterwards may it take effect. Undefined when the key is not good any more. @throws the database's error */
  begin(entry: AuditEntry): Promise<string | undefined>
  /** What became of it, written down soon. */
  settle(outcome: AuditOutcome): void
  /** A request that has taken no effect, with its outcome, written down soon. */
  note(entry: AuditEntry, outcome: Omit<AuditOutcome, 'id'>): void
  /** A key was used now. */
  used(keyId: string): void
  /** Writes what waits. Never throws. */
  flush(): Promise<void>
}

const flushMs = 1_000
/** Entries that come at the same time are written together. */
const together = { atMost: 100, atOnce: 2 }
/** A key in use is noted so often. */
const useEveryMs = 60_000
/** Of what waits while the database is away; beyond that, the oldest is forgotten. */
const maxWaiting = 10_000
const pruneEveryMs = 3_600_000
/** One statement's; where there is more, the next turn goes on: more is written in an hour than one statement takes away. */
const pruneAtOnce = 5_000
const maxPathLength = 2_048
/** What a proxy tells may be any text. */
const maxAddressLength = 64

export function createAudit(deps: { store: Store; clock: Clock; log: Logger; settings: AuditSettings }): Audit {
  const { store, clock, log, settings } = deps
  const { db } = store
  const insertTogether = gathered((rows: readonly (AuditRow & { key_id: string })[]) => insertAuditOfKeys(db, rows), together)
  let outcomes: AuditOutcome[] = []
  let entries: AuditRow[] = []
  let uses = new Map<string, Date>()
  /** When a key's use was last written down, or is about to be. */
  const notedAt = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> = Promise.resolve()
  let prunedAt: number | undefined

  const rowOf = (entry: AuditEntry, outcome?: Omit<AuditOutcome, 'id'>): AuditRow & { key_id: string } => {
    const at = clock.now()
    return {
      id: newId(at),
      at,
      account: entry.account,
      key_id: entry.keyId,
      operation: entry.operation,
      method: entry.method,
      path: entry.path.slice(0, maxPathLength),
      idempotency_key: entry.idempotencyKey ?? null,
      request_id: entry.requestId,
      address: entry.address?.slice(0, maxAddressLength) ?? null,
      status: outcome?.status ?? null,
      resource_id: outcome?.resource_id ?? null,
    }
  }

  const soon = () => {
    timer ??= setTimeout(() => void flush(), flushMs).unref()
  }

  async function write(): Promise<void> {
    const taken = { outcomes, entries, uses }
    outcomes = []
    entries = []
    uses = new Map()
    try {
      await insertAudit(db, taken.entries)
      taken.entries = []
      await noteOutcomes(db, taken.outcomes)
      taken.outcomes = []
      await noteUses(db, taken.uses)
      taken.uses = new Map()
      const now = clock.monotonicMs()
      if (prunedAt !== undefined && now - prunedAt < pruneEveryMs) return
      prunedAt = now
      const { numDeletedRows } = await pruneAudit(db, new Date(clock.now().getTime() - settings.keepDays * 86_400_000), pruneAtOnce)
      if (numDeletedRows < BigInt(pruneAtOnce)) return
      prunedAt = undefined
      soon()
    } catch (error) {
      log.debug({ err: error }, 'the audit log could not be completed now; it tries again')
      outcomes = [...taken.outcomes, ...outcomes].slice(-maxWaiting)
      entries = [...taken.entries, ...entries].slice(-maxWaiting)
      uses = new Map([...taken.uses, ...uses])
    }
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    flushing = flushing.then(write)
    return flushing
  }

  return {
    reads: settings.reads,
    async begin(entry) {
      const row = rowOf(entry)
      return (await insertTogether(row)).has(row.id) ? row.id : undefined
    },
    settle(outcome) {
      outcomes.push(outcome)
      soon()
    },
    note(entry, outcome) {
      entries.push(rowOf(entry, outcome))
      if (entries.length > maxWaiting) entries.shift()
      soon()
    },
    used(keyId) {
      const now = clock.monotonicMs()
      const noted = notedAt.get(keyId)
      if (noted !== undefined && now - noted < useEveryMs) return
      if (notedAt.size >= maxWaiting) notedAt.clear()
      notedAt.set(keyId, now)
      uses.set(keyId, clock.now())
      soon()
    },
    flush,
  }
}
