import { formatEth, gwei } from '../../lib/amounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { sameHex } from '../../lib/hex.ts'
import { timestamp } from '../../resources/conditions.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import { Halt, stall, wait } from '../engine/verdict.ts'
import {
  type Asked,
  amountOf,
  BLOCK_AHEAD_MS,
  inTurn,
  type Limit,
  limitsOf,
  longestOf,
  type Over,
  overLimit,
  type Present,
  presentOf,
  sinceMs,
  type Use,
  usesOf,
} from './limits.ts'
import { createKeeping } from './limits-keep.ts'
import type { Moment } from './moment.ts'
import { laneKey } from './names.ts'
import { forgottenPlaces, type Place } from './protocol.ts'
import { type RecordObject, recordOf, type TransactionStore } from './store.ts'

/** How often who waits for a limit looks again at most, in ms. */
const LOOK_MS = 60_000

/** The room that the limits of a lane's signers leave, as of one look. */
export interface Room {
  /** A signer of the lane has limits: places are given out one by one, so that whoever takes one has counted all before it. */
  readonly isLimited: boolean
  /** Why a record would have to wait by what is used now; undefined where it fits. */
  over(record: RecordObject, signer: StakingSigner | undefined): Halt | undefined
  /** The same once these have taken their room. */
  after(ready: readonly RecordObject[]): Pick<Room, 'isLimited' | 'over'>
  /** Those that wait, the oldest first, in their turn: what namespaces share goes to those that have used least of it. */
  inTurn(waiting: readonly RecordObject[], couldGo: (record: RecordObject) => boolean): readonly RecordObject[]
  /** Gives the room out, in order. */
  pass(): Pass
}
export interface Pass {
  /** Why a record waits: there is no room, or an earlier one of its namespace has not got any. */
  ask(record: RecordObject, signer: StakingSigner): Halt | undefined
  /** It takes its room, before the cache shows that. */
  reserve(record: RecordObject): void
}

/** What of a look at a lane is needed. */
type LookedAt = Pick<Moment, 'lane' | 'chain' | 'places' | 'counts' | 'signal' | 'blockSeconds' | 'network'>

export interface LimiterDeps {
  readonly store: Pick<TransactionStore, 'signedSince' | 'record' | 'read'>
  readonly signers: () => Iterable<StakingSigner>
  readonly clock: Pick<Clock, 'now'>
}
export type Limiter = ReturnType<typeof createLimiter>

/** @throws Halt where they can't be read: such a policy admits nothing */
export function readLimits(signer: Pick<StakingSigner, 'metadata' | 'spec'>): readonly Limit[] {
  const limits = limitsOf(signer.spec)
  if ('problem' in limits)
    throw stall('PolicyUnreadable', `StakingSigner ${signer.metadata.name}: ${limits.problem}. It admits nothing until that is mended.`)
  return limits
}

/** Readable limits: what can't be read admits nothing elsewhere. */
const limitsIn = ({ spec }: StakingSigner): readonly Limit[] => {
  const limits = limitsOf(spec)
  return 'problem' in limits ? [] : limits
}

