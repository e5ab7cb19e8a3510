import type { Clock } from '../../lib/clock.ts'
import { inSpan, type SpanAttributes, type SpanOptions } from '../../lib/tracing.ts'
import { KubeError } from './errors.ts'
import { type KubeLog, silentLog } from './log.ts'
import { Priority, type Queue } from './queue.ts'

/** What a reconcile found. A thrown error means: again, after a back-off. */
export type Result =
  /** Nothing to do until something changes. */
  | { readonly kind: 'done' }
  /** More to do, at once. */
  | { readonly kind: 'again'; readonly priority?: number }
  /** Expected, not an error: look again after so many ms. */
  | { readonly kind: 'wait'; readonly afterMs: number; readonly priority?: number }

/** How a reconcile ended, for metrics. */
export type Outcome = Result['kind'] | 'error' | 'timeout' | 'aborted'

export interface ControllerOptions<K extends string> {
  readonly name: string
  readonly queue: Queue<K>
  readonly workers: number
  /** Level-based: looks at the state of `key` as it is now, whatever woke it. Must heed the signal. */
  readonly reconcile: (key: K, signal: AbortSignal) => Promise<Result>
  readonly clock: Clock
  readonly log?: KubeLog
  /** How long one reconcile may take, ms; then its signal aborts (reason ReconcileTimeout). */
  readonly timeoutMs?: number
  /** How long after its signal aborted a reconcile may still run, ms, before its worker goes on without it. Its key stays taken until it really ends. */
  readonly graceMs?: number
  readonly onResult?: (key: K, outcome: Outcome, ms: number) => void
  /** What log lines say of a key. Default: `controller` and `key`. */
  readonly logFields?: (key: K) => Record<string, unknown>
  /** What a trace says of the reconcile of a key. */
  readonly spanOf?: (key: K) => SpanOptions
  /** What it says of the key once that is over. */
  readonly spanEnd?: (key: K) => SpanAttributes
  /** What an error says by itself of why it is tried again. Such a one is no failure of the program: it is logged in a line, at info, and its stack at debug. */
  readonly saysOf?: (error: unknown) => { readonly reason: string; readonly message: string } | undefined
}

export interface Controller {
  /** Works until aborted; resolves when no reconcile runs any more, or after the grace. Shuts the queue down. */
  run(signal: AbortSignal): Promise<void>
}

export class ReconcileTimeout extends Error {
  override readonly name = 'ReconcileTimeout'
}

/** One reconcile that runs. */
interface Running {
  readonly abort: AbortController
  readonly startedAt: number
  abortedAt: number | undefined
  /** Lets the worker go on. */
  readonly release: () => void
}

export function createController<K extends string>(options: ControllerOptions<K>): Controller {
  const { name, queue, workers, reconcile, clock, log = silentLog, timeoutMs = 120_000, graceMs = 10_000, onResult } = options
  const fieldsOf = options.logFields ?? ((key: K): Record<string, unknown> => ({ controller: name, key }))
  const running = new Map<K, Running>()

  /** Never rejects. */
  async function visit(key: K, { abort, startedAt }: Running, stopping: AbortSignal): Promise<Outcome> {
    let outcome: Outcome
    try {
      const result = await reconcile(key, abort.signal)
      outcome = result.kind
      queue.forget(key)
      if (result.kind === 'again') queue.add(key, { priority: result.priority ?? Priority.high })
      else if (result.kind === 'wait') queue.addAfter(key, result.afterMs, { priority: result.priority ?? Priority.low })
    } catch (error) {
      outcome = stopping.aborted ? 'aborted' : abort.signal.aborted ? 'timeout' : 'error'
      if (outcome !== 'aborted') {
        const atLeastMs = error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0
        const waitMs = queue.addBackoff(key, { priority: Priority.high, atLeastMs })
        const fields = { ...fieldsOf(key), failures: queue.failures(key), waitMs: Math.round(waitMs) }
        const says = outcome === 'error' ? options.saysOf?.(error) : undefined
        if (says === undefined) log.warn({ ...fields, err: error }, 'the reconcile failed')
        else {
          log.info({ ...fields, reason: says.reason }, `tried again: ${says.message}`)
          log.debug({ ...fields, err: error }, 'why it is tried again')
        }
      }
    }
    try {
      onResult?.(key, outcome, clock.monotonicMs() - startedAt)
    } catch (error) {
      log.error({ ...fieldsOf(key), err: error }, 'onResult failed')
    }
    queue.done(key)
    return outcome
  }

  const traced = (key: K, entry: Running, stopping: AbortSignal): Promise<Outcome> =>
    inSpan(
      `reconcile ${name}`,
      () => options.spanOf?.(key) ?? { attributes: { 'staking.key': key } },
      async (span) => {
        const outcome = await visit(key, entry, stopping)
        span.set(() => ({ 'staking.result': outcome, ...options.spanEnd?.(key) }))
        return outcome
      },
    )

  async function work(signal: AbortSignal): Promise<void> {
    for (;;) {
      const key = await queue.get(signal)
      if (key === undefined) return
      await new Promise<void>((release) => {
        const entry: Running = { abort: new AbortController(), startedAt: clock.monotonicMs(), abortedAt: undefined, release }
        running.set(key, entry)
        traced(key, entry, signal).finally(() => {
          running.delete(key)
          release()
        })
      })
    }
  }

  const stop = (entry: Running, reason: unknown): void => {
    entry.abortedAt ??= clock.monotonicMs()
    if (!entry.abort.signal.aborted) entry.abort.abort(reason)
  }

  /** Looks after all that runs with one timer: a timer for each reconcile would cost more than many a reconcile does. */
  async function guard(over: AbortSignal): Promise<void> {
    for (;;) {
      const now = clock.monotonicMs()
      for (const [key, entry] of running) {
        if (entry.abortedAt === undefined && now - entry.startedAt >= timeoutMs)
          stop(entry, new ReconcileTimeout(`the reconcile of ${key} took longer than ${timeoutMs} ms`))
        else if (entry.abortedAt !== undefined && now - entry.abortedAt >= graceMs) {
          log.error(fieldsOf(key), 'a reconcile does not end though it was aborted: its worker goes on without it')
          entry.release()
        }
      }
      await clock.sleep(Math.max(10, Math.min(1000, timeoutMs / 4, graceMs / 4)), over)
    }
  }

  return {
    async run(signal) {
      const over = new AbortController()
      const onAbort = (): void => {
        for (const entry of running.values()) stop(entry, signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      const guarding = guard(over.signal).catch(() => {})
      try {
        await Promise.all(Array.from({ length: workers }, () => work(signal).catch(() => {})))
      } finally {
        over.abort()
        signal.removeEventListener('abort', onAbort)
        queue.shutdown()
        await guarding
      }
    },
  }
}
