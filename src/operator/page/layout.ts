import type { Instant } from '../../lib/clock.ts'
import type { Target } from './facts.ts'
import { type Child, Html, html } from './html.ts'
import { styleVersion } from './style.ts'

/** The instance that serves the page, and how much it knows. */
export interface Instance {
  readonly version: string
  /** Without the random part that the lease has. */
  readonly name: string
  readonly leads: boolean
  /** Who leads, as this instance has seen the lease last; undefined while nobody does, or before that. */
  readonly leader: string | undefined
  /** Plurals of the kinds of which no whole list has been taken in yet. */
  readonly unsynced: readonly string[]
  /** The annotation of the lease stops all that is signed and sent. */
  readonly suspended: boolean
  /** Since the API server last gave a sign of life on the watch that has been silent for longest; undefined before there was any. */
  readonly silentMs: number | undefined
}

/** What every page is drawn with. */
export interface Drawing {
  readonly instance: Instance
  readonly now: Instant
  /** The way from the page to the root of all pages, so that they work below a path of a proxy's. */
  readonly root: string
}

/** A watch is silent for a minute or so where nothing changes; the informer cuts one that is silent for longer than this. */
const SILENT_MS = 180_000

/** The page of a resource, from the root. */
export const pathOf = ({ kind, namespace, name }: Target): string =>
  namespace === ''
    ? `signers/${encodeURIComponent(name)}`
    : `resources/${encodeURIComponent(kind)}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`

export const linkTo = ({ root }: Pick<Drawing, 'root'>, target: Target, text: string = target.name): Html =>
  html`<a href="${root}${pathOf(target)}">${text}</a>`

const units: readonly (readonly [string, number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
]
/** A duration in its largest unit, and the next one where that says more: `3 d`, `1 h 20 min`, `45 s`. */
export function durationOf(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const at = units.findIndex(([, size]) => seconds >= size)
  const [unit, size] = units[at] ?? ['s', 1]
  const whole = Math.floor(seconds / size)
  const [next, smaller] = units[at + 1] ?? ['', 0]
  const rest = smaller === 0 || whole >= 3 ? 0 : Math.floor((seconds % size) / smaller)
  return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${next}`
}

/** A time of RFC 3339 as its distance from now, or, `exact`, as itself; what is no time is shown as it is. */
export function timeOf({ now }: Pick<Drawing, 'now'>, text: string | undefined, exact = false): Child {
  if (text === undefined || text === '') return undefined
  const at = Date.parse(text)
  if (!Number.isFinite(at)) return text
  const full = `${text.replace('T', ' ').replace(/(\.\d+)?Z$/, '')} UTC`
  const ago = durationOf(now.getTime() - at)
  return exact
    ? html`<time datetime="${text}">${full}</time> <span class="soft">(${ago} ago)</span>`
    : html`<time datetime="${text}" title="${full}">${ago}</time>`
}

export interface Column<R> {
  readonly head: string
  readonly cell: (row: R) => Child
  /** The cell that names the row. */
  readonly isName?: boolean
  readonly look?: 'tight' | 'wide' | 'any' | 'number'
}

/**
 * A table with a caption and scopes. On narrow screens the style sheet draws each row as a card, with `data-label` before each value; roles are written out,
 * since browsers drop those of a table that is not drawn as one.
 */
export function table<R>(caption: Child, columns: readonly Column<R>[], rows: Iterable<R>): Html {
  const look = (column: Column<R>): Child => (column.look === undefined ? undefined : new Html(` class="${column.look}"`))
  const cellOf = (column: Column<R>, row: R): Html =>
    column.isName === true
      ? html`<th role="rowheader" scope="row"${look(column)}>${column.cell(row)}</th>`
      : html`<td role="cell" data-label="${column.head}"${look(column)}>${column.cell(row)}</td>`
  return html`<div class="scroll"><table role="table"><caption>${caption}</caption>
<thead role="rowgroup"><tr role="row">${columns.map((column) => html`<th role="columnheader" scope="col"${look(column)}>${column.head}</th>`)}</tr></thead>
<tbody role="rowgroup">
${[...rows].map((row) => html`<tr role="row">${columns.map((column) => cellOf(column, row))}</tr>\n`)}</tbody></table></div>`
}

const placeOf = ({ leads, leader, name }: Instance): Child =>
  leads
    ? html`<strong>Leads</strong> (${name})`
    : html`<strong>Standby</strong> (${name}); ${leader === undefined ? 'nobody leads, as far as it knows' : html`${leader} leads`}`

function notices({ instance }: Drawing): readonly (Html | undefined)[] {
  const { leads, unsynced, suspended, silentMs } = instance
  return [
    suspended
      ? html`<p class="note warn">The operator is suspended by the annotation of its lease: nothing is signed and nothing is sent.</p>`
      : undefined,
    unsynced.length > 0
      ? html`<p class="note warn">The caches are being filled (${unsynced.join(', ')}): what is shown is not whole yet.</p>`
      : undefined,
    leads
      ? undefined
      : html`<p class="note">This instance is a standby. It shows what its own caches have, which follow the API server as the leader’s do; only the leader knows the events that it has told.</p>`,
    silentMs !== undefined && silentMs > SILENT_MS
      ? html`<p class="note warn">The API server has given no sign of life for ${durationOf(silentMs)} on at least one watch: what is shown may be as old.</p>`
      : undefined,
  ]
}

/** A whole page. `current`: which of the two entries of the navigation it belongs to. */
export function layout(drawing: Drawing, { title, current, body }: { title: string; current: 'fleet' | 'signers'; body: Html }): string {
  const { root, instance, now } = drawing
  const entry = (key: 'fleet' | 'signers', path: string, text: string): Html =>
    html`<li><a href="${root}${path}"${current === key ? new Html(' aria-current="page"') : undefined}>${text}</a></li>`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · staking-operator</title>
<link rel="icon" href="${root}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${root}style.css?v=${styleVersion}">
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><strong>staking-operator</strong>
<nav aria-label="Pages"><ul>${entry('fleet', './', 'Fleet')}${entry('signers', 'signers', 'Signers')}</ul></nav>
<p class="instance">${placeOf(instance)}</p></header>
<main id="main">
${notices(drawing)}
${body}
</main>
<footer><p>As of ${`${now.toISOString().slice(0, 19).replace('T', ' ')} UTC`}. This page only reads: what is shown comes from the memory of one instance of the operator, version ${instance.version}. Load it again to see what is new.</p></footer>
</body>
</html>
`.markup
}