/** Holds what a lane signs within the limits of its signer, by the log alone: it remembers nothing from one look to the next. */
export function createLimiter({ store, signers, clock }: LimiterDeps) {
  /**
   * What counts in a lane now, by the uid of its record. ▸ A place is the admission: one that was taken for a record counts from then on, whether the record
   * names it yet or not, since whoever took it may have signed for it.
   */
  async function usesIn(moment: LookedAt, since: number): Promise<Map<string, readonly Use[]>> {
    const { lane, places, signal } = moment
    const uses = new Map<string, readonly Use[]>()
    for (const record of store.signedSince(laneKey(lane), since)) uses.set(record.metadata.uid, usesOf(record, false))
    for (const place of places.values()) {
      const { name, uid } = place.transaction ?? {}
      if (name === undefined || uid === undefined) continue
      const cached = store.record(name)
      if (cached?.metadata.uid === uid && accountsFor(cached, place)) continue
      // A cache that lags behind shows places that its records don't account for.
      const record = await store.read(name, signal)
      if (record === undefined || record.metadata.uid !== uid) continue
      const isClaimed = !accountsFor(record, place) && (await mayHaveLanded(moment, record, place.nonce))
      const before = uses.get(uid)
      uses.set(uid, isClaimed || before === undefined ? usesOf(record, isClaimed) : before)
    }
    return uses
  }

  /** Whether a record is over a limit, by what others use, and by what of itself has landed before. */
  function over(record: RecordObject, limits: readonly Limit[], uses: ReadonlyMap<string, readonly Use[]>, now: Present): Over | undefined {
    const amount = amountOf(record)
    if (limits.length === 0 || amount === undefined) return undefined
    const others = [...uses].flatMap(([uid, used]) => (uid === record.metadata.uid ? [] : used))
    return overLimit(limits, [...others, ...landedOf(record)], { amount, namespace: record.spec.owner.namespace }, now)
  }

  /** The room that there is in a lane now. */
  async function look(moment: LookedAt): Promise<Room> {
    const own = [...signers()].filter(({ spec }) => spec.chain === 'Ethereum' && sameHex(spec.address, moment.lane.address))
    const longest = Math.max(0, ...own.map((signer) => longestOf(limitsIn(signer))))
    if (longest === 0) return unlimited
    const now = presentOf(clock.now().getTime(), moment.blockSeconds)
    const uses = await usesIn(moment, sinceMs(now, longest))
    const reserve = (taken: Map<string, readonly Use[]>, record: RecordObject): void => {
      const amount = amountOf(record)
      if (amount === undefined) return
      const use = { atMs: now.clockMs, isOpen: true, amount, namespace: record.spec.owner.namespace }
      taken.set(record.metadata.uid, [...landedOf(record), use])
    }
    function overBeside(taken: ReadonlyMap<string, readonly Use[]>): Room['over'] {
      const known = new Map<string, Over | undefined>()
      return (record, signer) => {
        if (signer === undefined) return undefined
        return haltOf(() => {
          const limits = readLimits(signer)
          // Of a thousand that wait most ask for the same.
          const key =
            record.status?.attempts === undefined ? `${signer.metadata.name} ${record.spec.owner.namespace} ${amountOf(record)}` : undefined
          const found = key !== undefined && known.has(key) ? known.get(key) : over(record, limits, taken, now)
          if (key !== undefined) known.set(key, found)
          return found && limitReached(record, signer, found, now.clockMs)
        })
      }
    }

    return {
      isLimited: true,
      over: overBeside(uses),
      after(ready) {
        const taken = new Map(uses)
        for (const record of ready) reserve(taken, record)
        return { isLimited: true, over: overBeside(taken) }
      },
      inTurn(waiting, couldGo) {
        const asked = waiting.map((record) => ({
          amount: amountOf(record) ?? 0n,
          namespace: record.spec.owner.namespace,
          couldGo: couldGo(record),
        }))
        return inTurn(own.flatMap(limitsIn), [...uses.values()].flat(), asked, now).flatMap((index) => waiting[index] ?? [])
      },
      pass() {
        const taken = new Map(uses)
        const held = new Map<string, Over>()
        return {
          ask: (record, signer) =>
            haltOf(() => {
              const { namespace } = record.spec.owner
              const found = over(record, readLimits(signer), taken, now)
              // What never fits keeps nobody's turn.
              if (found?.isAlone === true) return limitReached(record, signer, found, now.clockMs)
              // In the order in which they were made, of one namespace: a large one is not overtaken by small ones for ever.
              const before = held.get(namespace)
              if (before !== undefined) return limitReached(record, signer, before, now.clockMs, true)
              if (found === undefined) return undefined
              held.set(namespace, found)
              return limitReached(record, signer, found, now.clockMs)
            }),
          reserve: (record) => reserve(taken, record),
        }
      },
    }
  }

  /** The limits as the signer has them now, read past the cache right before the first broadcast: they may be tighter than those that it was admitted by. @throws Halt */
  async function assertStill(moment: LookedAt, record: RecordObject, signer: StakingSigner): Promise<void> {
    const limits = readLimits(signer)
    if (limits.length === 0) return
    const now = presentOf(clock.now().getTime(), moment.blockSeconds)
    const found = over(record, limits, await usesIn(moment, sinceMs(now, longestOf(limits))), now)
    if (found !== undefined) throw limitReached(record, signer, found, now.clockMs)
  }

  return { look, assertStill, ...createKeeping({ signers, clock }) }
}

