import { kindViews, type Shown } from './facts.ts'
import { type Entry, type FleetQuery, type FleetView, PAGE_SIZE } from './fleet-index.ts'
import { type Child, Html, html, shortened } from './html.ts'
import { type Drawing, layout, linkTo, table, timeOf } from './layout.ts'
import { standingOf, stateLabels, stateMeanings, states } from './standing.ts'

/** A row of the fleet: its entry, with the resource as the cache has it now. */
export interface FleetRow extends Entry {
  readonly object: Shown | undefined
}

const LONGEST_MESSAGE = 240
const MOST_NAMESPACES = 100

export const badge = (state: keyof typeof stateLabels): Html => html`<span class="badge ${state}">${stateLabels[state]}</span>`

/** The query of a page of the fleet, with what is not set left out. */
export function queryOf(query: Partial<FleetQuery>): string {
  const parameters = new URLSearchParams()
  for (const field of ['namespace', 'kind', 'state', 'name'] as const) if (query[field]) parameters.set(field, query[field])
  if (query.page !== undefined && query.page > 1) parameters.set('page', String(query.page))
  const text = parameters.toString()
  return text === '' ? './' : `./?${text}`
}

function counts(query: FleetQuery, view: FleetView): Html {
  const all = [...view.counts.values()].reduce((sum, count) => sum + count, 0)
  const entry = (state: string, label: Child, count: number): Html =>
    html`<li><a href="${queryOf({ ...query, state, page: 1 })}"${query.state === state ? new Html(' aria-current="true"') : undefined}>${label} <b>${count}</b></a></li>`
  return html`<ul class="counts" aria-label="Resources by state">${entry('', 'All', all)}${states
    .filter((state) => view.counts.has(state) || query.state === state)
    .map((state) => entry(state, badge(state), view.counts.get(state) ?? 0))}</ul>`
}

const option = (value: string, label: string, selected: string): Html =>
  html`<option value="${value}"${value === selected ? new Html(' selected') : undefined}>${label}</option>`

function filter(query: FleetQuery, { namespaces }: FleetView): Html {
  const isListed = namespaces.length <= MOST_NAMESPACES && (query.namespace === '' || namespaces.includes(query.namespace))
  const namespace = isListed
    ? html`<select id="namespace" name="namespace">${option('', 'All', query.namespace)}${namespaces.map((one) => option(one, one, query.namespace))}</select>`
    : html`<input id="namespace" name="namespace" value="${query.namespace}" size="18" autocomplete="off" spellcheck="false">`
  return html`<form method="get" action="./" role="search" aria-label="Filter">
<div><label for="namespace">Namespace</label>${namespace}</div>
<div><label for="kind">Kind</label><select id="kind" name="kind">${option('', 'All', query.kind)}${Object.keys(kindViews).map((kind) => option(kind, kind, query.kind))}</select></div>
<div><label for="state">State</label><select id="state" name="state">${option('', 'All', query.state)}${states.map((state) => option(state, stateLabels[state], query.state))}</select></div>
<div><label for="name">Name contains</label><input id="name" name="name" value="${query.name}" size="18" autocomplete="off" spellcheck="false"></div>
<button>Filter</button></form>`
}

function pages(query: FleetQuery, { page, pages: count }: FleetView): Html | undefined {
  if (count === 1) return undefined
  const to = (at: number, text: string, rel: string): Html => html`<a href="${queryOf({ ...query, page: at })}" rel="${rel}">${text}</a>`
  return html`<nav class="pages" aria-label="Pages of the table">${page > 1 ? to(page - 1, 'Previous', 'prev') : undefined}<span>Page ${page} of ${count}</span>${page < count ? to(page + 1, 'Next', 'next') : undefined}</nav>`
}

/** What a row says of its resource. One that can't be read, whatever somebody has made of it, must not keep the others from being seen. */
function told({ kind, object }: FleetRow) {
  const nothing = { network: '', amount: '', phase: '', reason: '', message: '' }
  if (object === undefined) return { ...nothing, message: 'It is gone.' }
  const { reason, message } = standingOf(object)
  const phase = object.status?.phase ?? ''
  try {
    return { ...nothing, ...kindViews[kind]?.summary(object), phase, reason, message }
  } catch {
    return { ...nothing, phase, reason, message: `Its spec can't be read. ${message}` }
  }
}

/** The fleet as a table, with what it can be filtered by. */
export function fleetPage(drawing: Drawing, query: FleetQuery, view: FleetView, rows: readonly FleetRow[]): string {
  const first = (view.page - 1) * PAGE_SIZE + 1
  const caption =
    view.total === 0 ? 'No resource' : `Resources ${first} to ${first + rows.length - 1} of ${view.total}; what needs somebody comes first`
  const shown = rows.map((row) => ({ ...row, ...told(row) }))
  const body = html`<h1>Fleet</h1>
${counts(query, view)}
${filter(query, view)}
<h2 id="resources">Resources</h2>
${
  view.total === 0
    ? html`<p>Nothing matches. <a href="./">Show all</a>.</p>`
    : table(
        caption,
        [
          { head: 'Name', isName: true, cell: (row) => linkTo(drawing, row) },
          { head: 'Namespace', look: 'any', cell: ({ namespace }) => namespace },
          { head: 'Kind', cell: ({ kind }) => kind },
          {
            head: 'State',
            look: 'tight',
            cell: ({ state, phase }) =>
              html`${badge(state)}${phase === '' || phase === stateLabels[state] ? undefined : html`<br><span class="soft">${phase}</span>`}`,
          },
          { head: 'Network', cell: ({ network }) => network },
          { head: 'Amount', cell: ({ amount }) => amount },
          {
            head: 'Why',
            look: 'wide',
            cell: ({ reason, message, state }) =>
              reason === '' && message === ''
                ? undefined
                : html`<b>${reason}</b>${state === 'Ready' || message === '' ? undefined : html`<br>${shortened(message, LONGEST_MESSAGE)}`}`,
          },
          { head: 'Age', look: 'tight', cell: ({ object }) => timeOf(drawing, object?.metadata.creationTimestamp) },
        ],
        shown,
      )
}
${pages(query, view)}
<h2>What the states mean</h2>
<dl>${states.map((state) => html`<dt>${badge(state)}</dt><dd>${stateMeanings[state]}</dd>`)}</dl>`
  return layout(drawing, { title: 'Fleet', current: 'fleet', body })
}
