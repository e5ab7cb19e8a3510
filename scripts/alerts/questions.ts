import { moneyInQuestion } from './money.ts'
import { doctor } from './runbooks/commands.ts'

/** What somebody who was woken asks first. */
export interface Question {
  readonly asks: string
  /** A command for a shell that answers it at once. */
  readonly run: string
  /** How to read what it prints. */
  readonly shows: string
  /** The alerts that tell without being asked, each with its runbook. */
  readonly alerts: readonly string[]
  /** The same, and more, of Prometheus. */
  readonly query: string
}

export const questions: readonly Question[] = [
  {
    asks: 'Does the operator work at all?',
    run: `kubectl -n staking-system get lease staking-operator -o jsonpath='{.spec.holderIdentity} leads, renewed {.spec.renewTime}, suspend={.metadata.annotations.staking\\.dev/suspend}{"\\n"}'`,
    shows:
      'A name and a time (UTC) of the last seconds: it leads. An older time, or no name: nobody does. Something after `suspend=`: somebody has stopped everything.',
    alerts: ['StakingOperatorNoLeader', 'StakingOperatorSuspended', 'StakingLeaderChanges', 'StakingCacheSilent', 'StakingKubeApiFailing'],
    query: 'sum(staking_operator_leader)',
  },
  {
    asks: 'Which stakes wait, for what, and since when?',
    run: `kubectl get ethstake,vexit,vwd,solstake,solauth -A -o wide | grep -v ' True '`,
    shows: 'All that is not Ready, with the reason, and what to do about it in the last columns.',
    alerts: [
      'StakingWaitsTooLong',
      'StakingResourcesStalled',
      'StakingStakesNotSeen',
      'StakingLimitReached',
      'StakingApprovalsWait',
      'StakingSignerSuspended',
      'StakingBroadcastSloBurnsFast',
      'StakingBroadcastSloBurnsSlowly',
      'StakingRemoteSignerFailing',
    ],
    query: 'sort_desc(staking_operator_resource_condition_age_seconds)',
  },
  {
    asks: 'Does money go, or has it gone, where nobody sent it?',
    run: `kubectl get staking -A -o wide | grep -E '${[...moneyInQuestion, 'KeyUsedElsewhere'].join('|')}'\nkubectl get signers -o custom-columns='SIGNER:.metadata.name,USED-ELSEWHERE:.status.conditions[?(@.type=="KeyUsedElsewhere")].status'`,
    shows: 'Nothing from the first command, and `False` for each signer: no. A reason, or `True`: perhaps, and its runbook comes first.',
    alerts: ['StakingMoneyInQuestion', 'StakingAlarm', 'StakingRemoteSignerMisbehaves'],
    query: 'sum by (kind, reason) (staking_operator_stalled_resources) > 0',
  },
  {
    asks: 'Was a validator slashed?',
    run: `kubectl get ethstake -A -o custom-columns='NAMESPACE:.metadata.namespace,NAME:.metadata.name,VALIDATOR:.status.validator.status,SEEN:.status.conditions[?(@.type=="Observed")].status' | grep -E 'VALIDATOR|slashed'`,
    shows: 'Only the line of titles: none was. For a stake whose `SEEN` is not `True`, ask a beacon chain explorer.',
    alerts: ['StakingValidatorSlashed'],
    query: 'sum by (network) (staking_operator_slashed_validators)',
  },
  {
    asks: 'Is a transaction stuck, or lost?',
    run: `kubectl get stx --sort-by=.metadata.creationTimestamp -o wide | grep -v ' Landed '`,
    shows:
      '`Open` may still land: look at its age. `Waiting` is not signed yet, and of `Unclaimed` the resource is gone. `Reverted` and `FrontRun` came to nothing.',
    alerts: ['StakingTransactionsDontLand', 'StakingTransactionsLost'],
    query: 'max by (signer, network, purpose, state) (staking_operator_transactions_open_oldest_seconds)',
  },
  {
    asks: 'Has a signer enough money for what waits?',
    run: 'kubectl get signers -o wide',
    shows: '`FUNDED` and `BALANCE` of each; what is missing stands in the message.',
    alerts: ['StakingSignerShortOfFunds', 'StakingSignerBalanceLow', 'StakingSignerBalanceOld'],
    query: 'staking_operator_signer_balance_eth - staking_operator_signer_needed_eth',
  },
  {
    asks: 'Does gas cost more than we pay?',
    run: 'kubectl get staking -A -o wide | grep FeeTooHigh',
    shows: 'Nothing: no. Otherwise each that waits, with the price and the cap in its message.',
    alerts: ['StakingFeeOverCap'],
    query: 'max by (network) (staking_operator_network_base_fee_gwei)',
  },
  {
    asks: 'Are the nodes there, and do they tell the truth?',
    run: doctor('node: '),
    shows: 'Each node by its number: chain, height and age of its latest block, the methods that it lacks, and whether the nodes agree.',
    alerts: ['StakingNetworkUnreachable', 'StakingNodeUnhealthy', 'StakingNodesDisagree'],
    query: 'max by (network, node) (staking_operator_rpc_node_lag_blocks)',
  },
  {
    asks: 'Is the staking API there?',
    run: doctor('staking API: '),
    shows: 'Whether it answers, takes the key, and serves the networks.',
    alerts: ['StakingApiFailing', 'StakingServiceErrors', 'StakingServiceNetworkDown', 'StakingServiceTrackerBehind'],
    query: 'sum by (operation, outcome) (rate(staking_operator_staking_api_request_duration_seconds_count[5m]))',
  },
  {
    asks: 'Is the last change of the configuration in use?',
    run: doctor('(configuration|key): '),
    shows:
      '`ok`: the files that are mounted now can be used, and are within two minutes. `failed`: the operator goes on with the last good ones.',
    alerts: ['StakingConfigRefused'],
    query: 'staking_operator_config_last_reload_successful == 0',
  },
]