/** Whether a record says what became of a place that was taken for it. */
const accountsFor = (record: RecordObject, place: Place): boolean =>
  record.status?.outcome !== undefined ||
  record.status?.place === place.nonce ||
  forgottenPlaces(recordOf(record), [place], undefined).length === 0

/** Whether the call of a record may land under a nonce of which the record says nothing, or has: the chain says what used it, once all nodes have that. */
async function mayHaveLanded({ chain, lane, counts, signal }: LookedAt, { spec }: RecordObject, nonce: number): Promise<boolean> {
  if (counts.finalEverywhere === undefined || nonce >= counts.finalEverywhere) return true
  const used = await chain.nonceUse(lane.address, nonce, signal)
  if (used.is !== 'used') return true
  const { to, data } = used.transaction
  return to !== undefined && sameHex(to, spec.call?.to ?? '') && sameHex(data, spec.call?.data ?? '')
}

const unlimited: Room = {
  isLimited: false,
  over: () => undefined,
  after: () => unlimited,
  inTurn: (waiting) => waiting,
  pass: () => ({ ask: () => undefined, reserve: () => {} }),
}

/** What was landed of a record before: it may be asked for once more where that came to nothing. */
const landedOf = (record: RecordObject): readonly Use[] => usesOf(record, false).filter(({ isOpen }) => !isOpen)

function haltOf(ask: () => Halt | undefined): Halt | undefined {
  try {
    return ask()
  } catch (error) {
    if (error instanceof Halt) return error
    throw error
  }
}

type ChainName = StakingSigner['spec']['chain']
const coins = (amount: bigint, chain: ChainName): string => `${formatEth(gwei(amount))} ${chain === 'Solana' ? 'SOL' : 'ETH'}`

/** What a limit allows, for people. */
export const inWords = ({ maxCount, maxTotal, window, per }: Limit, chain: ChainName, namespace: string): string =>
  `${[
    ...(maxCount === undefined ? [] : [`${maxCount} transaction${maxCount === 1 ? '' : 's'}`]),
    ...(maxTotal === undefined ? [] : [coins(maxTotal, chain)]),
  ].join(' and ')} in ${window}${per === 'Namespace' ? ` for namespace ${namespace}` : ''}`

/** Whose turn it is not. */
export const limitReached = (record: RecordObject, signer: StakingSigner, over: Over, nowMs: number, isBehind = false): Halt =>
  overLimitHalt({ amount: amountOf(record) ?? 0n, namespace: record.spec.owner.namespace }, signer, over, nowMs, isBehind)

/** When there is room. ▸ Who waits is told the same at each look, since each change is a write: what the chain's time adds is told where it is much. */
function whenOf({ freesAtMs, toldMs }: Over, nowMs: number, isBehind: boolean): string {
  if (freesAtMs === undefined || toldMs === undefined) return 'when what is in flight has landed, or come to nothing'
  if (isBehind && freesAtMs <= nowMs) return 'right after that'
  const isChainLate = freesAtMs - toldMs > BLOCK_AHEAD_MS
  if (isChainLate && toldMs <= nowMs) return "when the window is over by the chain's own time as well, which is behind the clock"
  return `at ${timestamp(new Date(toldMs))}${isChainLate || isBehind ? ' at the earliest' : ''}`
}

/** The same of what is asked for, whether there is a record of it or not. */
export function overLimitHalt({ amount, namespace }: Asked, signer: StakingSigner, over: Over, nowMs: number, isBehind = false): Halt {
  const { limit, freesAtMs, isAlone } = over
  const allowed = `StakingSigner ${signer.metadata.name} may sign ${inWords(limit, signer.spec.chain, namespace)} (spec.policy.limits)`
  const when = `It goes on ${whenOf(over, nowMs, isBehind)}.`
  const says = isAlone
    ? `This one (${coins(amount, signer.spec.chain)}) is more than that by itself. It waits until the limit is raised.`
    : isBehind
      ? `An earlier one of namespace ${namespace} waits for room, and has its turn first. ${when}`
      : `There is no room for this one now. ${when}`
  const inMs = freesAtMs === undefined ? LOOK_MS : freesAtMs - nowMs
  return wait('LimitReached', `${allowed}. ${says}`, Math.min(LOOK_MS, Math.max(1_000, inMs)))
}
