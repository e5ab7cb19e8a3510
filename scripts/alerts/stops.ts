import type { Alert } from './alert.ts'

/**
 * What was stopped on purpose, by a switch or by a limit. A switch that nobody has turned back is the one outage that no other alert tells of. `max_over_time`: a
 * change of leader, in which nobody exports the fleet for some seconds, does not begin the time anew.
 */
export const stopAlerts: readonly Alert[] = [
  {
    name: 'StakingOperatorSuspended',
    of: 'operator',
    expr: 'max(max_over_time(staking_operator_suspended[5m])) == 1',
    for: '1h',
    severity: 'warning',
    summary: 'The emergency stop of the staking operator has been on for an hour.',
    means:
      'Somebody stopped everything, by the annotation `staking.dev/suspend` of the Lease. Nothing is signed or sent until somebody takes it away: no deposit, no exit, no higher price for a transaction that is stuck.',
    fires: {
      series: { 'staking_operator_suspended{pod="a"}': '0x5 1x40 stale', 'staking_operator_suspended{pod="b"}': '_x48 1x60' },
      at: '75m',
      labels: {},
    },
    silent: {
      series: { 'staking_operator_suspended{pod="a"}': '0x5 1x45 0x60', 'staking_operator_suspended{pod="b"}': '_x50 0x60' },
      at: '75m',
    },
  },
  {
    name: 'StakingSignerSuspended',
    of: 'operator',
    expr: 'max by (signer) (max_over_time(staking_operator_signer_suspended[5m])) == 1',
    for: '1h',
    severity: 'warning',
    summary: 'Signer {{ $labels.signer }} has been suspended for an hour.',
    means:
      'Somebody stopped this key, by `spec.suspend` of the StakingSigner. Nothing is signed with it but what cancels, until somebody sets that back.',
    fires: {
      series: { 'staking_operator_signer_suspended{signer="treasury",pod="a"}': '1x90' },
      at: '70m',
      labels: { signer: 'treasury' },
    },
    silent: {
      series: {
        'staking_operator_signer_suspended{signer="treasury",pod="a"}': '1x40 0x60',
        'staking_operator_signer_suspended{signer="withdrawals",pod="a"}': '0x100',
      },
      at: '70m',
    },
  },
  {
    name: 'StakingLimitReached',
    of: 'operator',
    expr: 'max by (kind) (staking_operator_waiting_resources{reason="LimitReached"}) > 0',
    for: '5m',
    severity: 'warning',
    summary: '{{ $value }} {{ $labels.kind }} wait because a limit of their signer is reached.',
    means:
      'More was applied than `spec.policy.limits` lets the key sign in that time. What fits has been signed, the rest waits with `LimitReached` and says when it goes. If nobody meant so much, this is the time to take it back.',
    fires: {
      series: { 'staking_operator_waiting_resources{kind="ValidatorExit",reason="LimitReached",pod="a"}': '121x20' },
      at: '10m',
      labels: { kind: 'ValidatorExit' },
    },
    silent: {
      series: {
        'staking_operator_waiting_resources{kind="ValidatorExit",reason="LimitReached",pod="a"}': '1x3 0x20',
        'staking_operator_waiting_resources{kind="ValidatorExit",reason="FeeTooHigh",pod="a"}': '121x20',
      },
      at: '10m',
    },
  },
  {
    name: 'StakingApprovalsWait',
    of: 'operator',
    expr: 'max by (kind) (staking_operator_oldest_wait_seconds{reason="ApprovalRequired"}) > 14400',
    for: '5m',
    severity: 'warning',
    summary: 'A {{ $labels.kind }} has waited for an approval for {{ $value | humanizeDuration }}.',
    means:
      'The policy of its signer asks for the approval of other users, and for four hours too few have given theirs. Nothing of it is signed, and nobody waits behind it. Where it is an exit or a withdrawal, somebody may need it.',
    fires: {
      series: { 'staking_operator_oldest_wait_seconds{kind="ValidatorExit",reason="ApprovalRequired",pod="a"}': '0+60x300' },
      at: '270m',
      labels: { kind: 'ValidatorExit' },
    },
    silent: {
      series: {
        // One is approved within three hours, and one waits for something else.
        'staking_operator_oldest_wait_seconds{kind="ValidatorExit",reason="ApprovalRequired",pod="a"}': '0+60x180 stale',
        'staking_operator_oldest_wait_seconds{kind="EthereumStake",reason="FeeTooHigh",pod="a"}': '0+60x300',
      },
      at: '270m',
    },
  },
]
