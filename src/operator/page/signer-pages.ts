import { formatWeiAsEth, solOf, wei } from '../../lib/amounts.ts'
import type { StakingSigner } from '../../resources/staking-signer.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { Shown, Target } from './facts.ts'
import { badge } from './fleet-page.ts'
import { type Child, type Html, html } from './html.ts'
import { type LaneEntry, type LaneView, lanesOf } from './lanes.ts'
import { type Drawing, durationOf, layout, linkTo, table, timeOf } from './layout.ts'
import type { RememberedEvent } from './remembered-events.ts'
import { conditionsSection, resourceHead } from './resource-page.ts'
import { standingOf } from './standing.ts'
import { priceOf, purposeInWords } from './timeline.ts'

type SignerObject = StakingSigner & KubeObject
/** A signer, with its transactions that have no outcome. */
export interface SignerView {
  readonly signer: SignerObject
  readonly records: Parameters<typeof lanesOf>[1]
  readonly events: readonly RememberedEvent[]
}

export const SIGNERS_A_PAGE = 50

const targetOf = ({ kind, metadata: { name } }: SignerObject): Target => ({ kind, namespace: '', name })
const isWhole = (text: string | undefined): text is string => text !== undefined && /^[0-9]{1,78}$/.test(text)
/** An amount of a lane in ETH or SOL. */
const coins = (inWei: string | undefined, inLamports: string | undefined): string =>
  isWhole(inWei) ? `${formatWeiAsEth(wei(BigInt(inWei)))} ETH` : inLamports === undefined ? '' : `${solOf(inLamports)} SOL`

const underWay = ({ network, openCount, waitingCount, oldestSince }: LaneView, drawing: Drawing): Html =>
  html`<div>${network}: ${openCount} open, ${waitingCount} waiting${
    oldestSince === '' ? undefined : html`; the oldest for ${timeOf(drawing, oldestSince)}`
  }</div>`

/** All signers, with their balances and what they have under way. */
export function signersPage(drawing: Drawing, views: readonly SignerView[], { page, pages }: { page: number; pages: number }): string {
  const rows = views.map((view) => ({ ...view, lanes: lanesOf(view.signer, view.records), at: standingOf(view.signer) }))
  const to = (at: number, text: string): Html => html`<a href="signers?page=${at}">${text}</a>`
  const body = html`<h1>Signers</h1>
${
  rows.length === 0
    ? html`<p>There is no StakingSigner.</p>`
    : table<(typeof rows)[number]>(
        'Signers, with what they hold and what is under way with their keys',
        [
          { head: 'Name', isName: true, cell: ({ signer }) => linkTo(drawing, targetOf(signer)) },
          { head: 'State', look: 'tight', cell: ({ at }) => badge(at.state) },
          { head: 'Why', cell: ({ at }) => (at.state === 'Ready' ? undefined : at.reason) },
          { head: 'Chain', cell: ({ signer }) => signer.spec.chain },
          { head: 'Address', cell: ({ signer }) => html`<code>${signer.spec.address}</code>` },
          { head: 'Balance', cell: ({ signer }) => signer.status?.balance },
          {
            head: 'Balance read',
            look: 'tight',
            cell: ({ signer }) =>
              signer.status?.balanceReadAt === undefined ? undefined : html`${timeOf(drawing, signer.status.balanceReadAt)} ago`,
          },
          { head: 'Transactions', cell: ({ lanes }) => lanes.map((lane) => underWay(lane, drawing)) },
        ],
        rows,
      )
}
${pages > 1 ? html`<nav class="pages" aria-label="Pages of the table">${page > 1 ? to(page - 1, 'Previous') : undefined}<span>Page ${page} of ${pages}</span>${page < pages ? to(page + 1, 'Next') : undefined}</nav>` : undefined}`
  return layout(drawing, { title: 'Signers', current: 'signers', body })
}

const ownerOf = (drawing: Drawing, { record }: LaneEntry): Child => {
  const { kind, namespace, name } = record.spec.owner
  return html`${linkTo(drawing, { kind, namespace, name })} <span class="soft">in ${namespace}</span>`
}
const lastOf = ({ record }: LaneEntry) => record.status?.attempts?.at(-1)

