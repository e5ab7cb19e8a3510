import { AmountError, parseEth } from '../../lib/amounts.ts'
import { timeMs } from '../../resources/conditions.ts'
import { type SignerLimit, signerLimits } from '../../resources/signer-limits.ts'
import type { StakingSignerSpec } from '../../resources/staking-signer.ts'
import type { ClosedPlace, StakingTransaction, TransactionAttempt } from '../../resources/staking-transaction.ts'
import { senderOf } from './ethereum-texts.ts'
import { laneKey } from './names.ts'
import { attemptsOf, closedOf } from './protocol.ts'

/**
 * Rolling limits of a signer, pure: what counts, and whether one more fits. Amounts are gwei on Ethereum, lamports on Solana.
 *
 * ▸ What counts is read from the log: all that may land, and all that has landed and was signed for within the window. What is proven to have come to nothing
 * (its cancel is final, it was reverted, it has expired) counts no more.
 */

type Given = Pick<StakingTransaction, 'spec' | 'status'>

export interface Limit {
  readonly window: string
  readonly windowMs: number
  readonly per: SignerLimit['per']
  readonly maxCount: number | undefined
  readonly maxTotal: bigint | undefined
}

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
export const MAX_WINDOW_MS = 365 * UNITS_MS.d

/** A window in ms; undefined where the text is none. */
export function windowMs(text: string): number | undefined {
  const match = /^([1-9][0-9]{0,8})([smhd])$/.exec(text)
  const ms = match === null ? Number.NaN : Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS]
  return ms <= MAX_WINDOW_MS ? ms : undefined
}

/** The limits of a signer, or why they can't be read: what the admission rules refuse too, once more. No policy fails open. */
export function limitsOf({ chain, policy }: Pick<StakingSignerSpec, 'chain' | 'policy'>): readonly Limit[] | { readonly problem: string } {
  const limits: Limit[] = []
  // As the API server holds them: an older definition may have let through what this version can't read.
  const parsed = signerLimits.safeParse(policy.limits ?? [])
  if (!parsed.success) return { problem: ['policy.limits', ...(parsed.error.issues[0]?.path ?? [])].join('.') }
  for (const [index, given] of parsed.data.entries()) {
    const at = `policy.limits[${index}]`
    const ms = windowMs(given.window)
    if (ms === undefined) return { problem: `${at}.window is no time of at most a year, such as "24h"` }
    const [own, other] = chain === 'Solana' ? (['maxTotalSol', 'maxTotalEth'] as const) : (['maxTotalEth', 'maxTotalSol'] as const)
    if (given[other] !== undefined) return { problem: `${at}.${other} is of another chain: ${chain} has ${own}` }
    const total = totalOf(given[own])
    if (total === null || total === 0n) return { problem: `${at}.${own} is no amount above 0` }
    if (total === undefined && given.maxCount === undefined) return { problem: `${at} has neither maxCount nor ${own}` }
    if (limits.some((one) => one.windowMs === ms && one.per === given.per))
      return { problem: `${at} is for the same window and per as one before it` }
    limits.push({ window: given.window, windowMs: ms, per: given.per, maxCount: given.maxCount, maxTotal: total })
  }
  return limits
}

/** Gwei or lamports: both are a billionth of the coin. Null where it is none. */
function totalOf(text: string | undefined): bigint | undefined | null {
  if (text === undefined) return undefined
  try {
    return parseEth(text)
  } catch (error) {
    if (error instanceof AmountError) return null
    throw error
  }
}

/** Something that counts. */
export interface Use {
  /** When it was signed for first, Unix ms, by the clock of whoever led. */
  readonly atMs: number
  /** And by the time of the latest block then; undefined where there is none. */
  readonly blockMs?: number | undefined
  /** It may land yet: it counts however old it is. */
  readonly isOpen: boolean
  readonly amount: bigint
  readonly namespace: string
}

/** An exit, whatever its validator holds: nobody has to be asked for it, so that everybody who reads the log counts the same. */
export const EXIT_GWEI = 32_000_000_000n
/** What can't be read counts as more than any limit. */
const UNREADABLE = 1n << 64n

