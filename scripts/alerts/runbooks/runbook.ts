/** What whoever is woken reads beside an alert's own text, in the order in which it is needed. */
export interface Runbook {
  /** More than the alert's description says. */
  readonly meaning?: string
  /** Whether money is at risk: the answer first, then why. */
  readonly money: string
  /** What works and what doesn't meanwhile. */
  readonly impact: string
  readonly look: readonly Look[]
  readonly causes: readonly Cause[]
  readonly mend: readonly (string | Command)[]
  readonly escalate: string
  readonly never: readonly string[]
}

/** Something to look at: by a command for a shell, by a query for Prometheus, or both. */
export interface Look {
  readonly shows: string
  readonly run?: string
  readonly query?: string
}

export interface Command {
  readonly does: string
  readonly run: string
}

export interface Cause {
  readonly seen: string
  readonly cause: string
}
