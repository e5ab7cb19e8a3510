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
      'A validator’s key has signed twice, usually because it runs in two places. The validator loses a part of its balance and is forced to exit; the more validators are slashed within 36 days, the more each of them loses.',
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
    fires: {
      series: { 'staking_operator_transactions_total{network="hoodi",purpose="Deposit",event="closed:Foreign"}': '1x10 2x10' },
      at: '12m',
      labels: { network: 'hoodi', purpose: 'Deposit', event: 'closed:Foreign' },
    },
    silent: { series: { 'staking_operator_transactions_total{network="hoodi",purpose="Deposit",event="Landed"}': '1x10 2x10' }, at: '12m' },
  },
]
