import type { StakingSigner, StakingSignerStatus } from '../../resources/staking-signer.ts'
import { laneOf, sinceWhen } from '../fleet-readings.ts'
import type { RecordObject } from '../transactions/store.ts'

/** A transaction without an outcome, as a lane shows it. */
export interface LaneEntry {
  readonly record: RecordObject
  readonly state: 'waiting' | 'open' | 'cancelling'
  /** When it came to where it is, RFC 3339; '' where nothing says. */
  readonly since: string
}

/** What a signer's key has under way on a network. */
export interface LaneView {
  readonly network: string
  /** As the signer's status has it: the next nonce, the balance. */
  readonly shown: NonNullable<StakingSignerStatus['lanes']>[number] | undefined
  /** By nonce, at most MOST_SHOWN. */
  readonly open: readonly LaneEntry[]
  readonly openCount: number
  /** By the time since when they wait, at most MOST_SHOWN. */
  readonly waiting: readonly LaneEntry[]
  readonly waitingCount: number
  /** Of the open one that has been open for longest, RFC 3339; '' where there is none. */
  readonly oldestSince: string
}

export const MOST_SHOWN = 50

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const entryOf = (record: RecordObject): LaneEntry => ({ record, state: laneOf(record).state, since: sinceWhen(record) })

/** The lanes of a signer: of each network that its status names or that a transaction without an outcome is for, in the order of their names. */
export function lanesOf({ status }: Pick<StakingSigner, 'status'>, records: readonly RecordObject[]): readonly LaneView[] {
  // The resource of an unclaimed one is gone: it waits for nothing.
  const byNetwork = Map.groupBy(
    records.filter(({ status }) => status?.state !== 'Unclaimed').map(entryOf),
    ({ record }) => record.spec.network,
  )
  const lanes = status?.lanes ?? []
  const networks = [...new Set([...lanes.map(({ network }) => network), ...byNetwork.keys()])].sort(compareTexts)
  return networks.map((network) => {
    const entries = byNetwork.get(network) ?? []
    const waiting = entries.filter(({ state }) => state === 'waiting').sort((a, b) => compareTexts(a.since, b.since))
    const open = entries
      .filter(({ state }) => state !== 'waiting')
      .sort((a, b) => (a.record.status?.place ?? 0) - (b.record.status?.place ?? 0) || compareTexts(a.since, b.since))
    return {
      network,
      shown: lanes.find((lane) => lane.network === network),
      open: open.slice(0, MOST_SHOWN),
      openCount: open.length,
      waiting: waiting.slice(0, MOST_SHOWN),
      waitingCount: waiting.length,
      oldestSince: open.reduce((oldest, { since }) => (oldest === '' || (since !== '' && since < oldest) ? since : oldest), ''),
    }
  })
}
