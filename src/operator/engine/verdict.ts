import type { Reason } from '../../resources/reasons.ts'

/** What to do about a step that did not finish. Every failure of the system is one of these four. */
export type Verdict =
  /** It often passes: the same step again, with growing delays. */
  | { readonly kind: 'retry'; readonly reason: Reason; readonly message: string; readonly afterMs?: number }
  /** Expected, not an error: look again after this long. `isBrief`: over in a moment, and not worth a write: what follows is written. */
  | { readonly kind: 'wait'; readonly reason: Reason; readonly message: string; readonly afterMs: number; readonly isBrief?: boolean }
  /**
   * A person must act. A change of spec, signer, configuration, key or the poke annotation wakes it; `recheck` says that the cause may also be
   * mended where no watch can see it (at the service, on the chain), so it is looked at again: slowly, or after `recheckAfterMs`.
   */
  | {
      readonly kind: 'stall'
      readonly reason: Reason
      readonly message: string
      readonly recheck: boolean
      readonly recheckAfterMs?: number
    }
  /** What was computed is stale: drop it, read again, go on. */
  | { readonly kind: 'conflict' }

/** The way an effect ends when it doesn't succeed. */
export class Halt extends Error {
  override readonly name = 'Halt'
  readonly verdict: Verdict
  /** What the step has found out all the same: it is absorbed, though the step is not done. */
  evidence: unknown
  constructor(verdict: Verdict, options?: ErrorOptions) {
    super(verdict.kind === 'conflict' ? 'conflict' : `${verdict.reason}: ${verdict.message}`, options)
    this.verdict = verdict
  }

  /** With what the step has found out all the same. */
  with(evidence: unknown): this {
    this.evidence = evidence
    return this
  }
}

export const retry = (reason: Reason, message: string, afterMs?: number): Halt =>
  new Halt(afterMs === undefined ? { kind: 'retry', reason, message } : { kind: 'retry', reason, message, afterMs })
export const wait = (reason: Reason, message: string, afterMs: number): Halt => new Halt({ kind: 'wait', reason, message, afterMs })
/** A wait for what is done at once. It must not come twice in a row. */
export const briefWait = (reason: Reason, message: string, afterMs: number): Halt =>
  new Halt({ kind: 'wait', reason, message, afterMs, isBrief: true })
export const stall = (reason: Reason, message: string, recheck = true): Halt => new Halt({ kind: 'stall', reason, message, recheck })
export const conflict = (): Halt => new Halt({ kind: 'conflict' })
