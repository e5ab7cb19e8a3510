import type { Alert } from './alert.ts'

/** Whether the operator works at all. */
export const leadingAlerts: readonly Alert[] = [
  {
    name: 'StakingOperatorNoLeader',
    of: 'operator',
    expr: '(sum(staking_operator_leader) or vector(0)) == 0',
    for: '2m',
    severity: 'critical',
    summary: 'No instance of the staking operator leads.',
    means:
      'No transaction is signed or followed, and no status or event is written. Transactions that were sent may still land; a fee that is too low is not raised.',
    fires: { series: { 'staking_operator_leader{pod="a"}': '0x10' }, at: '5m', labels: {} },
    silent: { series: { 'staking_operator_leader{pod="a"}': '0x10', 'staking_operator_leader{pod="b"}': '1x10' }, at: '5m' },
  },
  {
    name: 'StakingLeaderChanges',
    of: 'operator',
    expr: 'sum(changes(staking_operator_leader[30m])) > 6',
    for: '0m',
    severity: 'warning',
    summary: 'The lead of the staking operator has passed on {{ $value }} times in half an hour.',
    means: 'An instance can’t renew its lease in time, and ends each time. Nothing is lost by that; little gets done.',
    fires: { series: { 'staking_operator_leader{pod="a"}': '0 1 0 1 0 1 0 1 0 1x30' }, at: '20m', labels: {} },
    silent: { series: { 'staking_operator_leader{pod="a"}': '0x5 1x30', 'staking_operator_leader{pod="b"}': '1x5 0x30' }, at: '20m' },
  },
  {
    name: 'StakingCacheSilent',
    of: 'operator',
    expr: 'max by (resource) (staking_operator_informer_silence_seconds) > 300',
    for: '2m',
    severity: 'critical',
    summary: 'The operator has heard nothing of {{ $labels.resource }} for {{ $value | humanizeDuration }}.',
    means:
      'The API server sends a bookmark about every minute. Without them the operator works from what it knew; before each first sending it still reads past its cache.',
    fires: {
      series: { 'staking_operator_informer_silence_seconds{resource="ethereumstakes",pod="a"}': '0+60x20' },
      at: '12m',
      labels: { resource: 'ethereumstakes' },
    },
    silent: { series: { 'staking_operator_informer_silence_seconds{resource="ethereumstakes",pod="a"}': '55x20' }, at: '12m' },
  },
  {
    name: 'StakingKubeApiFailing',
    of: 'operator',
    expr: 'sum(rate(staking_operator_kube_request_duration_seconds_count{status=~"0|403|429|5.."}[10m])) / sum(rate(staking_operator_kube_request_duration_seconds_count[10m])) > 0.1',
    for: '10m',
    severity: 'warning',
    summary: "{{ $value | humanizePercentage }} of the operator's requests to the API server fail.",
    means: 'The API server is away or overloaded, or a right is missing (403).',
    fires: {
      series: {
        'staking_operator_kube_request_duration_seconds_count{verb="patch",resource="stakingtransactions",status="403"}': '0+2x40',
        'staking_operator_kube_request_duration_seconds_count{verb="get",resource="ethereumstakes",status="200"}': '0+2x40',
      },
      at: '30m',
      labels: {},
    },
    silent: {
      series: {
        'staking_operator_kube_request_duration_seconds_count{verb="patch",resource="ethereumstakes",status="409"}': '0+9x40',
        'staking_operator_kube_request_duration_seconds_count{verb="get",resource="ethereumstakes",status="200"}': '0+2x40',
      },
      at: '30m',
    },
  },
]
