import type { Board } from './board.ts'

/** What the operator depends on. */
export const chains: Board = {
  uid: 'staking-chains',
  title: 'Staking / Chains and API',
  description: 'The nodes of the networks and the staking API, as the operator sees them.',
  rows: [
    {
      title: 'Nodes',
      panels: [
        {
          shows: 'table',
          title: 'Asked last',
          description: '1: it failed a moment ago, is behind the others, or stands still.',
          queries: [{ expr: 'max by (network, node) (staking_operator_rpc_node_unhealthy)', legend: '' }],
          alarmFrom: 1,
        },
        {
          shows: 'graph',
          title: 'Behind the highest node',
          description: 'In blocks or slots.',
          queries: [{ expr: 'max by (network, node) (staking_operator_rpc_node_lag_blocks)', legend: '{{network}} {{node}}' }],
        },
        {
          shows: 'graph',
          title: 'Height',
          description: 'Of the block or slot that each node showed last.',
          queries: [{ expr: 'max by (network, node) (staking_operator_rpc_node_height)', legend: '{{network}} {{node}}' }],
        },
        {
          shows: 'graph',
          title: 'Disagreements and refused methods',
          description: 'Of what nodes disagree about, nothing is concluded.',
          queries: [
            {
              expr: 'sum by (network, node) (increase(staking_operator_rpc_node_disagreements_total[1h]))',
              legend: '{{network}} {{node}} disagrees',
            },
            { expr: 'max by (network, node) (staking_operator_rpc_node_refused_methods)', legend: '{{network}} {{node}} refuses' },
          ],
        },
        {
          shows: 'graph',
          title: 'Calls that fail',
          description: 'Of all calls to the nodes.',
          unit: 'percentunit',
          queries: [
            {
              expr: 'sum by (network) (rate(staking_operator_rpc_request_duration_seconds_count{outcome!="ok"}[$__rate_interval])) / sum by (network) (rate(staking_operator_rpc_request_duration_seconds_count[$__rate_interval]))',
              legend: '{{network}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Time of a call',
          description: 'Nine in ten.',
          unit: 's',
          queries: [
            {
              expr: 'histogram_quantile(0.9, sum by (le, network, method) (rate(staking_operator_rpc_request_duration_seconds_bucket[$__rate_interval])))',
              legend: '{{network}} {{method}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Staking API and configuration',
      panels: [
        {
          shows: 'graph',
          title: 'Calls to the staking API',
          description: 'By operation and outcome.',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (operation, outcome) (rate(staking_operator_staking_api_request_duration_seconds_count[$__rate_interval]))',
              legend: '{{operation}} {{outcome}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Time of a call to the staking API',
          description: 'Nine in ten.',
          unit: 's',
          queries: [
            {
              expr: 'histogram_quantile(0.9, sum by (le, operation) (rate(staking_operator_staking_api_request_duration_seconds_bucket[$__rate_interval])))',
              legend: '{{operation}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Reloads',
          description: 'Changes of mounted files, by the hour.',
          queries: [{ expr: 'sum by (file, result) (increase(staking_operator_config_reloads_total[1h]))', legend: '{{file}} {{result}}' }],
        },
        {
          shows: 'graph',
          title: 'Leadership',
          description: 'Instances that lead, and how often the lease has passed on.',
          queries: [
            { expr: 'sum(staking_operator_leader)', legend: 'leaders' },
            { expr: 'max(staking_operator_lease_transitions_total)', legend: 'transitions' },
          ],
        },
      ],
    },
  ],
}
