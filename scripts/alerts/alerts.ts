import type { reasons } from '../../src/resources/reasons.ts'

/** One alert, with what a person does about it and the series that prove that it fires, and that it stays silent. */
export interface Alert {
  readonly name: string
  readonly of: 'operator' | 'service'
  readonly expr: string
  /** How long it must hold, as Prometheus writes it. */
  readonly for: string
  /** `critical`: wake somebody up. `warning`: look at it in the morning. */
  readonly severity: 'critical' | 'warning'
  /** What has happened, with the labels of the series. */
  readonly summary: string
  readonly means: string
  readonly todo: readonly string[]
  /** Series by their name and labels, in promtool's notation, a value a minute. `at`: when it is looked at. */
  readonly fires: {
    readonly series: Readonly<Record<string, string>>
    readonly at: string
    readonly labels: Readonly<Record<string, string>>
  }
  readonly silent: { readonly series: Readonly<Record<string, string>>; readonly at: string }
}

/** Stalls in which money is in question, not a mistake in a manifest. */
export const moneyInQuestion = [
  'VerificationFailed',
  'PubkeyAlreadyDeposited',
  'FrontRun',
  'DoneElsewhere',
  'UnknownSubmission',
  'RemadeTooOften',
  'UnaccountedTransactions',
] as const satisfies readonly (keyof typeof reasons)[]
const inQuestion = moneyInQuestion.join('|')

/** Grown within a while, also where the counter has only come to be: `increase` of a series that begins with 1 is 0. */
const grown = (counter: string, by: string, within: string): string =>
  `sum by (${by}) (increase(${counter}[${within}])) > 0 or (sum by (${by}) (${counter}) > 0 unless sum by (${by}) (${counter} offset ${within}))`

