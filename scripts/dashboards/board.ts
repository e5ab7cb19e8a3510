/** One query of a panel, in PromQL. `$__rate_interval` is Grafana's: four scrapes at least. */
export interface Query {
  readonly expr: string
  /** Of each series, by its labels, such as `{{kind}}`. */
  readonly legend: string
}

export interface Panel {
  readonly shows: 'graph' | 'number' | 'table'
  readonly title: string
  readonly description: string
  /** Grafana's name of a unit. */
  readonly unit?: 's' | 'percentunit' | 'short' | 'dateTimeFromNow' | 'reqps'
  readonly queries: readonly Query[]
  /** From this value on it is shown in red. */
  readonly alarmFrom?: number
  /** Of 24. */
  readonly width?: 6 | 8 | 12 | 24
}

export interface Board {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[]
}