function openTable(drawing: Drawing, { open, openCount }: LaneView, isEthereum: boolean): Html {
  const caption = `Transactions that may land, ${isEthereum ? 'by nonce' : 'oldest first'}${open.length < openCount ? `: the first ${open.length} of ${openCount}` : ''}`
  return table<LaneEntry>(
    caption,
    [
      ...(isEthereum ? [{ head: 'Nonce', isName: true, cell: ({ record }: LaneEntry) => record.status?.place }] : []),
      { head: 'Purpose', isName: !isEthereum, cell: ({ record }) => purposeInWords(record.spec.purpose) },
      { head: 'State', look: 'tight', cell: ({ state }) => html`<span class="badge ${state}">${state}</span>` },
      { head: 'Resource', cell: (entry) => ownerOf(drawing, entry) },
      { head: 'Amount', look: 'tight', cell: ({ record }) => record.spec.amount },
      { head: 'Versions', look: 'number', cell: ({ record }) => record.status?.attempts?.length ?? 0 },
      ...(isEthereum
        ? [
            {
              head: 'Price at most',
              look: 'tight' as const,
              cell: (entry: LaneEntry) => {
                const last = lastOf(entry)
                return last === undefined ? undefined : priceOf(last)
              },
            },
          ]
        : []),
      { head: isEthereum ? 'Last hash' : 'Last signature', cell: (entry) => html`<code>${lastOf(entry)?.hash}</code>` },
      { head: 'Open for', look: 'tight', cell: ({ since }) => timeOf(drawing, since) },
    ],
    open,
  )
}

const waitingTable = (drawing: Drawing, { waiting, waitingCount }: LaneView): Html =>
  table<LaneEntry>(
    `Transactions that wait to be signed, oldest first${waiting.length < waitingCount ? `: the first ${waiting.length} of ${waitingCount}` : ''}`,
    [
      { head: 'Resource', isName: true, cell: (entry) => ownerOf(drawing, entry) },
      { head: 'Purpose', cell: ({ record }) => purposeInWords(record.spec.purpose) },
      { head: 'Amount', look: 'tight', cell: ({ record }) => record.spec.amount },
      { head: 'Waits for', look: 'tight', cell: ({ since }) => timeOf(drawing, since) },
    ],
    waiting,
  )

function laneSection(drawing: Drawing, lane: LaneView, isEthereum: boolean): Html {
  const { network, shown, oldestSince } = lane
  const pair = (label: string, value: Child): Html | undefined =>
    value === undefined || value === '' ? undefined : html`<dt>${label}</dt><dd>${value}</dd>`
  const age = oldestSince === '' ? undefined : durationOf(drawing.now.getTime() - Date.parse(oldestSince))
  return html`<section aria-labelledby="lane-${network}"><h3 id="lane-${network}">${network}</h3>
<dl>${[
    pair('Balance', coins(shown?.balanceWei, shown?.balanceLamports)),
    pair('Needed by what waits', coins(shown?.neededWei, shown?.neededLamports)),
    pair('Next nonce', shown?.nextNonce),
    pair('Open', lane.openCount),
    pair('Waiting', lane.waitingCount),
    pair('Oldest open for', age),
  ]}</dl>
${lane.open.length === 0 ? undefined : openTable(drawing, lane, isEthereum)}${lane.waiting.length === 0 ? undefined : waitingTable(drawing, lane)}</section>`
}

/** A signer, with its lanes: what may land, in order, and what waits. */
export function signerPage(drawing: Drawing, { signer, records, events }: SignerView): string {
  const lanes = lanesOf(signer, records)
  const isEthereum = signer.spec.chain === 'Ethereum'
  const body = html`${resourceHead(drawing, { target: targetOf(signer), object: signer as unknown as Shown })}
<h2 id="lanes">${isEthereum ? 'Lanes' : 'Networks'}</h2>
${lanes.length === 0 ? html`<p>Nothing is known of its networks yet.</p>` : lanes.map((lane) => laneSection(drawing, lane, isEthereum))}
${
  events.length === 0
    ? undefined
    : html`<h2 id="events">Events</h2>
<ol class="timeline">${events.map(({ type, reason, note, at }) => html`<li class="${type === 'Warning' ? 'bad' : 'plain'}"><h3>${reason}</h3><p class="soft">${timeOf(drawing, at.toISOString(), true)}</p><p>${note}</p></li>`)}</ol>`
}
${conditionsSection(drawing, signer.status?.conditions)}`
  return layout(drawing, { title: `${signer.metadata.name} · StakingSigner`, current: 'signers', body })
}