export const alerts: readonly Alert[] = [
  {
    name: 'StakingOperatorNoLeader',
    of: 'operator',
    expr: '(sum(staking_operator_leader) or vector(0)) == 0',
    for: '2m',
    severity: 'critical',
    summary: 'No instance of the staking operator leads.',
    means: 'Nothing is signed, followed or told. Transactions that were sent go on by themselves; a fee that is too low is not raised.',
    todo: [
      '`kubectl -n staking-system get pods,lease`: is a pod there, is it ready, and who holds the lease?',
      'A pod that is not ready says which cache it waits for at `/readyz`; one that ends says why in its last line.',
      '`OutdatedCRD` in the log: apply the CRDs of the version that runs.',
    ],
    fires: { series: { 'staking_operator_leader{pod="a"}': '0x10' }, at: '5m', labels: {} },
    silent: { series: { 'staking_operator_leader{pod="a"}': '0x10', 'staking_operator_leader{pod="b"}': '1x10' }, at: '5m' },
  },
  {
    name: 'StakingMoneyInQuestion',
    of: 'operator',
    expr: `max by (kind, reason) (staking_operator_stalled_resources{reason=~"${inQuestion}"}) > 0`,
    for: '1m',
    severity: 'critical',
    summary:
      '{{ $value }} {{ $labels.kind }} stalled with {{ $labels.reason }}: somebody may have paid, or may be about to pay, what nobody asked for.',
    means: 'An answer, a deposit or a transaction is not what the resource asks for. Nothing more is signed for it.',
    todo: [
      '`kubectl get staking -A | grep Stalled`, then `kubectl describe` the resource: the condition `Stalled` says what differs, and what to do.',
      'Look the reason up in the [list of reasons](../reference/reasons.md).',
      '`VerificationFailed`, `FrontRun`: treat the staking API as compromised. Stop the operator (`kubectl -n staking-system scale deployment staking-operator --replicas=0`) until it is known why.',
    ],
    fires: {
      series: { 'staking_operator_stalled_resources{kind="EthereumStake",reason="FrontRun",pod="a"}': '1x10' },
      at: '3m',
      labels: { kind: 'EthereumStake', reason: 'FrontRun' },
    },
    silent: { series: { 'staking_operator_stalled_resources{kind="EthereumStake",reason="InvalidSpec",pod="a"}': '1x10' }, at: '3m' },
  },
  {
    name: 'StakingValidatorSlashed',
    of: 'operator',
    expr: 'max by (kind) (staking_operator_stalled_resources{reason="Slashed"}) > 0',
    for: '0m',
    severity: 'critical',
    summary: '{{ $value }} validators were slashed.',
    means:
      'A validator key has signed twice, mostly since it runs in two places. It loses a part of its balance and leaves by itself; the more that are slashed within 36 days, the more each of them loses.',
    todo: [
      '`kubectl get ethstake -A | grep Slashed`: which ones.',
      'Stop every validator client that may hold keys of the same origin, before others are slashed too. Being offline costs next to nothing.',
      'Find out where else the keys run: `staking-operator keystores` writes down each place that the service gave a key to.',
    ],
    fires: {
      series: { 'staking_operator_stalled_resources{kind="EthereumStake",reason="Slashed",pod="a"}': '0x2 1x10' },
      at: '5m',
      labels: { kind: 'EthereumStake' },
    },
    silent: { series: { 'staking_operator_stalled_resources{kind="EthereumStake",reason="InvalidSpec",pod="a"}': '1x10' }, at: '5m' },
  },
  {
    name: 'StakingResourcesStalled',
    of: 'operator',
    expr: `max by (kind, reason) (staking_operator_stalled_resources{reason!~"${inQuestion}|Slashed"}) > 0`,
    for: '30m',
    severity: 'warning',
    summary: '{{ $value }} {{ $labels.kind }} have been stalled with {{ $labels.reason }} for half an hour.',
    means: 'They wait for a person: a manifest, a policy or a key is not what it should be.',
    todo: [
      '`kubectl describe` one of them: `Stalled` says what is wrong, where, and what to do.',
      'Look the reason up in the [list of reasons](../reference/reasons.md).',
    ],
    fires: {
      series: { 'staking_operator_stalled_resources{kind="ValidatorExit",reason="NamespaceNotAllowed",pod="a"}': '2x60' },
      at: '40m',
      labels: { kind: 'ValidatorExit', reason: 'NamespaceNotAllowed' },
    },
    silent: {
      series: { 'staking_operator_stalled_resources{kind="ValidatorExit",reason="NamespaceNotAllowed",pod="a"}': '2x20 0x40' },
      at: '40m',
    },
  },
  {
    name: 'StakingAlarm',
    of: 'operator',
    expr: grown('staking_operator_alarms_total', 'network, signer, reason', '15m'),
    for: '0m',
    severity: 'critical',
    summary: 'Signer {{ $labels.signer }} on {{ $labels.network }}: {{ $labels.reason }}.',
    means:
      '`KeyUsedElsewhere`: somebody else sends with the same key. `UnaccountedTransactions`: the chain shows transactions that the log does not know. `FrontRun`: another deposit came first. `NoFinality`: the chain does not make final blocks.',
    todo: [
      '`kubectl describe stakingsigner NAME`: the conditions and events name the transaction.',
      '`KeyUsedElsewhere` that you can’t explain: the key is known to others. Move the money, and make another key.',
      'A restored cluster, or one key in two clusters: see [Restore](../how-to/restore.md).',
    ],
    fires: {
      series: { 'staking_operator_alarms_total{network="hoodi",signer="treasury",reason="KeyUsedElsewhere"}': '_x10 1x10' },
      at: '12m',
      labels: { network: 'hoodi', signer: 'treasury', reason: 'KeyUsedElsewhere' },
    },
    silent: { series: { 'staking_operator_alarms_total{network="hoodi",signer="treasury",reason="KeyUsedElsewhere"}': '1x60' }, at: '40m' },
  },
  {
    name: 'StakingTransactionsDontLand',
    of: 'operator',
    expr: 'max by (signer, network) (staking_operator_signer_in_flight) > 0 unless on (network) sum by (network) (increase(staking_operator_transactions_total{event=~"Landed|Reverted|FrontRun|closed:.+"}[1h])) > 0',
    for: '1h',
    severity: 'warning',
    summary:
      '{{ $value }} transactions of signer {{ $labels.signer }} on {{ $labels.network }} are in flight, and none has come to an end for two hours.',
    means: 'They are too cheap, wait for an earlier nonce, or the chain makes no final blocks.',
    todo: [
      '`kubectl get stx`: state, price and age of each; the oldest nonce of the signer holds up the others.',
      '`FeeTooHigh`: raise `maxFeePerGasGwei` of the resource or of the policy, or wait.',
      '`NodesDisagree`, `NoFinality`: look at the RPC nodes.',
    ],
    fires: {
      series: {
        'staking_operator_signer_in_flight{signer="treasury",network="hoodi",pod="a"}': '3x200',
        'staking_operator_transactions_total{network="hoodi",purpose="Deposit",event="Landed"}': '5x200',
      },
      at: '150m',
      labels: { signer: 'treasury', network: 'hoodi' },
    },
    silent: {
      series: {
        'staking_operator_signer_in_flight{signer="treasury",network="hoodi",pod="a"}': '3x200',
        'staking_operator_transactions_total{network="hoodi",purpose="Deposit",event="Landed"}': '5+1x200',
      },
      at: '150m',
    },
  },
  {
    name: 'StakingTransactionsLost',
    of: 'operator',
    expr: grown('staking_operator_transactions_total{event=~"Reverted|closed:Revert|closed:Foreign"}', 'network, purpose, event', '1h'),
    for: '0m',
    severity: 'warning',
    summary: 'A {{ $labels.purpose }} on {{ $labels.network }} came to nothing: {{ $labels.event }}.',
    means: 'A transaction was reverted, or another one took its nonce. It has cost its fee; whether it is made again, the resource says.',
    todo: [
      '`kubectl get stx -o wide`: which one, and its hash for a block explorer.',
      '`closed:Foreign`: somebody else uses the key; see [StakingAlarm](#stakingalarm).',
    ],
    fires: {
      series: { 'staking_operator_transactions_total{network="hoodi",purpose="Deposit",event="closed:Foreign"}': '1x10 2x10' },
      at: '12m',
      labels: { network: 'hoodi', purpose: 'Deposit', event: 'closed:Foreign' },
    },
    silent: { series: { 'staking_operator_transactions_total{network="hoodi",purpose="Deposit",event="Landed"}': '1x10 2x10' }, at: '12m' },
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
    todo: [
      'Is the API server there, and does it answer `kubectl get --raw /readyz`?',
      'A proxy or load balancer between them may hold connections that are dead: restart the operator, and look at its idle time-out.',
    ],
    fires: {
      series: { 'staking_operator_informer_silence_seconds{resource="ethereumstakes",pod="a"}': '0+60x20' },
      at: '12m',
      labels: { resource: 'ethereumstakes' },
    },
    silent: { series: { 'staking_operator_informer_silence_seconds{resource="ethereumstakes",pod="a"}': '55x20' }, at: '12m' },
  },
  {
    name: 'StakingNodeUnhealthy',
    of: 'operator',
    expr: 'max by (network, node) (staking_operator_rpc_node_unhealthy) == 1',
    for: '15m',
    severity: 'warning',
    summary: 'Node {{ $labels.node }} of {{ $labels.network }} has failed, lagged or stood still for a quarter of an hour.',
    means: 'It is asked last. What every configured node must confirm (another transaction after one that was lost) waits for it.',
    todo: [
      'Its number is its place in `rpcUrls`. Look at the node, or ask its operator.',
      'Take one that is gone for good out of the networks file: as long as it is there, what it might know counts.',
    ],
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
    todo: [
      '`kubectl -n staking-system logs deploy/staking-operator | grep rpc`: what the nodes say (refused, 401, time-out).',
      'A key in the URL of a provider may have expired. The networks file is read again when it changes.',
    ],
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
    todo: [
      'Compare the block hashes that the nodes give for one height (`eth_getBlockByNumber`) with a block explorer.',
      'Take the wrong one out of the networks file.',
    ],
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
      'Stakes are not made, and nothing new is sent: the API is told of each transaction before. Resources say `ServiceUnavailable`, or what the API refuses.',
    todo: [
      '`staking_operator_staking_api_request_duration_seconds_count` by `outcome` tells how: refused, 401, time-out, an answer that is not its contract.',
      'With the service of this repository: `/readyz?verbose`.',
    ],
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
    name: 'StakingKubeApiFailing',
    of: 'operator',
    expr: 'sum(rate(staking_operator_kube_request_duration_seconds_count{status=~"0|403|429|5.."}[10m])) / sum(rate(staking_operator_kube_request_duration_seconds_count[10m])) > 0.1',
    for: '10m',
    severity: 'warning',
    summary: "{{ $value | humanizePercentage }} of the operator's requests to the API server fail.",
    means: 'The API server is away or overloaded, or a right is missing (403).',
    todo: ['By `status` and `resource`: 403 names the right that is missing; compare the ClusterRole with the chart’s.'],
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
  {
    name: 'StakingLeaderChanges',
    of: 'operator',
    expr: 'sum(changes(staking_operator_leader[30m])) > 6',
    for: '0m',
    severity: 'warning',
    summary: 'The lead of the staking operator has passed on {{ $value }} times in half an hour.',
    means: 'An instance can’t renew its lease in time, and ends each time. Nothing is lost by that; little gets done.',
    todo: ['Is the pod short of CPU (throttled), or the API server slow?', '`leaderElection.*` of the chart: longer times hold out more.'],
    fires: { series: { 'staking_operator_leader{pod="a"}': '0 1 0 1 0 1 0 1 0 1x30' }, at: '20m', labels: {} },
    silent: { series: { 'staking_operator_leader{pod="a"}': '0x5 1x30', 'staking_operator_leader{pod="b"}': '1x5 0x30' }, at: '20m' },
  },
  {
    name: 'StakingServiceNetworkDown',
    of: 'service',
    expr: 'min by (network, kind) (staking_service_network_up) == 0',
    for: '5m',
    severity: 'critical',
    summary: 'The staking service can’t use the {{ $labels.kind }} nodes of {{ $labels.network }}.',
    means: 'What needs them answers 503 `chain-unavailable`; everything else goes on.',
    todo: ['`/readyz?verbose` says for each network what is wrong.'],
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
    todo: ['[After a restore](../how-to/back-up-and-restore-the-service.md). One seed belongs to one database.'],
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
    means: 'The database was restored from an older copy. Their keys can be made again; the service does nothing of it by itself.',
    todo: ['[What a restored database misses](../how-to/back-up-and-restore-the-service.md).'],
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
    todo: ['Its log says why; mostly its nodes ([StakingServiceNetworkDown](#stakingservicenetworkdown)) or its database.'],
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
    todo: ['By `route` and `status`, then the log.', '`staking_service_requests_shed_total` grows: more instances, or fewer requests.'],
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
    todo: ['`staking_service_webhook_attempts_total` by `outcome`; the account’s endpoints say how their last deliveries ended.'],
    fires: { series: { 'staking_service_webhook_deliveries_pending{pod="a"}': '2000x60' }, at: '40m', labels: {} },
    silent: { series: { 'staking_service_webhook_deliveries_pending{pod="a"}': '2000x20 10x40' }, at: '40m' },
  },
]
