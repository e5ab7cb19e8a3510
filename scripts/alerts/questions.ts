/** What somebody who was woken asks first, with the alerts that tell and the query that shows more. */
export const questions: readonly { readonly asks: string; readonly alerts: readonly string[]; readonly query: string }[] = [
  {
    asks: 'Does the operator work at all?',
    alerts: ['StakingOperatorNoLeader', 'StakingLeaderChanges', 'StakingCacheSilent', 'StakingKubeApiFailing'],
    query: 'sum(staking_operator_leader)',
  },
  {
    asks: 'Which stakes wait, for what, and since when?',
    alerts: [
      'StakingWaitsTooLong',
      'StakingResourcesStalled',
      'StakingStakesNotSeen',
      'StakingBroadcastSloBurnsFast',
      'StakingBroadcastSloBurnsSlowly',
    ],
    query: 'sort_desc(staking_operator_resource_condition_age_seconds)',
  },
  {
    asks: 'Does money go, or has it gone, where nobody sent it?',
    alerts: ['StakingMoneyInQuestion', 'StakingAlarm'],
    query: 'sum by (kind, reason) (staking_operator_stalled_resources) > 0',
  },
  {
    asks: 'Was a validator slashed?',
    alerts: ['StakingValidatorSlashed'],
    query: 'sum by (network) (staking_operator_slashed_validators)',
  },
  {
    asks: 'Is a transaction stuck, or lost?',
    alerts: ['StakingTransactionsDontLand', 'StakingTransactionsLost'],
    query: 'max by (signer, network, purpose, state) (staking_operator_transactions_open_oldest_seconds)',
  },
  {
    asks: 'Has a signer enough money for what waits?',
    alerts: ['StakingSignerShortOfFunds', 'StakingSignerBalanceLow', 'StakingSignerBalanceOld'],
    query: 'staking_operator_signer_balance_eth - staking_operator_signer_needed_eth',
  },
  {
    asks: 'Does gas cost more than we pay?',
    alerts: ['StakingFeeOverCap'],
    query: 'max by (network) (staking_operator_network_base_fee_gwei)',
  },
  {
    asks: 'Are the nodes there, and do they tell the truth?',
    alerts: ['StakingNetworkUnreachable', 'StakingNodeUnhealthy', 'StakingNodesDisagree'],
    query: 'max by (network, node) (staking_operator_rpc_node_lag_blocks)',
  },
  {
    asks: 'Is the staking API there?',
    alerts: ['StakingApiFailing', 'StakingServiceErrors', 'StakingServiceNetworkDown', 'StakingServiceTrackerBehind'],
    query: 'sum by (operation, outcome) (rate(staking_operator_staking_api_request_duration_seconds_count[5m]))',
  },
  {
    asks: 'Is the last change of the configuration in use?',
    alerts: ['StakingConfigRefused'],
    query: 'staking_operator_config_last_reload_successful == 0',
  },
]
