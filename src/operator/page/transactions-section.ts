import type { ClosedPlace, TransactionAttempt } from '../../resources/staking-transaction.ts'
import type { RecordObject } from '../transactions/store.ts'
import { type Child, type Html, html } from './html.ts'
import { type Drawing, linkTo, table, timeOf } from './layout.ts'
import { MOST_ATTEMPTS, priceOf, purposeInWords } from './timeline.ts'

const code = (text: string): Html => html`<code>${text}</code>`
const pair = (label: string, value: Child): Html | undefined =>
  value === undefined || value === '' ? undefined : html`<dt>${label}</dt><dd>${value}</dd>`

const stateOf = ({ status }: RecordObject): string => status?.state ?? 'Waiting'

const closedBy: Readonly<Record<ClosedPlace['by'], string>> = {
  Cancel: 'its own cancel',
  Revert: 'it was reverted',
  Foreign: 'a transaction that the log does not know',
  Dropped: 'the consensus layer dropped it',
  Expired: 'it has expired',
  Unrelated: 'a transaction that does something else',
}

function versions(drawing: Drawing, { spec, status }: RecordObject): Html | undefined {
  const attempts = status?.attempts ?? []
  if (attempts.length === 0) return undefined
  const first = Math.max(0, attempts.length - MOST_ATTEMPTS)
  const isEthereum = spec.chain === 'Ethereum'
  const caption = `Versions of it that were signed, oldest first${first === 0 ? '' : `; the ${first} before these are not shown`}`
  const landed = status?.outcome?.hash
  return table<{ readonly attempt: TransactionAttempt; readonly number: number }>(
    caption,
    [
      { head: 'Version', isName: true, cell: ({ number, attempt }) => `${number}${attempt.kind === 'Cancel' ? ' (cancel)' : ''}` },
      ...(isEthereum
        ? [
            { head: 'Nonce', look: 'number' as const, cell: ({ attempt }: { attempt: TransactionAttempt }) => attempt.nonce },
            { head: 'Price at most', look: 'tight' as const, cell: ({ attempt }: { attempt: TransactionAttempt }) => priceOf(attempt) },
          ]
        : [
            {
              head: 'Last valid block',
              look: 'number' as const,
              cell: ({ attempt }: { attempt: TransactionAttempt }) => attempt.lastValidBlockHeight,
            },
          ]),
      {
        head: isEthereum ? 'Hash' : 'Signature',
        cell: ({ attempt }) =>
          html`${code(attempt.hash)}${attempt.hash === landed ? html` <span class="badge Ready">landed</span>` : undefined}`,
      },
      { head: 'Written down', cell: ({ attempt }) => timeOf(drawing, attempt.at, true) },
    ],
    attempts.slice(first).map((attempt, index) => ({ attempt, number: first + index + 1 })),
  )
}

function closedPlaces({ spec, status }: RecordObject): Html | undefined {
  const closed = (status?.closed ?? []).slice(-MOST_ATTEMPTS)
  if (closed.length === 0) return undefined
  return table<ClosedPlace>(
    'Earlier places, and what closed each',
    [
      {
        head: spec.chain === 'Ethereum' ? 'Nonce' : 'Version',
        isName: true,
        cell: ({ nonce }) => (spec.chain === 'Ethereum' ? nonce : nonce + 1),
      },
      { head: 'Closed by', cell: ({ by, failure }) => `${closedBy[by]}${failure === undefined ? '' : `: ${failure}`}` },
      { head: 'Hash', cell: ({ hash }) => code(hash) },
      { head: spec.chain === 'Ethereum' ? 'Block' : 'Slot', look: 'number', cell: ({ blockNumber }) => blockNumber },
    ],
    closed,
  )
}

function one(drawing: Drawing, record: RecordObject): Html {
  const { metadata, spec, status } = record
  const outcome = status?.outcome
  const isEthereum = spec.chain === 'Ethereum'
  return html`<section aria-labelledby="${metadata.name}"><h3 id="${metadata.name}">${purposeInWords(spec.purpose)}: ${stateOf(record)}</h3>
<dl>${[
    pair('StakingTransaction', code(metadata.name)),
    pair('Amount', spec.amount),
    pair('Network', spec.network),
    pair('Signer', linkTo(drawing, { kind: 'StakingSigner', namespace: '', name: spec.signer })),
    pair('From', code(spec.from)),
    pair('Nonce in use', isEthereum && outcome === undefined ? status?.place : undefined),
    pair('Outcome', outcome === undefined ? undefined : `${outcome.is} in ${isEthereum ? 'block' : 'slot'} ${outcome.blockNumber}`),
    pair(isEthereum ? 'Hash' : 'Signature', outcome === undefined ? undefined : code(outcome.hash)),
    pair('Held', status?.held),
  ]}</dl>
${versions(drawing, record)}${closedPlaces(record)}</section>`
}

/** The transactions of a resource, as the log has them, with every version that was signed. */
export const transactionsSection = (drawing: Drawing, records: readonly RecordObject[]): Html =>
  html`<h2 id="transactions">Transactions</h2>
${records.length === 0 ? html`<p>There is none: nothing was ever signed for it.</p>` : records.map((record) => one(drawing, record))}`
