import type { Clock } from '../lib/clock.ts'

/** An hour: a longer (or mistaken) wait would look like a hung client; after it we ask again. */
const maxRetryAfterMs = 3_600_000

const httpDate =
  /^[A-Z][a-z]+, ?\d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$|^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** Milliseconds that a Retry-After header (RFC 9110, 10.2.3: seconds or a date) asks to wait, 0 to an hour; undefined when it says nothing. */
export function parseRetryAfter(header: string | string[] | undefined, now: Date): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (text === undefined) return undefined
  if (/^\d{1,12}$/.test(text)) return Math.min(Number(text) * 1000, maxRetryAfterMs)
  if (!httpDate.test(text)) return undefined
  // The asctime form names no zone; it is UTC by definition.
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(at) ? undefined : Math.min(Math.max(at - now.getTime(), 0), maxRetryAfterMs)
}

/**
 * A gate that all calls with one credential pass: after the service asked to wait, none goes out before the time is over.
 * `scope` is what the wait is about: a rate limit or an overload is about all (`''`), an unreachable chain about that chain's stakes or validators.
 */
export interface RetryGate {
  /** What is left to wait before a call to `path`, in ms; 0 when it may go out. */
  remainingMs(path: string): number
  /** The scope that makes a call to `path` wait longest, and how long; undefined when it may go out. */
  heldBy(path: string): { readonly scope: string; readonly ms: number } | undefined
  close(scope: string, ms: number): void
  /** A new credential has its own limits. */
  reset(): void
}

export function createRetryGate({ clock }: { clock: Clock }): RetryGate {
  const until = new Map<string, number>()
  const heldBy: RetryGate['heldBy'] = (path) => {
    const now = clock.monotonicMs()
    let longest: ReturnType<RetryGate['heldBy']>
    for (const [scope, at] of until) {
      if (at <= now) until.delete(scope)
      else if (path.startsWith(scope) && at - now > (longest?.ms ?? 0)) longest = { scope, ms: at - now }
    }
    return longest
  }
  return {
    heldBy,
    remainingMs: (path) => heldBy(path)?.ms ?? 0,
    close: (scope, ms) => {
      if (ms > 0) until.set(scope, Math.max(until.get(scope) ?? 0, clock.monotonicMs() + ms))
    },
    reset: () => until.clear(),
  }
}
