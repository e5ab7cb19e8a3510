import { type Alert, grown } from './alert.ts'

/** What the operator depends on: nodes and the staking API. */
export const surroundingAlerts: readonly Alert[] = [
  {
    name: 'StakingNodeUnhealthy',
    of: 'operator',
    expr: 'max by (network, node) (staking_operator_rpc_node_unhealthy) == 1',
    for: '15m',
    severity: 'warning',
    summary: 'Node {{ $labels.node }} of {{ $labels.network }} has failed, lagged or stood still for a quarter of an hour.',
    means: 'It is asked last. What every configured node must confirm (another transaction after one that was lost) waits for it.',
    fires: {
      series: { 'staking_operator_rpc_node_unhealthy{network="hoodi",node="2",pod="a"}': '1x30' },
      at: '20m',
      labels: { network: 'hoodi', node: '2' },
    },
    silent: { series: { 'staking_operator_rpc_node_unhealthy{network="hoodi",node="2",pod="a"}': '1 0x30' }, at: '20m' },
  },
  {
    name: 'StakingNetworkUnreachable',
    of: 'operator',
    expr: 'sum by (network) (rate(staking_operator_rpc_request_duration_seconds_count[5m])) > 0 unless sum by (network) (rate(staking_operator_rpc_request_duration_seconds_count{outcome="ok"}[5m])) > 0',
    for: '5m',
    severity: 'critical',
    summary: 'No node of {{ $labels.network }} answers.',
    means: 'Nothing of this network is signed, sent or followed. Resources say `ChainUnavailable`.',
    fires: {
      series: {
        'staking_operator_rpc_request_duration_seconds_count{network="hoodi",method="eth_getBlockByNumber",outcome="ok"}': '100x30',
        'staking_operator_rpc_request_duration_seconds_count{network="hoodi",method="eth_getBlockByNumber",outcome="unreachable"}':
          '0+10x30',
      },
      at: '20m',
      labels: { network: 'hoodi' },
    },
    silent: {
      series: {
        'staking_operator_rpc_request_duration_seconds_count{network="hoodi",method="eth_getBlockByNumber",outcome="ok"}': '100+1x30',
        'staking_operator_rpc_request_duration_seconds_count{network="hoodi",method="eth_getBlockByNumber",outcome="unreachable"}':
          '0+10x30',
      },
      at: '20m',
    },
  },
  {
    name: 'StakingNodesDisagree',
    of: 'operator',
    expr: grown('staking_operator_rpc_node_disagreements_total', 'network, node', '15m'),
    for: '0m',
    severity: 'warning',
    summary: 'Node {{ $labels.node }} of {{ $labels.network }} shows another chain than the others.',
    means:
      'One of them is on a fork, stuck, or lies. What they disagree about is not concluded (`NodesDisagree`); a reorg of a block or two does this for a moment.',
    fires: {
      series: { 'staking_operator_rpc_node_disagreements_total{network="hoodi",node="1"}': '0x5 1x20' },
      at: '10m',
      labels: { network: 'hoodi', node: '1' },
    },
    silent: { series: { 'staking_operator_rpc_node_disagreements_total{network="hoodi",node="1"}': '1x60' }, at: '40m' },
  },
  {
    name: 'StakingApiFailing',
    of: 'operator',
    expr: 'sum(rate(staking_operator_staking_api_request_duration_seconds_count{outcome!="ok"}[10m])) / sum(rate(staking_operator_staking_api_request_duration_seconds_count[10m])) > 0.5',
    for: '10m',
    severity: 'critical',
    summary: '{{ $value | humanizePercentage }} of the calls to the staking API fail.',
    means:
      'No stake is created and nothing new is sent, because each transaction is reported to the API first. Resources show `ServiceUnavailable`, or the reason of the refusal.',
    fires: {
      series: {
        'staking_operator_staking_api_request_duration_seconds_count{operation="createEthereumStake",outcome="ok"}': '10x40',
        'staking_operator_staking_api_request_duration_seconds_count{operation="createEthereumStake",outcome="network"}': '0+5x40',
      },
      at: '30m',
      labels: {},
    },
    silent: {
      series: {
        'staking_operator_staking_api_request_duration_seconds_count{operation="createEthereumStake",outcome="ok"}': '10+9x40',
        'staking_operator_staking_api_request_duration_seconds_count{operation="createEthereumStake",outcome="network"}': '0+5x40',
      },
      at: '30m',
    },
  },
  {
    name: 'StakingRemoteSignerFailing',
    of: 'operator',
    expr: 'sum by (signer) (rate(staking_operator_remote_signer_request_duration_seconds_count{outcome!="ok"}[10m])) > 0 unless sum by (signer) (rate(staking_operator_remote_signer_request_duration_seconds_count{outcome="ok"}[10m])) > 0',
    for: '10m',
    severity: 'critical',
    summary: 'The remote signer {{ $labels.signer }} signs nothing.',
    means: 'Nothing new is signed with its key. Resources say `SignerUnavailable`, `SignerRefused` or `SignerMisbehaves`.',
    fires: {
      series: {
        'staking_operator_remote_signer_request_duration_seconds_count{signer="hot",operation="sign",outcome="ok"}': '9x40',
        'staking_operator_remote_signer_request_duration_seconds_count{signer="hot",operation="probe",outcome="unavailable"}': '0+1x40',
      },
      at: '30m',
      labels: { signer: 'hot' },
    },
    silent: {
      series: {
        'staking_operator_remote_signer_request_duration_seconds_count{signer="hot",operation="probe",outcome="ok"}': '9+1x40',
        'staking_operator_remote_signer_request_duration_seconds_count{signer="hot",operation="probe",outcome="unavailable"}': '0+1x40',
      },
      at: '30m',
    },
  },
  {
    name: 'StakingRemoteSignerMisbehaves',
    of: 'operator',
    expr: grown('staking_operator_remote_signer_request_duration_seconds_count{outcome="misbehaves"}', 'signer', '1h'),
    for: '0m',
    severity: 'critical',
    summary: 'The remote signer {{ $labels.signer }} has signed something else than it was asked to.',
    means:
      'It was thrown away: nothing of it was written down or sent. Somebody else may be answering in its place, or it is set up for another chain.',
    fires: {
      series: {
        'staking_operator_remote_signer_request_duration_seconds_count{signer="hot",operation="sign",outcome="misbehaves"}': '_x5 1x20',
      },
      at: '10m',
      labels: { signer: 'hot' },
    },
    silent: {
      series: {
        'staking_operator_remote_signer_request_duration_seconds_count{signer="hot",operation="sign",outcome="misbehaves"}': '1x180',
      },
      at: '150m',
    },
  },
]
