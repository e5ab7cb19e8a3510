import { formatWeiAsGwei, wei } from '../../lib/amounts.ts'
import type { Condition } from '../../resources/conditions.ts'
import type { TransactionAttempt } from '../../resources/staking-transaction.ts'
import type { RecordObject } from '../transactions/store.ts'
import type { Shown } from './facts.ts'
import type { RememberedEvent } from './remembered-events.ts'

/** Something that happened to a resource. */
export interface Moment {
  /** RFC 3339. */
  readonly at: string
  readonly title: string
  readonly detail: string
  /** A transaction's hash or signature. */
  readonly hash?: string
  readonly tone: 'plain' | 'good' | 'bad'
}

/** Of a record that is signed for again and again, the page shows the last versions. */
export const MOST_ATTEMPTS = 20
const MOST_MOMENTS = 120

/** What a transaction is for, in words. */
const purposes: Readonly<Record<string, string>> = {
  Deposit: 'Deposit',
  Exit: 'Exit request',
  Withdrawal: 'Withdrawal request',
  SolanaStake: 'Stake',
  SolanaDeactivation: 'Deactivation',
  SolanaWithdrawal: 'Withdrawal',
  SolanaAuthorization: 'Hand-over of authorities',
}
export const purposeInWords = (purpose: string): string => purposes[purpose] ?? purpose

/** What an attempt offers for a unit of gas, in gwei; '' where it has no price. */
export function priceOf({ maxFeePerGasWei, maxPriorityFeePerGasWei }: TransactionAttempt): string {
  const gwei = (text: string | undefined): string | undefined =>
    text !== undefined && /^[0-9]{1,78}$/.test(text) ? formatWeiAsGwei(wei(BigInt(text))) : undefined
  const [most, tip] = [gwei(maxFeePerGasWei), gwei(maxPriorityFeePerGasWei)]
  if (most === undefined) return ''
  return tip === undefined ? `${most} gwei` : `${most} gwei, tip ${tip}`
}

const bad: ReadonlySet<string> = new Set(['Stalled', 'Slashed', 'KeyUsedElsewhere'])
/** The two that say what is now, and Reconciling, which says no more than that. */
const passing: ReadonlySet<string> = new Set(['Reconciling'])

const ofCondition = ({ type, status, reason, message, lastTransitionTime }: Condition): readonly Moment[] =>
  status !== 'True' || passing.has(type)
    ? []
    : [{ at: lastTransitionTime, title: `${type}: ${reason}`, detail: message, tone: bad.has(type) ? 'bad' : 'good' }]

const ofAttempt = (record: RecordObject, attempt: TransactionAttempt, number: number): Moment => {
  const what = purposeInWords(record.spec.purpose)
  const price = priceOf(attempt)
  const parts = [
    attempt.nonce === undefined ? '' : `nonce ${attempt.nonce}`,
    price === '' ? '' : `at most ${price}`,
    attempt.found === true ? 'found, not made from this record' : '',
  ]
  return {
    at: attempt.at,
    title: attempt.kind === 'Cancel' ? `${what}: cancel (version ${number})` : `${what}: version ${number} written down and signed`,
    detail: parts.filter((part) => part !== '').join(', '),
    hash: attempt.hash,
    tone: attempt.kind === 'Cancel' ? 'bad' : 'plain',
  }
}

function ofRecord(record: RecordObject): readonly Moment[] {
  const { metadata, spec, status } = record
  const attempts = status?.attempts ?? []
  const first = Math.max(0, attempts.length - MOST_ATTEMPTS)
  return [
    ...(metadata.creationTimestamp === undefined
      ? []
      : [
          {
            at: metadata.creationTimestamp,
            title: `${purposeInWords(spec.purpose)}: recorded`,
            detail: `${spec.amount}, to be paid by signer ${spec.signer}`,
            tone: 'plain' as const,
          },
        ]),
    ...attempts.slice(first).map((attempt, index) => ofAttempt(record, attempt, first + index + 1)),
  ]
}

const ofEvent = ({ type, reason, note, at, count }: RememberedEvent): Moment => ({
  at: `${at.toISOString().slice(0, 19)}Z`,
  title: `Event ${reason}${count > 1 ? ` (${count} times)` : ''}`,
  detail: note,
  tone: type === 'Warning' ? 'bad' : 'plain',
})

/** What happened to a resource, oldest first: its conditions that hold, its transactions' versions, and the events that this instance has told. */
export function timelineOf(resource: Shown, records: readonly RecordObject[], events: readonly RememberedEvent[]): readonly Moment[] {
  const { creationTimestamp, deletionTimestamp } = resource.metadata
  const moments: readonly Moment[] = [
    ...(creationTimestamp === undefined ? [] : [{ at: creationTimestamp, title: 'Resource created', detail: '', tone: 'plain' as const }]),
    ...records.flatMap(ofRecord),
    ...(resource.status?.conditions ?? []).flatMap(ofCondition),
    ...events.map(ofEvent),
    ...(deletionTimestamp === undefined
      ? []
      : [{ at: deletionTimestamp, title: 'Deletion was asked for', detail: '', tone: 'bad' as const }]),
  ]
  // RFC 3339 in UTC: the texts are in the order of the times.
  return moments.toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).slice(-MOST_MOMENTS)
}
