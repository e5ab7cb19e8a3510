import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Board, Panel, Query } from './board.ts'

/** A series over time: seconds since the beginning, and its value; null where there was none. */
export interface DrawnSeries {
  readonly name: string
  readonly values: readonly (number | null)[]
}

/** A panel with what Prometheus answered. */
export interface DrawnPanel extends Pick<Panel, 'title' | 'shows' | 'unit' | 'width' | 'alarmFrom'> {
  readonly series: readonly DrawnSeries[]
  /** Of a table. */
  readonly table?: { readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] }
  /** Why there is nothing to be seen. */
  readonly empty?: string
}

export interface Picture {
  readonly title: string
  /** Seconds since the beginning, of each value of each series. */
  readonly times: readonly number[]
  readonly rows: readonly { readonly title: string; readonly panels: readonly DrawnPanel[] }[]
}

/** What the queries of panels answer where nothing of the kind has happened. */
const nothingHappened: readonly { readonly of: RegExp; readonly why: string }[] = [
  { of: /limit_sol_left/, why: 'no limit in SOL in this run' },
  { of: /frees_timestamp/, why: 'no limit has counted anything yet' },
  { of: /_sol\b/, why: 'no Solana stake in this run' },
  { of: /Reverted|_total\{event=~/, why: 'no transaction was reverted or lost' },
  { of: /signatures_refused|alarms_total/, why: 'nothing was refused, and there was no alarm' },
  { of: /outcome!="ok"/, why: 'no call failed' },
  { of: /config_/, why: 'no mounted file was changed' },
  { of: /transactions_open/, why: 'no transaction is open' },
  { of: /chain_errors/, why: 'no call of the service failed' },
  { of: /requests_settled/, why: 'no exit or withdrawal in this run' },
  { of: /webhook_attempts/, why: 'nobody has asked for webhooks' },
  { of: /stakes_settled/, why: 'the service has seen no final block of a stake yet' },
  { of: /disagreements/, why: 'there is one node, and it agrees with itself' },
  { of: /database_connections/, why: 'the embedded database has no pool' },
]

/** Why a query may have nothing to show of a run in which nothing goes wrong. Undefined: it must show something. */
export const whyEmpty = ({ expr }: Pick<Query, 'expr'>): string | undefined => nothingHappened.find(({ of }) => of.test(expr))?.why

type Labels = Readonly<Record<string, string>>
type Value = readonly [seconds: number, value: string]

/** Answers a query over the time of a run (Unix times and a step, in seconds), and at its end. */
export interface Recorded {
  readonly start: number
  readonly end: number
  readonly step: number
  range(expr: string): Promise<readonly { readonly metric: Labels; readonly values: readonly Value[] }[]>
  instant(expr: string): Promise<readonly { readonly metric: Labels; readonly value: Value }[]>
}

const named = (legend: string, metric: Labels): string =>
  legend.replaceAll(/\{\{([a-z_]+)\}\}/g, (_whole, label: string) => metric[label] ?? '')
const number = (text: string): number | null => (Number.isFinite(Number(text)) ? Number(text) : null)

/** A board with the answers to its queries. `$__rate_interval` is four scrapes, as Grafana has it, and 20 s at least. */
export async function pictureOf({ title, rows }: Board, recorded: Recorded): Promise<Picture> {
  const { start, end, step } = recorded
  const times = Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, index) => index * step)
  const asked = (expr: string): string => expr.replaceAll('$__rate_interval', '20s')

  async function drawn(panel: Panel): Promise<DrawnPanel> {
    const { shows, queries, unit = 'short', width = 12 } = panel
    const base = { title: panel.title, shows, unit, width, ...(panel.alarmFrom === undefined ? {} : { alarmFrom: panel.alarmFrom }) }
    /** `isAnswered`: there are series, and none has a number. A quantile of what has happened once is none. */
    const because = (isEmpty: boolean, isAnswered = false) => {
      const why = queries.map(whyEmpty).find((reason) => reason !== undefined)
      return isEmpty ? { empty: why ?? (isAnswered ? 'it has happened too seldom in this run' : 'unexpected') } : {}
    }
    if (shows === 'graph') {
      const found = await Promise.all(
        queries.map(async ({ expr, legend }) =>
          (await recorded.range(asked(expr))).map(({ metric, values }) => {
            const at = new Map(values.map(([seconds, value]) => [Math.round((seconds - start) / step), number(value)]))
            return { name: named(legend, metric), values: times.map((_, index) => at.get(index) ?? null) }
          }),
        ),
      )
      const series = found.flat().filter(({ values }) => values.some((value) => value !== null))
      return { ...base, series, ...because(series.length === 0, found.flat().length > 0) }
    }
    const samples = (await Promise.all(queries.map(({ expr }) => recorded.instant(asked(expr))))).flat()
    if (shows === 'number') {
      const series = samples.map(({ value }) => ({ name: '', values: [number(value[1])] }))
      return { ...base, series, ...because(series.length === 0) }
    }
    const labels = [...new Set(samples.flatMap(({ metric }) => Object.keys(metric)))]
    const table = {
      columns: [...labels, 'value'],
      rows: samples.map(({ metric, value }) => [...labels.map((label) => metric[label] ?? ''), value[1]]),
    }
    return { ...base, series: [], table, ...because(samples.length === 0) }
  }

  const drawnRows = []
  for (const row of rows) {
    const panels = []
    for (const panel of row.panels) panels.push(await drawn(panel))
    drawnRows.push({ title: row.title, panels })
  }
  return { title, times, rows: drawnRows }
}

/** The page that draws it, with uPlot in it: it asks nobody for anything. */
export function pictureHtml(picture: Picture): string {
  const uplot = dirname(createRequire(import.meta.url).resolve('uplot/package.json'))
  const script = readFileSync(join(uplot, 'dist/uPlot.iife.min.js'), 'utf8')
  const style = readFileSync(join(uplot, 'dist/uPlot.min.css'), 'utf8')
  const draw = readFileSync(join(import.meta.dirname, 'picture-page.js'), 'utf8')
  const own = readFileSync(join(import.meta.dirname, 'picture-page.css'), 'utf8')
  const data = JSON.stringify(picture).replaceAll('<', '\\u003c')
  return `<!doctype html><meta charset="utf-8"><title>${picture.title}</title><style>${style}${own}</style><main></main><script type="application/json" id="data">${data}</script><script>${script}</script><script>${draw}</script>`
}
