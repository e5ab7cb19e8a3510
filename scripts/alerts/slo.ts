import type { Alert } from './alert.ts'

/** Share of stakes that are to be broadcast in time, and how long that is. The time is a bucket of the histogram. */
export const slo = { objective: 0.99, seconds: 600 } as const

const metric = 'staking_operator_time_to_condition_seconds'
const stakes = 'kind=~"EthereumStake|SolanaStake",condition="Broadcast"'
/** Prometheus 3 writes whole buckets with a decimal, older ones as they are. */
const inTime = `le=~"${slo.seconds}([.]0)?"`

const all = (window: string): string => `sum(increase(${metric}_count{${stakes}}[${window}]))`
const good = (window: string): string => `sum(increase(${metric}_bucket{${stakes},${inTime}}[${window}]))`
/** Budgets are burnt this many times faster than they last for the whole period. */
const burns = (factor: number, window: string): string =>
  `(1 - ${good(window)} / ${all(window)}) > ${(factor * (1 - slo.objective)).toFixed(3)}`
/** The short window ends the alert soon after the trouble has ended; of one or two late stakes alone nobody is woken. */
const lateOnes = (window: string): string => `(${all(window)} - ${good(window)}) > 2`

const series = (late: string, intime: string) => ({
  [`${metric}_bucket{kind="EthereumStake",condition="Broadcast",le="${slo.seconds}.0",pod="a"}`]: intime,
  [`${metric}_bucket{kind="EthereumStake",condition="Broadcast",le="1200.0",pod="a"}`]: late,
  [`${metric}_count{kind="EthereumStake",condition="Broadcast",pod="a"}`]: late,
})

/**
 * Burn rates of the objective over 30 days, each over a long and a short window (Site Reliability Workbook, chapter 5). Of what is not broadcast at all nothing
 * is observed: StakingWaitsTooLong tells of that.
 */
export const sloAlerts: readonly Alert[] = [
  {
    name: 'StakingBroadcastSloBurnsFast',
    of: 'operator',
    expr: [['14.4', '1h', '5m'] as const, ['6', '6h', '30m'] as const]
      .map(([factor, long, short]) => `(${burns(Number(factor), long)} and ${burns(Number(factor), short)} and ${lateOnes(long)})`)
      .join(' or '),
    for: '2m',
    severity: 'critical',
    summary:
      '{{ $value | humanizePercentage }} of the stakes of the last hours took more than ten minutes from their creation to the broadcast.',
    means:
      'The objective is that 99 % of all stakes are broadcast within ten minutes, over 30 days. At this rate what may be missed in 30 days is used up within five days, or two.',
    fires: {
      // One in five is late.
      series: series('0+5x120', '0+4x120'),
      at: '100m',
      labels: {},
    },
    silent: {
      // It was so for a quarter of an hour, more than an hour ago.
      series: series('0+5x120', '0+4x15 64+5x105'),
      at: '100m',
    },
  },
  {
    name: 'StakingBroadcastSloBurnsSlowly',
    of: 'operator',
    expr: [['3', '1d', '2h'] as const, ['1', '3d', '6h'] as const]
      .map(([factor, long, short]) => `(${burns(Number(factor), long)} and ${burns(Number(factor), short)})`)
      .join(' or '),
    for: '1h',
    severity: 'warning',
    summary:
      '{{ $value | humanizePercentage }} of the stakes of the last days took more than ten minutes from their creation to the broadcast.',
    means: 'The objective is that 99 % of all stakes are broadcast within ten minutes, over 30 days. At this rate it will be missed.',
    fires: {
      // One in fifty is late.
      series: series('0+50x170', '0+49x170'),
      at: '150m',
      labels: {},
    },
    silent: {
      // One in two hundred is late.
      series: series('0+200x170', '0+199x170'),
      at: '150m',
    },
  },
]