/** What a record moves: gwei or lamports; undefined for what no limit counts (the later steps of a Solana stake). */
export function amountOf({ spec }: Pick<StakingTransaction, 'spec'>): bigint | undefined {
  const { purpose, call, amount } = spec
  switch (purpose) {
    case 'Deposit':
      return call?.valueWei === undefined ? UNREADABLE : BigInt(call.valueWei) / 1_000_000_000n
    case 'Exit':
      return EXIT_GWEI
    case 'Withdrawal': {
      // EIP-7002: the validator's key (48 bytes), then the amount in gwei (8 bytes).
      const digits = call?.data.slice(98, 114) ?? ''
      return digits.length === 16 ? BigInt(`0x${digits}`) : UNREADABLE
    }
    case 'SolanaStake':
      return totalOf(/^(.*) SOL$/.exec(amount)?.[1] ?? '') ?? UNREADABLE
    case 'SolanaDeactivation':
    case 'SolanaWithdrawal':
    case 'SolanaAuthorization':
      return undefined
  }
}

/**
 * What is counted together: an address on a chain, whatever its StakingSigner is called and however often it was made. The lane of Ethereum; of Solana the
 * cluster and whoever pays.
 */
export const accountKey = ({ spec }: Pick<StakingTransaction, 'spec'>): string =>
  spec.chainId === undefined
    ? solanaAccount(spec.genesisHash ?? '', spec.from)
    : laneKey({ chainId: spec.chainId, address: senderOf({ spec }) })
export const solanaAccount = (genesisHash: string, address: string): string => `${genesisHash}/${address}`

/** Of a landing: the first version that was signed under its nonce, which is when it was signed for. */
function firstUnder(attempts: readonly TransactionAttempt[], hash: string): TransactionAttempt | undefined {
  const landed = attempts.find((one) => one.hash.toLowerCase() === hash.toLowerCase())
  if (landed === undefined || landed.nonce === undefined) return landed
  return attempts.find(({ nonce, generation }) => nonce === landed.nonce && generation === landed.generation)
}

/** An attempt of Solana is closed by its number among all, one of Ethereum by its nonce and generation. */
const isClosed = (attempt: TransactionAttempt, index: number, closed: readonly ClosedPlace[]): boolean =>
  closed.some(
    ({ nonce, generation }) =>
      nonce === (attempt.nonce ?? index) &&
      (attempt.nonce === undefined || generation === undefined || attempt.generation === undefined || generation === attempt.generation),
  )

/**
 * What of a record counts, at any age. `isClaimed`: a place was taken for it that it has not named, or of which it does not say what became: it may be
 * signed for there by whoever took it.
 */
export function usesOf(record: Given, isClaimed: boolean): readonly Use[] {
  const amount = amountOf(record)
  if (amount === undefined) return []
  const { spec, status = {} } = record
  const attempts = attemptsOf({ status })
  const closed = closedOf({ status })
  const use = (attempt: TransactionAttempt | undefined, isOpen: boolean, namespace = spec.owner.namespace): Use => {
    const at = timeMs(attempt?.at ?? '')
    // What has no readable time counts as what may land yet.
    const block = attempt?.blockAt === undefined ? undefined : timeMs(attempt.blockAt)
    return {
      atMs: Number.isNaN(at) ? 0 : at,
      ...(block === undefined || Number.isNaN(block) ? {} : { blockMs: block }),
      isOpen: isOpen || Number.isNaN(at),
      amount,
      namespace: attempt?.namespace ?? namespace,
    }
  }
  // What landed and came to nothing afterwards was signed and paid all the same.
  const dropped = closed
    .filter(({ by }) => by === 'Dropped')
    .map(({ hash, owner }) => use(firstUnder(attempts, hash), false, owner?.namespace))
  const { outcome } = status
  if (outcome?.is === 'Reverted') return dropped
  if (outcome !== undefined) {
    const landed = firstUnder(attempts, outcome.hash) ?? attempts.at(-1)
    // Done, and nobody has signed for it here.
    return landed === undefined ? dropped : [...dropped, use(landed, false)]
  }
  const open = attempts.find((attempt, index) => !isClosed(attempt, index, closed))
  if (open !== undefined) return [...dropped, use(open, true)]
  return isClaimed || status.place !== undefined ? [...dropped, use(undefined, true)] : dropped
}

/** The longest window of limits, ms; 0 without any. */
export const longestOf = (limits: readonly Limit[]): number => limits.reduce((most, { windowMs }) => Math.max(most, windowMs), 0)

