import { sql } from 'kysely'
import type { Clock } from '../lib/clock.ts'
import type { Store } from './store/database.ts'

/** Where a subject stands after it asked. */
export interface Allowance {
  readonly allowed: boolean
  readonly limit: number
  /** Of all instances together, as far as this one knows. */
  readonly remaining: number
  /** Until its window ends. */
  readonly resetMs: number
}

export interface RateLimiter {
  /** Spends one request of a subject. @throws the database's error */
  spend(subject: string): Promise<Allowance>
  /** The same without asking the database; undefined, and nothing is spent, where that must be asked. */
  spendAtHand(subject: string): Allowance | undefined
}

/** Of what is left of a window, an instance takes this part at once: few questions while much is left, one for each request at the end. */
const share = 20
const maxSubjects = 10_000
const maxTurns = 1_000

/** What this instance may give out by itself. */
interface Purse {
  tokens: number
  /** Left for all when it was last asked. */
  left: number
  readonly endsAt: number
}

/**
 * Limits over all instances: the database counts a subject's window, and each instance takes a share of what is left and spends it by itself. Together they
 * never allow more than the limit; a subject that asks one instance only may be stopped a little early when others hold a part of their share.
 * A window begins with the first request after the one before has ended.
 */
export function createRateLimiter(deps: { store: Store; clock: Clock; max: number; windowMs: number }): RateLimiter {
  const { store, clock, max, windowMs } = deps
  const purses = new Map<string, Purse>()
  const asking = new Map<string, Promise<Purse>>()
  const window = sql`make_interval(secs => ${windowMs / 1000}::double precision)`

  async function ask(subject: string): Promise<Purse> {
    const begun = clock.monotonicMs()
    // One that begins after the next has begun before the database's clock went back.
    const over = sql`(r.window_start <= now() - ${window} or r.window_start > now() + ${window})`
    const grantOf = (taken: ReturnType<typeof sql<bigint>>) =>
      sql<bigint>`greatest(0, least(${max}::bigint - ${taken}, greatest(1, (${max}::bigint - ${taken}) / ${share}::bigint)))`
    const fresh = grantOf(sql<bigint>`0::bigint`)
    const more = grantOf(sql<bigint>`r.taken`)
    const { rows } = await sql<{ granted: bigint; taken: bigint; left_ms: number }>`
      insert into rate_limits as r (subject, window_start, taken, granted) values (${subject}, now(), ${fresh}, ${fresh})
      on conflict (subject) do update set
        window_start = case when ${over} then now() else r.window_start end,
        taken = case when ${over} then ${fresh} else r.taken + ${more} end,
        granted = case when ${over} then ${fresh} else ${more} end
      returning r.granted, r.taken, (extract(epoch from r.window_start + ${window} - now()) * 1000)::float8 as left_ms`.execute(store.db)
    const [row] = rows
    if (row === undefined) throw new Error('the limit gave no answer')
    return { tokens: Number(row.granted), left: max - Number(row.taken), endsAt: begun + Math.max(1, row.left_ms) }
  }

  /** Those who come at once share one question. */
  async function refill(subject: string): Promise<Purse> {
    const running = asking.get(subject)
    if (running !== undefined) return running
    const asked = ask(subject)
      .then((purse) => {
        if (purses.size >= maxSubjects) purses.clear()
        purses.set(subject, purse)
        return purse
      })
      .finally(() => asking.delete(subject))
    asking.set(subject, asked)
    return asked
  }

  function spendAtHand(subject: string): Allowance | undefined {
    const held = purses.get(subject)
    const now = clock.monotonicMs()
    if (held === undefined || held.endsAt <= now) return undefined
    const resetMs = held.endsAt - now
    if (held.tokens > 0) return { allowed: true, limit: max, remaining: held.left + --held.tokens, resetMs }
    return held.left <= 0 ? { allowed: false, limit: max, remaining: 0, resetMs } : undefined
  }

  return {
    spendAtHand,
    async spend(subject) {
      // What one question brought may be spent by others who waited for it too: each turn brings at least one of them on.
      for (let turn = 0; turn < maxTurns; turn++) {
        const allowance = spendAtHand(subject)
        if (allowance !== undefined) return allowance
        await refill(subject)
      }
      return { allowed: false, limit: max, remaining: 0, resetMs: 1_000 }
    },
  }
}
