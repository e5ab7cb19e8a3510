import type { reasons } from '../../src/resources/reasons.ts'
import type { Alert } from './alert.ts'

/** Waits that nobody who writes manifests can end: something that the operator needs is away, or it gets nowhere. */
export const nobodysWaits = [
  'Pending',
  'InProgress',
  'Retrying',
  'ChainUnavailable',
  'ServiceUnavailable',
  'HistorySyncing',
  'Importing',
  'NodesDisagree',
  'NoFinality',
  'NonceUseUnproven',
  'WaitingForNonce',
  'SignerNotReady',
] as const satisfies readonly (keyof typeof reasons)[]

const oldest = (reasonsMeant: string, seconds: number): string =>
  `max by (kind, reason) (staking_operator_oldest_wait_seconds{reason=~"${reasonsMeant}"}) > ${seconds}`

/** Who waits for what, and how near a signer is to its limits. */
export const waitAlerts: readonly Alert[] = [
  {
    name: 'StakingWaitsTooLong',
    of: 'operator',
    expr: oldest(nobodysWaits.join('|'), 3600),
    for: '5m',
    severity: 'critical',
    summary: 'A {{ $labels.kind }} has waited with {{ $labels.reason }} for {{ $value | humanizeDuration }}.',
    means: 'Something that the operator needs has been away for an hour, or it gets nowhere. No change of a manifest ends this wait.',
    fires: {
      series: { 'staking_operator_oldest_wait_seconds{kind="EthereumStake",reason="ServiceUnavailable",pod="a"}': '0+60x90' },
      at: '75m',
      labels: { kind: 'EthereumStake', reason: 'ServiceUnavailable' },
    },
    silent: {
      series: {
        // One ends before an hour is over, and one is for the price of gas to end.
        'staking_operator_oldest_wait_seconds{kind="EthereumStake",reason="ServiceUnavailable",pod="a"}': '0+60x55 0+60x40',
        'staking_operator_oldest_wait_seconds{kind="EthereumStake",reason="AwaitingActivation",pod="a"}': '0+60x90',
      },
      at: '75m',
    },
  },
  {
    name: 'StakingStakesNotSeen',
    of: 'operator',
    expr: 'count by (kind, reason) (staking_operator_resource_condition_age_seconds{type="Observed"} > 3600)',
    for: '5m',
    severity: 'warning',
    summary: '{{ $value }} {{ $labels.kind }} that are done can’t be looked at: {{ $labels.reason }}.',
    means:
      'What their status shows is as old as `status.observedAt`. Nobody would hear of a validator of theirs that is slashed. Nothing of them is signed or sent in any case.',
    fires: {
      series: {
        'staking_operator_resource_condition_age_seconds{namespace="team-a",name="one",kind="EthereumStake",type="Observed",reason="Unauthorized",pod="a"}':
          '0+60x90',
      },
      at: '75m',
      labels: { kind: 'EthereumStake', reason: 'Unauthorized' },
    },
    silent: {
      series: {
        'staking_operator_resource_condition_age_seconds{namespace="team-a",name="one",kind="EthereumStake",type="Observed",reason="Unauthorized",pod="a"}':
          '0+60x50 stale',
        'staking_operator_resource_condition_age_seconds{namespace="team-a",name="two",kind="EthereumStake",type="Ready",reason="FeeTooHigh",pod="a"}':
          '0+60x90',
      },
      at: '75m',
    },
  },
  {
    name: 'StakingSignerShortOfFunds',
    of: 'operator',
    expr: 'max by (signer, network) (staking_operator_signer_needed_eth - staking_operator_signer_balance_eth) > 0 or max by (signer, network) (staking_operator_signer_needed_sol - staking_operator_signer_balance_sol) > 0',
    for: '15m',
    severity: 'warning',
    summary: 'Signer {{ $labels.signer }} is short of {{ $value }} ETH or SOL on {{ $labels.network }}.',
    means:
      'What waits for its balance is more than it has. Those that it can pay for are sent in their order; the others wait with `InsufficientFunds`.',
    fires: {
      series: {
        'staking_operator_signer_needed_eth{signer="treasury",network="hoodi",pod="a"}': '64x40',
        'staking_operator_signer_balance_eth{signer="treasury",network="hoodi",pod="a"}': '32.5x40',
      },
      at: '20m',
      labels: { signer: 'treasury', network: 'hoodi' },
    },
    silent: {
      series: {
        'staking_operator_signer_needed_eth{signer="treasury",network="hoodi",pod="a"}': '64x10 0x30',
        'staking_operator_signer_balance_eth{signer="treasury",network="hoodi",pod="a"}': '32.5x40',
        'staking_operator_signer_needed_sol{signer="sol",network="devnet",pod="a"}': '5x40',
        'staking_operator_signer_balance_sol{signer="sol",network="devnet",pod="a"}': '9x40',
      },
      at: '20m',
    },
  },
  {
    name: 'StakingSignerBalanceLow',
    of: 'operator',
    expr: 'max by (name) (staking_operator_resource_condition_age_seconds{kind="StakingSigner",type="Funded",reason="BalanceLow"}) > 600',
    for: '0m',
    severity: 'warning',
    summary: 'Signer {{ $labels.name }} has had less than its minimumBalance for {{ $value | humanizeDuration }}.',
    means: 'The signer is still used, and pays for what it can. `spec.minimumBalance` asks for this warning before it runs dry.',
    fires: {
      series: {
        'staking_operator_resource_condition_age_seconds{namespace="",name="treasury",kind="StakingSigner",type="Funded",reason="BalanceLow",pod="a"}':
          '0+60x30',
      },
      at: '15m',
      labels: { name: 'treasury' },
    },
    silent: {
      series: {
        'staking_operator_resource_condition_age_seconds{namespace="",name="treasury",kind="StakingSigner",type="Funded",reason="BalanceLow",pod="a"}':
          '0+60x8 stale',
      },
      at: '15m',
    },
  },
  {
    name: 'StakingSignerBalanceOld',
    of: 'operator',
    expr: 'time() - max by (signer, network) (staking_operator_signer_balance_read_timestamp_seconds) > 3600',
    for: '5m',
    severity: 'warning',
    summary: 'The balance of signer {{ $labels.signer }} on {{ $labels.network }} was read {{ $value | humanizeDuration }} ago.',
    means: 'A signer is looked at every few minutes. Its balance, and what waits for it, are as old as this says.',
    fires: {
      series: { 'staking_operator_signer_balance_read_timestamp_seconds{signer="treasury",network="hoodi",pod="a"}': '60x90' },
      at: '75m',
      labels: { signer: 'treasury', network: 'hoodi' },
    },
    silent: {
      series: { 'staking_operator_signer_balance_read_timestamp_seconds{signer="treasury",network="hoodi",pod="a"}': '0+60x90' },
      at: '75m',
    },
  },
  {
    name: 'StakingFeeOverCap',
    of: 'operator',
    expr: oldest('FeeTooHigh|RequestFeeTooHigh', 7200),
    for: '5m',
    severity: 'warning',
    summary: 'A {{ $labels.kind }} has waited for a lower fee for {{ $value | humanizeDuration }} ({{ $labels.reason }}).',
    means:
      'Gas, or the fee of an execution request, costs more than the cap of the resource or of the signer’s policy allows. Nothing is sent above a cap.',
    fires: {
      series: { 'staking_operator_oldest_wait_seconds{kind="EthereumStake",reason="FeeTooHigh",pod="a"}': '0+60x150' },
      at: '130m',
      labels: { kind: 'EthereumStake', reason: 'FeeTooHigh' },
    },
    silent: {
      series: { 'staking_operator_oldest_wait_seconds{kind="EthereumStake",reason="FeeTooHigh",pod="a"}': '0+60x60 0+60x90' },
      at: '130m',
    },
  },
  {
    name: 'StakingTransactionsDontLand',
    of: 'operator',
    expr: 'max by (signer, network, purpose) (staking_operator_transactions_open_oldest_seconds{state=~"open|cancelling"}) > 7200',
    for: '5m',
    severity: 'warning',
    summary:
      'A {{ $labels.purpose }} of signer {{ $labels.signer }} on {{ $labels.network }} was signed {{ $value | humanizeDuration }} ago and has no outcome.',
    means:
      'It is too cheap, waits for an earlier nonce, or the chain makes no final blocks. It may still land: nobody may assume that it does not.',
    fires: {
      series: {
        'staking_operator_transactions_open_oldest_seconds{signer="treasury",network="hoodi",purpose="Deposit",state="open",pod="a"}':
          '0+60x200',
      },
      at: '150m',
      labels: { signer: 'treasury', network: 'hoodi', purpose: 'Deposit' },
    },
    silent: {
      series: {
        'staking_operator_transactions_open_oldest_seconds{signer="treasury",network="hoodi",purpose="Deposit",state="open",pod="a"}':
          '0+60x100 0+60x100',
        // It was never signed: its wait has a reason of its own.
        'staking_operator_transactions_open_oldest_seconds{signer="treasury",network="hoodi",purpose="Deposit",state="waiting",pod="a"}':
          '0+60x200',
      },
      at: '150m',
    },
  },
  {
    name: 'StakingConfigRefused',
    of: 'operator',
    expr: 'min by (file) (staking_operator_config_last_reload_successful) == 0',
    for: '5m',
    severity: 'critical',
    summary: 'The last change of the {{ $labels.file }} file can’t be used.',
    means: 'The operator keeps using the last good version. If it is restarted, it does not start: correct the file first.',
    fires: {
      series: { 'staking_operator_config_last_reload_successful{file="networks",pod="a"}': '1x5 0x20' },
      at: '15m',
      labels: { file: 'networks' },
    },
    silent: { series: { 'staking_operator_config_last_reload_successful{file="networks",pod="a"}': '0x2 1x20' }, at: '15m' },
  },
]
