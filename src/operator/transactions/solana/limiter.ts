import type { SolanaChain } from '../../../chains/solana/chain.ts'
import type { Clock } from '../../../lib/clock.ts'
import { shareNextCall } from '../../../lib/shared-call.ts'
import type { StakingSigner } from '../../../resources/staking-signer.ts'
import { limitReached, readLimits } from '../limiter.ts'
import {
  accountKey,
  amountOf,
  type Limit,
  longestOf,
  type Over,
  overLimit,
  type Present,
  presentOf,
  sinceMs,
  type Use,
  usesOf,
} from '../limits.ts'
import type { Memory } from '../memory.ts'
import type { RecordObject, TransactionStore } from '../store.ts'
import { chainSeconds } from './chain-time.ts'

/** How often all stakes of the log are read past the cache at most, in ms. */
const READ_EVERY_MS = 250

export type SolanaLimiter = ReturnType<typeof createSolanaLimiter>

/**
 * Holds what whoever pays for Solana stakes signs within its limits. There is no lane that would order them: each is written down first, which is its claim, and
 * sent only if all claims together, read past the cache after that, are within the limits. What is over and was not sent expires by itself. ▸ A window is over when the
 * clock of whoever leads and the cluster's own both say so.
 */
export function createSolanaLimiter({
  store,
  memory,
  clock,
}: {
  readonly store: Pick<TransactionStore, 'signedSince' | 'readRecords' | 'unsettledOf'>
  readonly memory: Pick<Memory, 'standing'>
  readonly clock: Clock
}) {
  /** What this process is about to write down, by the uid of its record. */
  const reserved = new Map<string, { readonly account: string; readonly use: Use }>()
  const never = new AbortController().signal
  const readAll = shareNextCall(() => store.readRecords('SolanaStake', never), { clock, everyMs: READ_EVERY_MS })

  function usesOfOthers(record: RecordObject, since: number): readonly Use[] {
    const account = accountKey(record)
    const { uid } = record.metadata
    const uses: Use[] = []
    for (const other of store.signedSince(account, since))
      if (other.metadata.uid !== uid && !reserved.has(other.metadata.uid)) uses.push(...usesOf(other, false))
    for (const [of, one] of reserved) if (of !== uid && one.account === account) uses.push(one.use)
    return uses
  }

  const overNow = (record: RecordObject, limits: readonly Limit[], now: Present): Over | undefined =>
    overLimit(limits, usesOfOthers(record, sinceMs(now, longestOf(limits))), askedBy(record), now)

  /** What an earlier one of the same namespace waits for, which has its turn first. */
  function ahead(record: RecordObject, limits: readonly [Limit, ...Limit[]], now: Present): Over | undefined {
    const first = store
      .unsettledOf(record.spec.from)
      .filter(
        (other) =>
          accountKey(other) === accountKey(record) &&
          other.spec.owner.namespace === record.spec.owner.namespace &&
          other.metadata.uid !== record.metadata.uid &&
          isOlder(other, record) &&
          memory.standing(other.metadata.name)?.reason === 'LimitReached' &&
          overLimit(limits, [], askedBy(other), { clockMs: now.clockMs, blockMs: undefined }) === undefined,
      )
      .reduce<RecordObject | undefined>((oldest, one) => (oldest === undefined || isOlder(one, oldest) ? one : oldest), undefined)
    if (first === undefined) return undefined
    // There may be room for it by now, and nobody has looked.
    return overNow(first, limits, now) ?? { limit: limits[0], freesAtMs: now.clockMs, toldMs: now.clockMs, isAlone: false }
  }

  /** @param blockSeconds the cluster's time; 0 where it has none @throws Halt where there is no room */
  function assertRoom(record: RecordObject, signer: StakingSigner, blockSeconds: number, hasTurn = false): void {
    if (amountOf(record) === undefined) return
    const [limit, ...more] = readLimits(signer)
    if (limit === undefined) return
    const limits = [limit, ...more] as const
    const now = presentOf(clock.now().getTime(), blockSeconds)
    const over = overNow(record, limits, now)
    if (over !== undefined) throw limitReached(record, signer, over, now.clockMs)
    const before = hasTurn ? undefined : ahead(record, limits, now)
    if (before !== undefined) throw limitReached(record, signer, before, now.clockMs, true)
  }

  return {
    assertRoom,

    /** The cluster's time, Unix seconds, for what a limit may count; 0 for what none does. @throws SolanaError */
    timeFor: async (record: RecordObject, chain: Pick<SolanaChain, 'account'>, signal: AbortSignal): Promise<number> =>
      amountOf(record) === undefined ? 0 : chainSeconds(chain, signal),

    /** Writes it down where there is room; nobody else in this process gets that meanwhile. @throws Halt where there is none */
    async within<T>(record: RecordObject, signer: StakingSigner, blockSeconds: number, write: () => Promise<T>): Promise<T> {
      assertRoom(record, signer, blockSeconds)
      const { uid } = record.metadata
      const asked = askedBy(record)
      reserved.set(uid, { account: accountKey(record), use: { ...asked, atMs: clock.now().getTime(), isOpen: true } })
      try {
        return await write()
      } finally {
        reserved.delete(uid)
      }
    },

    /** Right before the first sending from this process. @throws Halt where it is over a limit */
    async assertStill(
      record: RecordObject,
      signer: StakingSigner,
      chain: Pick<SolanaChain, 'account'>,
      signal: AbortSignal,
    ): Promise<void> {
      if (amountOf(record) === undefined || readLimits(signer).length === 0) return
      const blockSeconds = await chainSeconds(chain, signal)
      await readAll(signal)
      assertRoom(record, signer, blockSeconds, true)
    },
  }
}

const askedBy = (record: RecordObject): { readonly amount: bigint; readonly namespace: string } => ({
  amount: amountOf(record) ?? 0n,
  namespace: record.spec.owner.namespace,
})

function isOlder(a: RecordObject, b: RecordObject): boolean {
  const key = ({ metadata }: RecordObject): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`
  return key(a) < key(b)
}