/** When a record was signed for last, Unix ms; infinity while it may land; undefined where nothing of it counts. */
export function lastUseMs(record: Given): number | undefined {
  const uses = usesOf(record, false)
  if (uses.length === 0) return undefined
  return Math.max(...uses.map(({ atMs, blockMs = 0, isOpen }) => (isOpen ? Number.POSITIVE_INFINITY : Math.max(atMs, blockMs))))
}

/** Until when a window counts a record, Unix ms by the clock; infinity while it may land; undefined where nothing of it counts. */
export function countedUntilMs(record: Given, windowMs: number, now: Present): number | undefined {
  const ends = usesOf(record, false).map((use) => (use.isOpen ? Number.POSITIVE_INFINITY : endMs(use, { windowMs }, now)))
  return ends.length === 0 ? undefined : Math.max(...ends)
}

/** The time as limits have it, Unix ms: by the clock of whoever leads, and by the latest block, where there are blocks. */
export interface Present {
  readonly clockMs: number
  readonly blockMs: number | undefined
}
/** @param blockSeconds 0 where the node does not tell */
export const presentOf = (clockMs: number, blockSeconds: number): Present => ({
  clockMs,
  blockMs: blockSeconds === 0 ? undefined : blockSeconds * 1_000,
})
/** A time that is before any from which something counts that is so old at most. */
export const sinceMs = ({ clockMs, blockMs = clockMs }: Present, windowMs: number): number => Math.min(clockMs, blockMs) - windowMs

/** How far ahead of a right clock the chain's time may be, ms: blocks have the time of their slot, by their maker's clock. */
export const BLOCK_AHEAD_MS = 60_000

/**
 * When a window lets go of what was signed for, Unix ms by the clock. ▸ It is over when both clocks say so, each by what it said at the signature: one that is set
 * wrong, or stands far off, opens nothing. What was signed later than now was signed by a clock that was ahead, unless this one is behind; it is not behind where
 * the chain is not ahead of it. Then the chain's time alone tells, so that a clock which was wrong for a moment costs nobody hours. And what the
 * chain said then that is ahead of both clocks now was one node's wrong word: its time never goes back. Then the clock alone tells, so that this costs nobody years.
 */
function endsOf({ atMs, blockMs }: Use, { windowMs }: Pick<Limit, 'windowMs'>, now: Present): Ends {
  const byClock = atMs + windowMs
  const clockAlone = { endMs: byClock, toldMs: byClock }
  if (blockMs === undefined || now.blockMs === undefined) return clockAlone
  if (blockMs > Math.max(atMs, now.clockMs, now.blockMs) + BLOCK_AHEAD_MS) return clockAlone
  const byChain = now.clockMs + blockMs + windowMs - now.blockMs
  const wasAhead = atMs > now.clockMs && now.blockMs <= now.clockMs + BLOCK_AHEAD_MS
  return wasAhead ? { endMs: byChain, toldMs: blockMs + windowMs } : { endMs: Math.max(byClock, byChain), toldMs: byClock }
}
interface Ends {
  /** Until when it counts, Unix ms by the clock. */
  readonly endMs: number
  /** The same for people: what the chain's time adds to it moves with each block. */
  readonly toldMs: number
}
const endMs = (use: Use, limit: Pick<Limit, 'windowMs'>, now: Present): number => endsOf(use, limit, now).endMs

const counts = (use: Use, limit: Limit, namespace: string, now: Present): boolean =>
  (limit.per === 'Signer' || use.namespace === namespace) && (use.isOpen || endMs(use, limit, now) > now.clockMs)

const isOver = ({ maxCount, maxTotal }: Limit, count: number, total: bigint): boolean =>
  (maxCount !== undefined && count > maxCount) || (maxTotal !== undefined && total > maxTotal)

export interface Asked {
  readonly amount: bigint
  readonly namespace: string
}
export interface Over {
  readonly limit: Limit
  /** When there is room for it, Unix ms; undefined where what is in flight decides that. */
  readonly freesAtMs: number | undefined
  /** The same for people: each look tells the same, until the chain's time is more than a minute late. */
  readonly toldMs: number | undefined
  /** It is more than the limit by itself: there is never room for it. */
  readonly isAlone: boolean
}

