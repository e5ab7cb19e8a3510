import type { Board } from './board.ts'

/** The staking service. */
export const service: Board = {
  uid: 'staking-service',
  title: 'Staking / Service',
  description: 'Requests, stakes, the tracker, the database and webhooks of the staking service.',
  rows: [
    {
      title: 'Requests',
      panels: [
        {
          shows: 'graph',
          title: 'Answers',
          description: 'By route and status.',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (method, route, status) (rate(staking_service_http_request_duration_seconds_count[$__rate_interval]))',
              legend: '{{method}} {{route}} {{status}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Time of an answer',
          description: 'Nine in ten.',
          unit: 's',
          queries: [
            {
              expr: 'histogram_quantile(0.9, sum by (le, route) (rate(staking_service_http_request_duration_seconds_bucket[$__rate_interval])))',
              legend: '{{route}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'In flight, waiting, and shed',
          description: 'Waiting: for a change of a resource. Shed: told to come again.',
          queries: [
            { expr: 'sum(staking_service_requests_in_flight)', legend: 'in flight' },
            { expr: 'sum(staking_service_requests_waiting)', legend: 'waiting' },
            { expr: 'sum(rate(staking_service_requests_shed_total[$__rate_interval]))', legend: 'shed a second' },
          ],
        },
        {
          shows: 'graph',
          title: 'Connections of the database',
          description: 'waiting: requests that wait for one.',
          queries: [{ expr: 'sum by (state) (staking_service_database_connections)', legend: '{{state}}' }],
        },
      ],
    },
    {
      title: 'Stakes',
      panels: [
        {
          shows: 'graph',
          title: 'Stakes by status',
          description: 'By network and status of their transaction. Each instance reads the same database.',
          queries: [{ expr: 'max by (network, status) (staking_service_stakes)', legend: '{{network}} {{status}}' }],
        },
        {
          shows: 'graph',
          title: 'Created and settled, by the hour',
          description: 'Stakes, and requests that came to their end.',
          queries: [
            { expr: 'sum by (network) (increase(staking_service_stakes_created_total[1h]))', legend: '{{network}} created' },
            { expr: 'sum by (network, status) (increase(staking_service_stakes_settled_total[1h]))', legend: '{{network}} {{status}}' },
            {
              expr: 'sum by (network, kind, outcome) (increase(staking_service_requests_settled_total[1h]))',
              legend: '{{network}} {{kind}} {{outcome}}',
            },
          ],
        },
        {
          shows: 'number',
          title: 'Stakes that the database does not know',
          description: 'It was restored from an older copy, or they were made elsewhere.',
          queries: [{ expr: 'max(staking_service_missing_stakes) or vector(0)', legend: 'missing' }],
          alarmFrom: 1,
          width: 6,
        },
        {
          shows: 'number',
          title: 'Known keys that were skipped',
          description: 'New validator keys that the chain knew already.',
          queries: [{ expr: 'sum(staking_service_known_keys_skipped_total) or vector(0)', legend: 'skipped' }],
          alarmFrom: 1,
          width: 6,
        },
      ],
    },
    {
      title: 'Networks and webhooks',
      panels: [
        {
          shows: 'graph',
          title: 'Lag of the tracker',
          description: 'Time since it last went through what is due.',
          unit: 's',
          queries: [
            {
              expr: 'time() - max by (network) (staking_service_tracker_last_success_timestamp_seconds)',
              legend: '{{network}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Networks that can be used',
          description: '1 or 0.',
          queries: [{ expr: 'min by (network, kind) (staking_service_network_up)', legend: '{{network}} {{kind}}' }],
        },
        {
          shows: 'graph',
          title: 'Errors of nodes',
          description: 'By what they mean.',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (network, code) (rate(staking_service_chain_errors_total[$__rate_interval]))',
              legend: '{{network}} {{code}}',
            },
          ],
        },
        {
          shows: 'graph',
          title: 'Webhooks',
          description: 'Deliveries that are not made yet, and attempts by outcome.',
          queries: [
            { expr: 'max(staking_service_webhook_deliveries_pending)', legend: 'pending' },
            {
              expr: 'sum by (outcome) (rate(staking_service_webhook_attempts_total[$__rate_interval]))',
              legend: '{{outcome}} a second',
            },
          ],
        },
      ],
    },
  ],
}
