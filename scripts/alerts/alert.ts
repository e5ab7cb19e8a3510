/** One alert, with the series that prove that it fires, and that it stays silent. What a person does about it is in its runbook (runbooks/). */
export interface Alert {
  readonly name: string
  readonly of: 'operator' | 'service'
  readonly expr: string
  /** How long it must hold, as Prometheus writes it. */
  readonly for: string
  /** `critical`: wake somebody up. `warning`: look at it in the morning. */
  readonly severity: 'critical' | 'warning'
  /** What has happened, with the labels of the series. */
  readonly summary: string
  readonly means: string
  /** Series by their name and labels, in promtool's notation, a value a minute. `at`: when it is looked at. */
  readonly fires: {
    readonly series: Readonly<Record<string, string>>
    readonly at: string
    readonly labels: Readonly<Record<string, string>>
  }
  readonly silent: { readonly series: Readonly<Record<string, string>>; readonly at: string }
}

/** Grown within a while, also where the counter has only come to be: `increase` of a series that begins with 1 is 0. */
export const grown = (counter: string, by: string, within: string): string =>
  `sum by (${by}) (increase(${counter}[${within}])) > 0 or (sum by (${by}) (${counter}) > 0 unless sum by (${by}) (${counter} offset ${within}))`