/** ▸ Whether one more would be over a limit: the limit that it waits for longest. Undefined where it fits. */
export function overLimit(limits: readonly Limit[], uses: readonly Use[], asked: Asked, now: Present): Over | undefined {
  const over = limits.flatMap((limit): Over[] => {
    const counted = uses.filter((use) => counts(use, limit, asked.namespace, now))
    const total = counted.reduce((sum, { amount }) => sum + amount, asked.amount)
    if (!isOver(limit, counted.length + 1, total)) return []
    const wait = { limit, freesAtMs: undefined, toldMs: undefined, isAlone: isOver(limit, 1, asked.amount) }
    if (wait.isAlone) return [wait]
    // One that is older and may land yet counts until it has.
    const ends = counted.flatMap((use) => {
      const found = endsOf(use, limit, now)
      return use.isOpen && found.endMs <= now.clockMs ? [] : [{ ...found, amount: use.amount }]
    })
    const roomFrom = (by: keyof Ends): number | undefined => {
      let [count, left] = [counted.length + 1, total]
      for (const end of ends.toSorted((a, b) => a[by] - b[by])) {
        count -= 1
        left -= end.amount
        if (!isOver(limit, count, left)) return end[by]
      }
      return undefined
    }
    return [{ ...wait, freesAtMs: roomFrom('endMs'), toldMs: roomFrom('toldMs') }]
  })
  const rank = ({ isAlone, toldMs }: Over): number => (isAlone ? Number.POSITIVE_INFINITY : (toldMs ?? Number.MAX_SAFE_INTEGER))
  return over.toSorted((a, b) => rank(b) - rank(a))[0]
}

/**
 * ▸ Whose turn it is where namespaces share limits: theirs that have used the least share, each one's oldest first. So a namespace that asks for a thousand takes
 * nobody else's turn. What could not go now, for whatever reason of its own, takes nobody's, not even its own namespace's.
 * @returns places in `waiting`, in their turn
 */
export function inTurn(
  limits: readonly Limit[],
  uses: readonly Use[],
  waiting: readonly (Asked & { readonly couldGo: boolean })[],
  now: Present,
): readonly number[] {
  const shared = limits.filter(({ per }) => per === 'Signer')
  const has = new Map<string, { count: number; total: bigint }[]>()
  const usedBy = (namespace: string) => {
    const known = has.get(namespace) ?? shared.map(() => ({ count: 0, total: 0n }))
    has.set(namespace, known)
    return known
  }
  const add = (used: { count: number; total: bigint }, amount: bigint): void => {
    used.count += 1
    used.total += amount
  }
  for (const use of uses)
    for (const [index, used] of usedBy(use.namespace).entries()) {
      const limit = shared[index]
      if (limit !== undefined && counts(use, limit, use.namespace, now)) add(used, use.amount)
    }
  const shareOf = (namespace: string): number =>
    Math.max(
      0,
      ...usedBy(namespace).map(({ count, total }, index) => {
        const { maxCount, maxTotal } = shared[index] ?? {}
        return Math.max(maxCount === undefined ? 0 : count / maxCount, maxTotal === undefined ? 0 : Number(total) / Number(maxTotal))
      }),
    )
  const turns = waiting.map(({ namespace, amount, couldGo }, index) => {
    const share = shareOf(namespace)
    if (couldGo && !shared.some((limit) => isOver(limit, 1, amount))) for (const used of usedBy(namespace)) add(used, amount)
    return { index, share }
  })
  return turns.toSorted((a, b) => a.share - b.share || a.index - b.index).map(({ index }) => index)
}

/** What of a limit is used, by the namespace that is counted; undefined for all of the signer. */
export interface Used {
  readonly limit: Limit
  readonly namespace: string | undefined
  readonly count: number
  readonly total: bigint
  /** When the first of it counts no more, Unix ms. */
  readonly freesAtMs: number | undefined
}

export function usedOf(limits: readonly Limit[], uses: readonly Use[], now: Present): readonly Used[] {
  const used = (limit: Limit, namespace: string | undefined): Used => {
    const counted = uses.filter((use) => counts(use, limit, namespace ?? '', now))
    const ends = counted.map((use) => endMs(use, limit, now)).filter((end) => end > now.clockMs)
    return {
      limit,
      namespace,
      count: counted.length,
      total: counted.reduce((sum, { amount }) => sum + amount, 0n),
      freesAtMs: ends.length === 0 ? undefined : Math.min(...ends),
    }
  }
  const namespaces = [...new Set(uses.map(({ namespace }) => namespace))].toSorted()
  return limits.flatMap((limit) =>
    limit.per === 'Signer'
      ? [used(limit, undefined)]
      : namespaces.map((namespace) => used(limit, namespace)).filter(({ count }) => count > 0),
  )
}
