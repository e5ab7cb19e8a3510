import type { Hash, Hex } from '../../chains/ethereum/chain.ts'
import type { Fees } from '../../chains/ethereum/fees.ts'
import type { ShownPlan } from '../../resources/plan.ts'
import type { Verdict } from '../engine/verdict.ts'
import type { KeyError } from '../ports.ts'
import type { RecordObject } from './store.ts'

/** Why a transaction is not done yet, for its owner's conditions. */
export type Standing = Exclude<Verdict, { kind: 'conflict' }>

/** What this process knows of a record and never writes: a restart loses it and asks the nodes again. */
export interface RecordMemory {
  /** Hashes that a node has taken from this process, or shows. */
  readonly sent: Set<string>
  /** Hashes that the staking API was told in this process. */
  readonly told: Set<string>
  /** Monotonic ms at which a hash was first seen here. */
  readonly seenAt: Map<string, number>
  /** It was written down by this process and nothing was sent since: nobody else can have sent it. */
  freshPlace: boolean
  /** Since when nothing of it can be sent, monotonic ms. */
  hinderedSince: number | undefined
  /** A node asked for more than the newest version pays, or that can't be sent again: another is to be made. */
  isUnderpriced: boolean
  /** No other version fits within the cap, or there are too many, as far as one was wanted. */
  isCapped: boolean
  /** Why no other version could be signed when one was wanted last: the newest goes on meanwhile. */
  unsigned: KeyError | undefined
  /** Since when the price is above what it may pay, monotonic ms. */
  tooDearSince: number | undefined
  bumpedAt: number | undefined
  /** Of a call whose bytes are not known here: since when it is the next of its lane, and since when no node shows it then, monotonic ms. */
  nextSince: number | undefined
  unseenSince: number | undefined
  /** Where its transaction is mined, not final. */
  minedAt: bigint | undefined
  looks: number
  /** When it was last seen that nothing of others stands against it, monotonic ms. */
  rivalsAt: number | undefined
  /** Nodes disagree about what became of it: said instead of that it was sent, which it is again. */
  disputed: Standing | undefined
  /** What of it has to be approved, as it was asked last; null where nothing has. */
  plan: ShownPlan | null | undefined
}

/** A filler that was sent: what the next one must outbid. */
export interface SentFiller {
  readonly hash: Hash
  readonly raw: Hex
  readonly fees: Fees
  readonly at: number
}

/** A chain's finality does not move back within this. */
const JUST_MS = 5_000

export type Memory = ReturnType<typeof createMemory>

/** By record (its uid: a name may come again) and by place. */
export function createMemory(onStanding: (record: string, standing: Standing) => void, monotonicMs: () => number) {
  const records = new Map<string, RecordMemory>()
  const standings = new Map<string, { readonly uid: string; readonly standing: Standing }>()
  const fillers = new Map<string, SentFiller>()
  /** When an outcome was written, by uid, until its owner has come for it. */
  const concluded = new Map<string, number>()
  return {
    fillers,
    /** Others' transactions under numbers that were given out and that no record accounts for, by place. */
    strangers: new Map<string, { readonly lane: string; readonly nonce: number; readonly hash: string }>(),
    /** Lanes that were looked through for them in this process. */
    lookedForStrangers: new Set<string>(),
    of({ metadata }: RecordObject): RecordMemory {
      let known = records.get(metadata.uid)
      if (known === undefined) {
        known = {
          sent: new Set(),
          told: new Set(),
          seenAt: new Map(),
          freshPlace: false,
          hinderedSince: undefined,
          isUnderpriced: false,
          isCapped: false,
          unsigned: undefined,
          tooDearSince: undefined,
          bumpedAt: undefined,
          nextSince: undefined,
          unseenSince: undefined,
          minedAt: undefined,
          looks: 0,
          rivalsAt: undefined,
          disputed: undefined,
          plan: undefined,
        }
        records.set(metadata.uid, known)
      }
      return known
    },
    /** What is known, without a note that the record was asked about: most of those whose status is shown are over. */
    find: ({ metadata }: RecordObject): RecordMemory | undefined => records.get(metadata.uid),
    forget(record: RecordObject): void {
      records.delete(record.metadata.uid)
      standings.delete(record.metadata.name)
    },
    /** Its outcome stands: what was known to get there is of no more use. */
    conclude(record: RecordObject): void {
      this.forget(record)
      const now = monotonicMs()
      for (const [uid, at] of concluded) {
        if (now - at < JUST_MS) break
        concluded.delete(uid)
      }
      concluded.set(record.metadata.uid, now)
    },
    /** True once, and only within moments of `conclude`. */
    wasJustConcluded({ metadata: { uid } }: RecordObject): boolean {
      const at = concluded.get(uid)
      concluded.delete(uid)
      return at !== undefined && monotonicMs() - at < JUST_MS
    },
    /** What a record waits for; undefined until it was looked at. */
    standing: (name: string): Standing | undefined => standings.get(name)?.standing,
    stand({ metadata: { name, uid } }: RecordObject, standing: Standing): void {
      const before = standings.get(name)
      standings.set(name, { uid, standing })
      if (before === undefined || JSON.stringify(before.standing) !== JSON.stringify(standing)) onStanding(name, standing)
    },
  }
}
