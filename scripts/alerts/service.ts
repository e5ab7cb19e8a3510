import { type Alert, grown } from './alert.ts'

/** The staking service. */
export const serviceAlerts: readonly Alert[] = [
  {
    name: 'StakingServiceNetworkDown',
    of: 'service',
    expr: 'min by (network, kind) (staking_service_network_up) == 0',
    for: '5m',
    severity: 'critical',
    summary: 'The staking service can’t use the {{ $labels.kind }} nodes of {{ $labels.network }}.',
    means: 'What needs them answers 503 `chain-unavailable`; everything else goes on.',
    fires: {
      series: { 'staking_service_network_up{network="hoodi",kind="beacon",pod="a"}': '0x20' },
      at: '8m',
      labels: { network: 'hoodi', kind: 'beacon' },
    },
    silent: { series: { 'staking_service_network_up{network="hoodi",kind="beacon",pod="a"}': '1x20' }, at: '8m' },
  },
  {
    name: 'StakingServiceKnownKey',
    of: 'service',
    expr: grown('staking_service_known_keys_skipped_total', 'network', '1h'),
    for: '0m',
    severity: 'critical',
    summary: 'The staking service came upon a validator key of its own on {{ $labels.network }} that is in use already.',
    means: 'Its database was restored from an older copy, or the seed is used elsewhere. The key was not handed out.',
    fires: {
      series: { 'staking_service_known_keys_skipped_total{network="hoodi"}': '_x10 1x10' },
      at: '12m',
      labels: { network: 'hoodi' },
    },
    silent: { series: { 'staking_service_known_keys_skipped_total{network="hoodi"}': '3x120' }, at: '90m' },
  },
  {
    name: 'StakingServiceMissingStakes',
    of: 'service',
    expr: 'max by (network) (staking_service_missing_stakes) > 0',
    for: '5m',
    severity: 'critical',
    summary: '{{ $value }} deposits on {{ $labels.network }} are stakes that the service’s database does not know.',
    means:
      'The database was restored from an older copy. Their keys can be derived again from the seed; the service does not do that without you.',
    fires: { series: { 'staking_service_missing_stakes{network="hoodi",pod="a"}': '2x20' }, at: '8m', labels: { network: 'hoodi' } },
    silent: { series: { 'staking_service_missing_stakes{network="hoodi",pod="a"}': '0x20' }, at: '8m' },
  },
  {
    name: 'StakingServiceTrackerBehind',
    of: 'service',
    expr: 'time() - max by (network) (staking_service_tracker_last_success_timestamp_seconds) > 600',
    for: '5m',
    severity: 'warning',
    summary: 'The staking service has not followed the transactions of {{ $labels.network }} for {{ $value | humanizeDuration }}.',
    means: 'What it says of transactions and validators is old. The operator looks at the chain itself.',
    fires: {
      series: { 'staking_service_tracker_last_success_timestamp_seconds{network="hoodi",pod="a"}': '0x30' },
      at: '20m',
      labels: { network: 'hoodi' },
    },
    silent: { series: { 'staking_service_tracker_last_success_timestamp_seconds{network="hoodi",pod="a"}': '0+60x30' }, at: '20m' },
  },
  {
    name: 'StakingServiceErrors',
    of: 'service',
    expr: 'sum(rate(staking_service_http_request_duration_seconds_count{status=~"5.."}[10m])) / sum(rate(staking_service_http_request_duration_seconds_count[10m])) > 0.05',
    for: '10m',
    severity: 'critical',
    summary: '{{ $value | humanizePercentage }} of the answers of the staking service are errors of its own.',
    means: '503 is its database, a network or too many requests at a time; 500 is a fault of its own, with its cause in the log.',
    fires: {
      series: {
        'staking_service_http_request_duration_seconds_count{method="POST",route="/v1/ethereum/stakes",status="503"}': '0+1x40',
        'staking_service_http_request_duration_seconds_count{method="POST",route="/v1/ethereum/stakes",status="201"}': '0+9x40',
      },
      at: '30m',
      labels: {},
    },
    silent: {
      series: {
        'staking_service_http_request_duration_seconds_count{method="POST",route="/v1/ethereum/stakes",status="409"}': '0+9x40',
        'staking_service_http_request_duration_seconds_count{method="POST",route="/v1/ethereum/stakes",status="201"}': '0+9x40',
      },
      at: '30m',
    },
  },
  {
    name: 'StakingServiceWebhooksBehind',
    of: 'service',
    expr: 'max(staking_service_webhook_deliveries_pending) > 1000',
    for: '30m',
    severity: 'warning',
    summary: '{{ $value }} webhook deliveries wait.',
    means: 'An endpoint is away or slow. Nothing is lost: each is tried again, for three days.',
    fires: { series: { 'staking_service_webhook_deliveries_pending{pod="a"}': '2000x60' }, at: '40m', labels: {} },
    silent: { series: { 'staking_service_webhook_deliveries_pending{pod="a"}': '2000x20 10x40' }, at: '40m' },
  },
]
