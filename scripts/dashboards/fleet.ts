import { slo } from '../alerts/slo.ts'
import type { Board } from './board.ts'

const toBroadcast = 'staking_operator_time_to_condition_seconds_bucket{kind=~"EthereumStake|SolanaStake",condition="Broadcast"}'

/** What there is, what waits, and how long stakes take. */
export const fleet: Board = {
  uid: 'staking-fleet',
  title: 'Staking / Fleet',
  description: 'What is staked, what waits and for what, and how long it takes.',
  rows: [
    {
      title: 'At a glance',
      panels: [
        {
          shows: 'number',
          title: 'Leading instances',
          description: 'One, or nothing is signed.',
          queries: [{ expr: 'sum(staking_operator_leader)', legend: 'leaders' }],
          width: 6,
        },
        {
          shows: 'number',
          title: 'Need a person',
          description: 'Resources that are stalled.',
          queries: [{ expr: 'sum(staking_operator_stalled_resources) or vector(0)', legend: 'stalled' }],
          alarmFrom: 1,
          width: 6,
        },
        {
          shows: 'number',
          title: 'Slashed validators',
          description: 'Of EthereumStakes, also those that have left since.',
          queries: [{ expr: 'sum(staking_operator_slashed_validators) or vector(0)', legend: 'slashed' }],
          alarmFrom: 1,
          width: 6,
        },
        {
          shows: 'number',
          title: `Broadcast within ${slo.seconds / 60} minutes`,
          description: `Of the stakes of the last 24 hours. The objective is ${slo.objective * 100} %.`,
          unit: 'percentunit',
          queries: [
            {
              expr: `sum(increase(${toBroadcast.replace('}', `,le=~"${slo.seconds}([.]0)?"}`)}[24h])) / sum(increase(${toBroadcast.replace('_bucket', '_count')}[24h]))`,
              legend: 'in time',
            },
          ],
          width: 6,
        },
      ],
    },
    {
      title: 'Resources',
      panels: [
        {
          shows: 'graph',
          title: 'Resources by phase',
          description: 'All, settled or not.',
          queries: [{ expr: 'sum by (kind, phase) (staking_operator_resources)', legend: '{{kind}} {{phase}}' }],
        },
        {
          shows: 'graph',
          title: 'ETH by phase',
          description: 'What EthereumStakes and ValidatorWithdrawals are about.',
          queries: [{ expr: 'sum by (kind, network, phase) (staking_operator_amount_eth)', legend: '{{kind}} {{network}} {{phase}}' }],
        },
        {
          shows: 'graph',
          title: 'SOL by phase',
          description: 'What SolanaStakes are about.',
          queries: [{ expr: 'sum by (network, phase) (staking_operator_amount_sol)', legend: '{{network}} {{phase}}' }],
        },
        {
          shows: 'graph',
          title: 'Stalled',
          description: 'Resources that wait for a person, by reason.',
          queries: [{ expr: 'sum by (kind, reason) (staking_operator_stalled_resources)', legend: '{{kind}} {{reason}}' }],
        },
      ],
    },
    {
      title: 'Waits',
      panels: [
        {
          shows: 'table',
          title: 'What waits, and since when',
          description: 'The 50 that have waited longest, of the 500 at most that the operator names.',
          unit: 's',
          queries: [
            {
              expr: 'topk(50, max by (namespace, kind, name, type, reason) (staking_operator_resource_condition_age_seconds))',
              legend: '',
            },
          ],
          width: 24,
        },
        {
          shows: 'graph',
          title: 'Waiting, by reason',
          description: 'All resources that are not settled.',
          queries: [{ expr: 'sum by (kind, reason) (staking_operator_waiting_resources)', legend: '{{kind}} {{reason}}' }],
        },
        {
          shows: 'graph',
          title: 'The longest wait, by reason',
          description: 'Of the one that has waited longest.',
          unit: 's',
          queries: [{ expr: 'max by (kind, reason) (staking_operator_oldest_wait_seconds)', legend: '{{kind}} {{reason}}' }],
        },
      ],
    },
    {
      title: 'Time from creation',
      panels: [
        {
          shows: 'graph',
          title: 'To the broadcast',
          description: 'Half of the stakes, and nine in ten, of the last hour.',
          unit: 's',
          queries: [0.5, 0.9].map((quantile) => ({
            expr: `histogram_quantile(${quantile}, sum by (le) (increase(${toBroadcast}[1h])))`,
            legend: `${quantile * 100} %`,
          })),
        },
        {
          shows: 'graph',
          title: 'To each condition',
          description: 'Nine in ten EthereumStakes of the last day.',
          unit: 's',
          queries: [
            {
              expr: 'histogram_quantile(0.9, sum by (le, condition) (increase(staking_operator_time_to_condition_seconds_bucket{kind="EthereumStake"}[1d])))',
              legend: '{{condition}}',
            },
          ],
        },
      ],
    },
    {
      title: 'The operator',
      panels: [
        {
          shows: 'graph',
          title: 'Reconciles',
          description: 'By how they ended.',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (kind, outcome) (rate(staking_operator_reconcile_duration_seconds_count[$__rate_interval]))',
              legend: '{{kind}} {{outcome}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Wait for a worker',
          description: 'Nine in ten keys that were due.',
          unit: 's',
          queries: [
            {
              expr: 'histogram_quantile(0.9, sum by (le, kind) (rate(staking_operator_queue_wait_seconds_bucket[$__rate_interval])))',
              legend: '{{kind}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Requests to the API server',
          description: 'By status; 0 means no answer.',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (verb, status) (rate(staking_operator_kube_request_duration_seconds_count[$__rate_interval]))',
              legend: '{{verb}} {{status}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Silence of the caches',
          description: 'Time since the API server last gave a sign of life on each watch.',
          unit: 's',
          queries: [{ expr: 'max by (resource) (staking_operator_informer_silence_seconds)', legend: '{{resource}}' }],
        },
      ],
    },
  ],
}
