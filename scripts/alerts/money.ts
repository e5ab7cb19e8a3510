import type { reasons } from '../../src/resources/reasons.ts'
import { type Alert, grown } from './alert.ts'

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

/** What became of money, and of resources that wait for a person. */
export const moneyAlerts: readonly Alert[] = [
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
]
