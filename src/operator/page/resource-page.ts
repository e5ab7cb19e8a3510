import type { Condition } from '../../resources/conditions.ts'
import type { RecordObject } from '../transactions/store.ts'
import { type Fact, kindViews, type Shown, type Target } from './facts.ts'
import { badge } from './fleet-page.ts'
import { type Child, type Html, html, shortened } from './html.ts'
import { type Drawing, layout, linkTo, table, timeOf } from './layout.ts'
import type { RememberedEvent } from './remembered-events.ts'
import { type State, standingOf } from './standing.ts'
import { type Moment, timelineOf } from './timeline.ts'
import { transactionsSection } from './transactions-section.ts'

/** What is shown of one resource. */
export interface ResourceView {
  readonly target: Target
  readonly object: Shown
  /** Its transactions, oldest first. */
  readonly records: readonly RecordObject[]
  readonly events: readonly RememberedEvent[]
}

const LONGEST = 4_000
const tones: Readonly<Partial<Record<State, string>>> = {
  Slashed: ' bad',
  Stalled: ' bad',
  Waiting: ' warn',
  Deleting: ' warn',
  Ready: ' good',
}

/** What is known of it; empty where its spec can't be read, whatever somebody has made of it. */
function factsOf({ target: { kind }, object }: Pick<ResourceView, 'target' | 'object'>): readonly Fact[] {
  try {
    return (kindViews[kind]?.facts(object) ?? []).filter((fact) => fact !== undefined)
  } catch {
    return []
  }
}

function factValue(drawing: Drawing, { value, isCode, isTime, target }: Fact): Child {
  if (target !== undefined) return linkTo(drawing, target, value)
  if (isTime === true) return timeOf(drawing, value, true)
  return isCode === true ? html`<code>${value}</code>` : value
}

/** The head of a resource's page: what it is, where it stands, and what to know of it. */
export function resourceHead(drawing: Drawing, view: Pick<ResourceView, 'target' | 'object'>): Html {
  const { target, object } = view
  const { state, reason, message } = standingOf(object)
  const { creationTimestamp } = object.metadata
  return html`<h1>${target.kind} ${target.name}</h1>
<div class="note${tones[state] ?? ''}"><p>${badge(state)} <b>${reason}</b></p>${message === '' ? undefined : html`<p>${shortened(message, LONGEST)}</p>`}</div>
<dl>${target.namespace === '' ? undefined : html`<dt>Namespace</dt><dd>${target.namespace}</dd>`}${
    object.status?.phase === undefined ? undefined : html`<dt>Phase</dt><dd>${object.status.phase}</dd>`
  }${factsOf(view).map((fact) => html`<dt>${fact.label}</dt><dd>${factValue(drawing, fact)}</dd>`)}<dt>Created</dt><dd>${timeOf(drawing, creationTimestamp, true)}</dd></dl>`
}

const momentOf = (drawing: Drawing, { at, title, detail, hash, tone }: Moment): Html =>
  html`<li class="${tone}"><h3>${title}</h3><p class="soft">${timeOf(drawing, at, true)}</p>${detail === '' ? undefined : html`<p>${shortened(detail, LONGEST)}</p>`}${
    hash === undefined ? undefined : html`<p><code>${hash}</code></p>`
  }</li>\n`

export const conditionsSection = (drawing: Drawing, conditions: readonly Condition[] | undefined): Html =>
  html`<h2 id="conditions">Conditions</h2>
${
  conditions === undefined || conditions.length === 0
    ? html`<p>There is none yet.</p>`
    : table<Condition>(
        'Conditions as they are now',
        [
          { head: 'Condition', isName: true, cell: ({ type }) => type },
          { head: 'Status', look: 'tight', cell: ({ status }) => status },
          { head: 'Reason', cell: ({ reason }) => reason },
          { head: 'Message', look: 'wide', cell: ({ message }) => shortened(message, LONGEST) },
          { head: 'Status since', cell: ({ lastTransitionTime }) => timeOf(drawing, lastTransitionTime, true) },
        ],
        conditions,
      )
}`

/** A resource with its timeline, its conditions and its transactions. */
export function resourcePage(drawing: Drawing, view: ResourceView): string {
  const { target, object, records, events } = view
  const moments = timelineOf(object, records, events)
  const body = html`${resourceHead(drawing, view)}
<h2 id="timeline">Timeline</h2>
<ol class="timeline">
${moments.map((moment) => momentOf(drawing, moment))}</ol>
<p class="soft">Oldest first. Of events it has those that this instance has told since it leads; <code>kubectl events -n ${target.namespace} --for ${target.kind.toLowerCase()}/${target.name}</code> shows what the API server still has.</p>
${transactionsSection(drawing, records)}
${conditionsSection(drawing, object.status?.conditions)}`
  return layout(drawing, { title: `${target.name} · ${target.kind}`, current: 'fleet', body })
}

/** What is answered where there is no such page. */
export const missingPage = (drawing: Drawing): string =>
  layout(drawing, {
    title: 'Not there',
    current: 'fleet',
    body: html`<h1>There is no such page</h1>
<p>The resource is not in the caches of this instance: it was deleted, or its name is another. <a href="${drawing.root}./">To the fleet</a>.</p>`,
  })
