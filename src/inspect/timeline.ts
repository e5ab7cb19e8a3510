import type { Condition } from '../resources/conditions.ts'
import type { StakingTransaction } from '../resources/staking-transaction.ts'
import { resultOf } from './audit-trail.ts'
import type { Column } from './output.ts'

/** One line of a resource's life. */
export interface Moment {
  /** RFC 3339. */
  readonly at: string
  readonly what: string
  /** For people. */
  readonly text: string
  readonly isWarning: boolean
}

/** As far as a timeline looks into a resource. */
export interface Lived {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid: string
    readonly creationTimestamp?: string
    readonly deletionTimestamp?: string
  }
  readonly status?: { readonly phase?: string; readonly conditions?: readonly Condition[] }
}

export interface LivedEvent {
  readonly type?: string
  readonly reason?: string
  readonly note?: string
  readonly eventTime?: string | null
  readonly metadata: { readonly creationTimestamp?: string }
  readonly regarding?: { readonly kind: string; readonly name: string; readonly uid?: string }
  readonly series?: { readonly count: number; readonly lastObservedTime: string }
}

/** Conditions that only say that work goes on, or that repeat what others say. */
const passing = new Set(['Reconciling', 'Stalled'])

/** A resource's life, the oldest first: what it is for people, of conditions, transactions and events. */
export function timeline(resource: Lived, records: readonly StakingTransaction[], events: readonly LivedEvent[]): readonly Moment[] {
  const { creationTimestamp, deletionTimestamp } = resource.metadata
  const moments: Moment[] = []
  const add = (at: string | undefined | null, what: string, text: string, isWarning = false) => {
    if (at !== undefined && at !== null && at !== '') moments.push({ at, what, text, isWarning })
  }
  add(creationTimestamp, 'Created', `${resource.kind} was applied`)
  add(deletionTimestamp, 'Deleted', 'deletion was asked for')
  for (const { type, status, reason, message, lastTransitionTime } of resource.status?.conditions ?? [])
    if (status !== 'Unknown' && (!passing.has(type) || status === 'True'))
      add(lastTransitionTime, `${type}=${status}`, `${reason}: ${message}`, type === 'Stalled' || type === 'Slashed')
  for (const record of records) momentsOf(record, add)
  for (const { type, reason, note, eventTime, series, metadata } of events)
    add(
      series?.lastObservedTime ?? eventTime ?? metadata.creationTimestamp,
      type === 'Warning' ? 'Warning' : 'Event',
      `${reason ?? ''}: ${note ?? ''}${series === undefined ? '' : ` (${series.count} times)`}`,
      type === 'Warning',
    )
  return moments.sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
}

function momentsOf(
  record: StakingTransaction,
  add: (at: string | undefined, what: string, text: string, isWarning?: boolean) => void,
): void {
  const { spec, metadata, status } = record
  add(
    metadata.creationTimestamp,
    spec.purpose,
    `${spec.amount} by ${spec.signer} on ${spec.network} is in the transaction log as ${metadata.name}`,
  )
  for (const attempt of status?.attempts ?? []) {
    const { result, block } = resultOf(record, attempt)
    const place = attempt.nonce === undefined ? '' : ` with nonce ${attempt.nonce}`
    const came = result === 'Open' ? 'it may land yet' : `${result}${block === undefined ? '' : ` in block ${block}`}`
    add(
      attempt.at,
      attempt.kind === 'Cancel' ? 'Cancel' : 'Signed',
      `${attempt.hash}${place}: ${came}`,
      result === 'Reverted' || result === 'FrontRun' || result === 'NonceUsedElsewhere',
    )
  }
}

export const timelineColumns: readonly Column<Moment>[] = [
  { title: 'TIME', cell: ({ at }) => at.replace(/\.\d+Z$/, 'Z') },
  { title: 'WHAT', cell: ({ what }) => what },
  { title: 'DETAIL', cell: ({ text }) => text },
]
