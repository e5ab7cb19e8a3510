import type { StakeAuthority } from '../../../resources/staking-transaction.ts'
import { type RecordObject, recordOf } from '../store.ts'
import { liveAttempts } from './rules.ts'

/**
 * Who has the authorities of a stake account now, by the log: those that it was made with, until a SolanaAuthorization has landed. What somebody has changed on
 * the chain by other means is not in the log, and is nobody's authority here.
 */
export interface HandedOver {
  /** Undefined where it never changed hands. */
  readonly stake: StakeAuthority | undefined
  readonly withdraw: StakeAuthority | undefined
  /** Slot of the last hand-over that landed; undefined where there was none. */
  readonly slot: number | undefined
  /** One that may land: until that is certain nothing else is signed for the stake. */
  readonly open: RecordObject | undefined
}

const isOpen = (record: RecordObject): boolean => record.status?.outcome === undefined && liveAttempts(recordOf(record)).length > 0

/** Of the records about one stake account. */
export function handedOver(records: readonly RecordObject[]): HandedOver {
  const own = records.filter(({ spec }) => spec.purpose === 'SolanaAuthorization')
  const landed = own
    .filter(({ status }) => status?.outcome?.is === 'Landed')
    .toSorted((a, b) => slotOf(a) - slotOf(b) || (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''))
  const last = (role: 'stakeAuthority' | 'withdrawAuthority'): StakeAuthority | undefined =>
    landed.map(({ spec }) => spec.handOver?.to[role]).findLast((to) => to !== undefined)
  const end = landed.at(-1)
  return {
    stake: last('stakeAuthority'),
    withdraw: last('withdrawAuthority'),
    slot: end === undefined ? undefined : slotOf(end),
    open: own.find(isOpen),
  }
}

const slotOf = ({ status }: RecordObject): number => status?.outcome?.blockNumber ?? 0

/** What a hand-over that may have landed would make of the authorities: seen on the chain, that is no surprise. */
export const expectedOf = (open: RecordObject | undefined): { readonly stake?: string; readonly withdraw?: string } => {
  const { stakeAuthority, withdrawAuthority } = open?.spec.handOver?.to ?? {}
  return {
    ...(stakeAuthority === undefined ? {} : { stake: stakeAuthority.address }),
    ...(withdrawAuthority === undefined ? {} : { withdraw: withdrawAuthority.address }),
  }
}
